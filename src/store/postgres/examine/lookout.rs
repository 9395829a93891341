//! Checks, while a job runs, whether another server of the list accepts writes as well.
//!
//! No client can prevent two primaries: it uses the first server that accepts writes. So the holder
//! of a token checks the others from time to time, each over a separate connection that is closed
//! afterwards. Only if one of them accepts writes, the server in use is checked too, last: after a
//! switch-over it does not accept them any more by then.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::super::connection::Connection;
use super::super::conninfo::settings::{Host, Settings};
use super::super::statements::Statements;
use super::failover;
use super::met::Met;
use crate::store::Lookout;

/// The longest wait for a server: a late one is not reported.
const LONGEST: Duration = Duration::from_secs(3);

/// The servers of a store that are not the one in use.
pub(in crate::store::postgres) struct OtherServers {
    settings: Settings,
    /// The index of the host in use.
    used: Arc<AtomicUsize>,
    limit: Duration,
}

impl OtherServers {
    /// `None` if the list has one server only.
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
