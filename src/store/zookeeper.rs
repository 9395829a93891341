//! ZooKeeper: tokens for many hosts, in an ensemble that loses no commit.
//!
//! All nodes are under one path. A look writes one node, in the same flight as its reads: the server's answer has the
//! leader's time, and makes the reads current. A commit is one transaction that compares the nodes' versions. The clock is
//! the leader's wall clock, and a clock epoch is a leader's term of office.

pub mod examine;
pub mod settings;

mod channel;
mod fault;
mod flights;
mod link;
mod look;
mod seen;
mod steps;
mod tree;
mod wire;

#[cfg(test)]
mod server_tests;
#[cfg(test)]
mod test_peer;
#[cfg(test)]
// Shared with the integration tests, which use more of it.
#[allow(dead_code)]
pub(crate) mod test_server;

use std::time::Duration;

use self::link::Link;
use self::settings::Settings;
use super::kv::KvStore;
use super::kv::flights::FlightKv;

/// Keys and values in such servers.
pub(super) type ZkKv = FlightKv<Link>;

/// A store in an ensemble that is connected to at the first request. A call takes at most `timeout`, and so long the
/// servers may carry a request out: then its session has ended.
pub(super) fn store(settings: Settings, timeout: Duration) -> KvStore {
    KvStore::new(ZkKv::over(settings.with_session(timeout), timeout))
}
