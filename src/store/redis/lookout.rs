//! Checks, while a job runs, whether another server of the list is a master as well.
//!
//! As on PostgreSQL no client can prevent two masters. Only if another server is one, the server in use
//! is asked too, last: after a switch-over it is none any more by then.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::Value;

use super::connection::Connection;
use super::settings::{Host, Settings};
use crate::store::Lookout;

/// The longest wait for a server: a late one is not reported.
const LONGEST: Duration = Duration::from_secs(3);

/// The servers of a store that are not the one in use.
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

    /// Whether a server is a master, if it answers.
    fn is_master(&self, host: &Host) -> Option<bool> {
        let mut connection = Connection::new(self.settings.only(host), "tokenrun:lookout");
        let mut command = redis::cmd("INFO");
        command.arg("replication");
        match connection.ask(self.limit, &command).ok()? {
            Value::BulkString(said) => Some(String::from_utf8_lossy(&said).contains("role:master")),
            _ => None,
        }
    }
}

impl Lookout for OtherServers {
    fn primaries(&self) -> Option<Vec<String>> {
        let used = self.used.load(Ordering::Relaxed);
        let hosts = &self.settings.hosts;
        let others = hosts.iter().enumerate().filter(|(index, _)| *index != used);
        let asked: Vec<(&Host, Option<bool>)> = others
            .map(|(_, host)| (host, self.is_master(host)))
            .collect();
        let are_known = asked.iter().all(|(_, is)| is.is_some());
        let masters = asked.iter().filter(|(_, is)| *is == Some(true));
        let masters: Vec<String> = masters.map(|(host, _)| host.to_string()).collect();
        let own = hosts.get(used)?;
        if masters.is_empty() || self.is_master(own) != Some(true) {
            return (are_known || !masters.is_empty()).then(Vec::new);
        }
        Some(std::iter::once(own.to_string()).chain(masters).collect())
    }
}
