//! tokenrun on real MariaDB and MySQL servers: connecting as their clients do, and what happens when the server
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

/// Two tests for each: on MariaDB, and on MySQL, which needs root.
macro_rules! on_both {
    ($($test:ident),+ $(,)?) => {
        mod mariadb {
            $(#[test] fn $test() { super::$test(crate::server::Kind::Mariadb); })+
        }
        mod needs_root_mysql {
            $(#[test] fn $test() { super::$test(crate::server::Kind::Mysql); })+
        }
    };
}

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
#[path = "mysql/logins.rs"]
mod logins;
#[path = "mysql/odd_content.rs"]
mod odd_content;
#[path = "mysql/odd_settings.rs"]
mod odd_settings;
#[path = "mysql/swaps.rs"]
mod swaps;
#[path = "mysql/two_primaries.rs"]
mod two_primaries;
