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

/// What a server is.
#[derive(PartialEq, Eq)]
enum Role {
    /// A master, with the id of its process.
    Master(String),
    Other,
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

    /// The role of a server, if it answers.
    fn role(&self, host: &Host) -> Option<Role> {
        let mut connection = Connection::new(self.settings.only(host), "tokenrun:lookout");
        let mut command = redis::cmd("INFO");
        command.arg("server").arg("replication");
        let Value::BulkString(said) = connection.ask(self.limit, &command).ok()? else {
            return None;
        };
        let said = String::from_utf8_lossy(&said);
        let process = said.lines().find_map(|line| line.strip_prefix("run_id:"));
        Some(match (said.contains("role:master"), process) {
            (true, Some(process)) => Role::Master(process.trim().to_owned()),
            _ => Role::Other,
        })
    }
}

impl Lookout for OtherServers {
    fn primaries(&self) -> Option<Vec<String>> {
        let used = self.used.load(Ordering::Relaxed);
        let hosts = &self.settings.hosts;
        let others = hosts.iter().enumerate().filter(|(index, _)| *index != used);
        let asked: Vec<(&Host, Option<Role>)> =
            others.map(|(_, host)| (host, self.role(host))).collect();
        let are_known = asked.iter().all(|(_, role)| role.is_some());
        let is_master = |role: &Option<Role>| matches!(role, Some(Role::Master(_)));
        if !asked.iter().any(|(_, role)| is_master(role)) {
            return are_known.then(Vec::new);
        }
        let own_host = hosts.get(used)?;
        let own = self.role(own_host);
        if !is_master(&own) {
            return Some(Vec::new());
        }
        // Another name of the server in use is no other server.
        let masters = asked
            .iter()
            .filter(|(_, role)| is_master(role) && *role != own);
        let masters: Vec<String> = masters.map(|(host, _)| host.to_string()).collect();
        if masters.is_empty() {
            return are_known.then(Vec::new);
        }
        let names = std::iter::once(own_host.to_string()).chain(masters);
        Some(names.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redis::test_server::Server;

    fn primaries(hosts: &[&Server]) -> Option<Vec<String>> {
        let ports = hosts
            .iter()
            .map(|server| format!("127.0.0.1:{}", server.port()));
        let url = format!("redis://{}", ports.collect::<Vec<_>>().join(","));
        let settings = Settings::read(&url, |_| None).unwrap();
        let used = Arc::new(AtomicUsize::new(0));
        OtherServers::of(&settings, used, LONGEST)
            .unwrap()
            .primaries()
    }

    #[test]
    fn another_master_is_found_and_another_name_is_none() {
        let (one, other) = (Server::start(&[]), Server::start(&[]));
        let [name, another] = [&one, &other].map(|it| format!("127.0.0.1:{}", it.port()));
        assert_eq!(primaries(&[&one, &one]), Some(Vec::new()));
        assert_eq!(
            primaries(&[&one, &other]),
            Some(vec![name.clone(), another.clone()])
        );
        assert_eq!(primaries(&[&one, &one, &other]), Some(vec![name, another]));
        other.follow(&one);
        assert_eq!(primaries(&[&one, &other]), Some(Vec::new()));
        other.kill();
        assert_eq!(primaries(&[&one, &other]), None);
    }
}
