//! etcd: tokens for many hosts, in a cluster that loses no commit.
//!
//! All keys begin with one prefix. An entry is one key, and one more for its place in each list. A look reads the
//! entries and the clock in one flight; a commit is one transaction that compares the server's own revisions. No answer
//! of etcd has a time: the clock is a lease that never ends (`clock.rs`).

pub mod examine;
pub mod settings;

mod clock;
mod commit;
mod entry;
mod fault;
mod flights;
mod grpc;
mod link;
mod look;
mod messages;
mod seen;

#[cfg(test)]
mod late_tests;
#[cfg(test)]
mod many_tests;
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
pub(super) type EtcdKv = FlightKv<Link>;

/// A store in a cluster that is connected to at the first request. A call takes at most `timeout`.
pub(super) fn store(settings: Settings, timeout: Duration) -> KvStore {
    KvStore::new(EtcdKv::over(settings, timeout))
}
