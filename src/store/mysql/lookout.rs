//! Checks, while a job runs, whether another server of the list accepts writes as well.
//!
//! No client can prevent two writable servers: it uses the first. So the holder of a token checks the
//! others from time to time, each over a separate connection that is closed afterwards. Only if one of
//! them accepts writes, the server in use is checked too, last: after a switch-over it does not accept
//! them any more by then.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::cells::Cells;
use super::connection::Connection;
use super::settings::{Host, Settings};
use super::statements::WHICH_SERVER;
use crate::store::Lookout;

/// The longest wait for a server: a late one is not reported.
const LONGEST: Duration = Duration::from_secs(3);

/// The servers of a store, one of them in use.
pub(super) struct OtherServers {
    settings: Settings,
    /// The index of the host in use.
    used: Arc<AtomicUsize>,
    limit: Duration,
}

impl OtherServers {
    /// `None` if the list has one server only.
    pub(super) fn of(
        settings: &Settings,
        used: Arc<AtomicUsize>,
        timeout: Duration,
    ) -> Option<Self> {
        (settings.hosts.len() > 1).then(|| Self {
            settings: settings.clone(),
            used,
            limit: timeout.min(LONGEST),
        })
    }

    /// Which server accepts writes under this name, by the server's own id; an empty text if none does. `None`
    /// if that is unknown.
    fn writable(&self, host: &Host) -> Option<String> {
        let only = Settings {
            hosts: vec![host.clone()],
            ..self.settings.clone()
        };
        let mut connection = Connection::new(only, self.limit);
        // The set-up of the session fails where no writes are accepted.
        match connection.ask(self.limit, WHICH_SERVER) {
            Ok(answer) => {
                let id = Cells::first(&answer)?.needed_text().ok()?;
                Some(id.to_owned())
            }
            Err(failed) => failed.is_read_only.then(String::new),
        }
    }
}

impl Lookout for OtherServers {
    fn primaries(&self) -> Option<Vec<String>> {
        let used = self.used.load(Ordering::Relaxed);
        let hosts = &self.settings.hosts;
        let mut writable: Vec<(String, String)> = Vec::new();
        let mut are_known = true;
        for (_, host) in hosts.iter().enumerate().filter(|(index, _)| *index != used) {
            match self.writable(host) {
                Some(id) if id.is_empty() || writable.iter().any(|(known, _)| *known == id) => {}
                Some(id) => writable.push((id, host.to_string())),
                None => are_known = false,
            }
        }
        if writable.is_empty() {
            return are_known.then(Vec::new);
        }
        let own = hosts.get(used)?;
        let id = self.writable(own)?;
        // The server in use may have another name in the list.
        writable.retain(|(other, _)| *other != id);
        if id.is_empty() || writable.is_empty() {
            return are_known.then(Vec::new);
        }
        let others = writable.into_iter().map(|(_, name)| name);
        Some([own.to_string()].into_iter().chain(others).collect())
    }
}
