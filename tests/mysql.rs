//! tokenrun on a real MariaDB server: connecting as its client does, and what happens when the server
//! hangs, dies, restarts, is set up in odd ways or refuses writes.

// clippy.toml allows these in tests, and knows a test by an attribute that the
// helpers lack.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/guide.rs"]
#[allow(dead_code)]
mod blocks;
#[path = "postgres/proxy.rs"]
#[allow(dead_code)]
mod proxy;
#[path = "../src/store/mysql/test_server.rs"]
#[allow(dead_code)]
mod server;
#[path = "postgres/site.rs"]
#[allow(dead_code)]
mod site;
#[allow(dead_code, unused_imports)]
mod support;

#[path = "mysql/client.rs"]
mod client;
#[path = "mysql/connecting.rs"]
mod connecting;
#[path = "mysql/doctor.rs"]
mod doctor;
#[path = "mysql/faults.rs"]
mod faults;
#[path = "mysql/fence.rs"]
mod fence;
#[path = "mysql/first_use.rs"]
mod first_use;
#[path = "mysql/guide.rs"]
mod guide;
#[path = "mysql/guide_sentences.rs"]
mod guide_sentences;
#[path = "mysql/odd_settings.rs"]
mod odd_settings;
