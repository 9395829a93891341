//! tokenrun on a real PostgreSQL server: connecting as psql does, and what happens when
//! the server hangs, dies, restarts or fails over.

// clippy.toml allows these in tests, and knows a test by an attribute that the
// helpers lack.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/guide.rs"]
#[allow(dead_code)]
mod blocks;
#[path = "../src/store/postgres/test_server.rs"]
#[allow(dead_code)]
mod server;
#[allow(dead_code, unused_imports)]
mod support;

#[path = "postgres/blocked.rs"]
mod blocked;
#[path = "postgres/clocks.rs"]
mod clocks;
#[path = "postgres/connecting.rs"]
mod connecting;
#[path = "postgres/crowd.rs"]
mod crowd;
#[path = "postgres/doctor.rs"]
mod doctor;
#[path = "postgres/failover.rs"]
mod failover;
#[path = "postgres/faults.rs"]
mod faults;
#[path = "postgres/fence.rs"]
mod fence;
#[path = "postgres/first_use.rs"]
mod first_use;
#[path = "postgres/frozen.rs"]
mod frozen;
#[path = "postgres/guide.rs"]
mod guide;
#[path = "postgres/hanging.rs"]
mod hanging;
#[path = "postgres/pooler.rs"]
mod pooler;
#[path = "postgres/proxy.rs"]
mod proxy;
#[path = "postgres/random.rs"]
mod random;
#[path = "postgres/site.rs"]
#[allow(dead_code)] // the other programs of tests use the rest
mod site;
#[path = "postgres/troubles.rs"]
mod troubles;
#[path = "postgres/two_primaries.rs"]
mod two_primaries;
#[path = "postgres/waiting.rs"]
mod waiting;

use support::programs;
