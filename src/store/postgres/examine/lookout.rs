//! Looking, while a job runs, whether another server of the list can be written to as well.
//!
//! No client can prevent two primaries: it finds one that can be written to, and is content. So
//! the holder of a token looks at the others now and then, each over a connection of its own that
//! is closed afterwards. Only if one of them can be written to is the own server asked too, last:
//! in a switch-over it is none any more by then.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::super::connection::Connection;
use super::super::conninfo::settings::{Host, Settings};
use super::super::statements::Statements;
use super::failover;
use super::met::Met;
use crate::store::Lookout;

/// The longest that a server is waited for: there is nothing to tell of one that is late.
const LONGEST: Duration = Duration::from_secs(3);

/// The servers of a store that are not the one in use.
pub(in crate::store::postgres) struct OtherServers {
    settings: Settings,
    /// Which host is in use.
    used: Arc<AtomicUsize>,
    limit: Duration,
}

impl OtherServers {
    /// None, if the list has one server only.
    pub(in crate::store::postgres) fn of(
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

    fn meet(&self, host: &Host) -> Option<Met> {
        let only = Settings {
            hosts: vec![host.clone()],
            ..self.settings.clone()
        };
        let statement = Statements::new(&only.schema).doctor_server();
        let mut connection = Connection::new(only, self.settings.name());
        let rows = connection.ask(self.limit, &statement, &[]).ok()?;
        rows.first().map(|row| Met::of(host, row))
    }
}

impl Lookout for OtherServers {
    fn primaries(&self) -> Option<Vec<String>> {
        let used = self.used.load(Ordering::Relaxed);
        let hosts = &self.settings.hosts;
        let others = hosts.iter().enumerate().filter(|(index, _)| *index != used);
        let others: Vec<Option<Met>> = others.map(|(_, host)| self.meet(host)).collect();
        let are_known = others.iter().all(Option::is_some);
        let mut met: Vec<Met> = others.into_iter().flatten().collect();
        if met.iter().any(|met| met.is_writable) {
            let own = hosts.get(used).and_then(|host| self.meet(host));
            met.insert(0, own?);
        }
        match failover::writable(&met).as_slice() {
            [] | [_] => are_known.then(Vec::new),
            several => Some(several.iter().map(|met| met.host.clone()).collect()),
        }
    }
}
