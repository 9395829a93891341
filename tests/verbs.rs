//! What operators and scripts ask of tokenrun, as stories of two nodes, each on a SQLite
//! file, and on real servers of PostgreSQL, MariaDB, Redis, etcd and ZooKeeper.

// clippy.toml allows these in tests, and knows a test by an attribute that the
// helpers lack.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../src/store/etcd/test_server.rs"]
#[allow(dead_code)]
mod etcd_server;
#[path = "../src/store/mysql/test_server.rs"]
#[allow(dead_code)]
mod mysql_server;
#[path = "postgres/proxy.rs"]
#[allow(dead_code)]
mod proxy;
#[path = "../src/store/redis/test_server.rs"]
#[allow(dead_code)]
mod redis_server;
#[path = "../src/store/postgres/test_server.rs"]
#[allow(dead_code)]
mod server;
#[path = "postgres/site.rs"]
#[allow(dead_code)]
mod site;
#[allow(dead_code, unused_imports)]
mod support;
#[path = "../src/store/zookeeper/test_server.rs"]
#[allow(dead_code)]
mod zookeeper_server;

use self::redis_server::{Quorum, Server as RedisServer};
use self::server::Server;
use self::site::Site;
use self::support::Store;

/// Tells a story on a SQLite file.
fn on_sqlite(story: fn(&Site)) {
    let store = Store::new();
    let url = store.database().to_str().unwrap().to_owned();
    story(&Site { store, url });
}

/// Tells it on a PostgreSQL server, in a database of its own.
fn on_postgres(story: fn(&Site)) {
    let database = Server::shared().database();
    story(&Site::new(database.url()));
}

/// Tells it on a MariaDB server, in a database of its own.
fn on_mariadb(story: fn(&Site)) {
    let database = mysql_server::Server::shared().database();
    story(&Site::new(database.url()));
}

/// Tells it on a Redis server, with a prefix of its own. The server has been up for a moment only, and
/// a note says that nothing was lost.
fn on_redis(story: fn(&Site)) {
    let server = RedisServer::shared();
    let prefix = RedisServer::prefix();
    let site = Site::new(format!("{}?prefix={prefix}", server.url()));
    let info = server.cli(&["INFO", "server"]);
    let run = info.lines().find_map(|line| line.strip_prefix("run_id:"));
    let run = &run.unwrap()[..16];
    let note = serde_json::json!({
        "version": 1, "incarnation": run, "epoch": run, "durable_then": false,
        "first_seen": { "tick_ms": 1, "wall_ms": 1 }, "served": "everything", "why": "new",
    });
    let key = format!("{{{prefix}}}:incarnation");
    let words = ["HSET", &key, "version", "1", "document", &note.to_string()];
    server.cli(&words);
    story(&site);
}

/// Tells it on a majority of three Redis servers, with a prefix of its own, which an operator has called new.
fn on_quorum(story: fn(&Site)) {
    let site = Site::new(Quorum::shared().url(&RedisServer::prefix()));
    site.verb(&["init"]).end().with_code(0);
    story(&site);
}

/// Tells it on an etcd server, with a prefix of its own, which an operator has called new.
fn on_etcd(story: fn(&Site)) {
    let site = Site::new(etcd_server::Cluster::shared().url());
    site.verb(&["init"]).end().with_code(0);
    story(&site);
}

/// Tells it on a ZooKeeper server, under a node of its own, which an operator has called new.
fn on_zookeeper(story: fn(&Site)) {
    let site = Site::new(zookeeper_server::Cluster::shared().url());
    site.verb(&["init"]).end().with_code(0);
    story(&site);
}

/// A test for each story on each store. Those about tables, which change them by SQL, are of no
/// other store.
macro_rules! stories {
    ($($story:ident),* $(,)? $(; about tables: $($table:ident),+ $(,)?)?) => {
        mod sqlite {
            $(#[test] fn $story() { crate::on_sqlite(super::$story); })*
            $($(#[test] fn $table() { crate::on_sqlite(super::$table); })+)?
        }
        mod postgres {
            $(#[test] fn $story() { crate::on_postgres(super::$story); })*
            $($(#[test] fn $table() { crate::on_postgres(super::$table); })+)?
        }
        mod redis {
            $(#[test] fn $story() { crate::on_redis(super::$story); })*
        }
        mod quorum {
            $(#[test] fn $story() { crate::on_quorum(super::$story); })*
        }
        mod etcd {
            $(#[test] fn $story() { crate::on_etcd(super::$story); })*
        }
        mod zookeeper {
            $(#[test] fn $story() { crate::on_zookeeper(super::$story); })*
        }
        mod mariadb {
            $(#[test] fn $story() { crate::on_mariadb(super::$story); })*
            $($(#[test] fn $table() { crate::on_mariadb(super::$table); })+)?
        }
    };
}

#[path = "verbs/acts.rs"]
mod acts;
#[path = "verbs/check.rs"]
mod check;
#[path = "verbs/doctor.rs"]
mod doctor;
#[path = "verbs/draining.rs"]
mod draining;
#[path = "verbs/explain.rs"]
mod explain;
#[path = "verbs/fence.rs"]
mod fence;
#[path = "verbs/fields.rs"]
mod fields;
#[path = "verbs/foreign.rs"]
mod foreign;
#[path = "verbs/forgetting.rs"]
mod forgetting;
#[path = "verbs/garbled.rs"]
mod garbled;
#[path = "verbs/hold.rs"]
mod hold;
#[path = "verbs/listings.rs"]
mod listings;
#[path = "verbs/metrics.rs"]
mod metrics;
#[path = "verbs/moving.rs"]
mod moving;
#[path = "verbs/nesting.rs"]
mod nesting;
#[path = "verbs/once.rs"]
mod once;
#[path = "verbs/output.rs"]
mod output;
#[path = "verbs/page.rs"]
mod page;
#[path = "verbs/refusals.rs"]
mod refusals;
#[path = "verbs/rule.rs"]
mod rule;
#[path = "verbs/serving.rs"]
mod serving;
#[path = "verbs/several.rs"]
mod several;
#[path = "verbs/starting.rs"]
mod starting;
#[path = "verbs/versions.rs"]
mod versions;
