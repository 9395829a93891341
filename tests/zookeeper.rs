//! tokenrun on real ZooKeeper servers: runs, and what happens when servers die, freeze, forget or are restored.

// clippy.toml allows these in tests, and knows a test by an attribute that the
// helpers lack.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/guide.rs"]
#[allow(dead_code)] // the other programs of tests use the rest
mod blocks;
#[path = "support/certificates.rs"]
mod certificates;
#[path = "../src/store/zookeeper/test_server.rs"]
#[allow(dead_code)]
mod server;
#[path = "postgres/site.rs"]
#[allow(dead_code)]
mod site;
#[allow(dead_code, unused_imports)]
mod support;

#[path = "zookeeper/failures.rs"]
mod failures;
#[path = "quorum/failures.rs"]
mod failures_of_several;
#[path = "zookeeper/guide.rs"]
mod guide;
#[path = "zookeeper/tls.rs"]
mod tls;
#[path = "quorum/tls.rs"]
mod trusted;

use self::server::Cluster;
use self::site::Site;
use support::programs;

/// A store of a test's own, which an operator has called new.
fn new_store(cluster: &Cluster) -> Site {
    let site = Site::new(cluster.url());
    site.verb(&["init"]).end().with_code(0);
    site
}
