//! Checks, while a job runs, whether another server of the list accepts writes as well.
//!
//! No client can prevent two writable servers: it uses the first. So the holder of a token checks the
//! others from time to time, each over a separate connection that is closed afterwards. Only if one of
//! them accepts writes, the server in use is checked too, last: after a switch-over it does not accept
//! them any more by then.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::connection::Connection;
use super::settings::{Host, Settings};
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

    /// Whether a server accepts writes; `None` if that is unknown.
    fn is_writable(&self, host: &Host) -> Option<bool> {
        let only = Settings {
            hosts: vec![host.clone()],
            ..self.settings.clone()
        };
        let mut connection = Connection::new(only, self.limit);
        // The set-up of the session fails where no writes are accepted.
        match connection.ask(self.limit, "SELECT 1") {
            Ok(_) => Some(true),
            Err(failed) => failed.is_read_only.then_some(false),
        }
    }
}

impl Lookout for OtherServers {
    fn primaries(&self) -> Option<Vec<String>> {
        let used = self.used.load(Ordering::Relaxed);
        let hosts = &self.settings.hosts;
        let mut writable = Vec::new();
        let mut are_known = true;
        for (_, host) in hosts.iter().enumerate().filter(|(index, _)| *index != used) {
            match self.is_writable(host) {
                Some(true) => writable.push(host.to_string()),
                Some(false) => {}
                None => are_known = false,
            }
        }
        if writable.is_empty() {
            return are_known.then(Vec::new);
        }
        let own = hosts.get(used)?;
        match self.is_writable(own)? {
            true => {
                writable.insert(0, own.to_string());
                Some(writable)
            }
            false => are_known.then(Vec::new),
        }
    }
}
