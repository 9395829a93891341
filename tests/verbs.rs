//! What operators and scripts ask of tokenrun, as stories of two nodes, each on a SQLite
//! file, on a real PostgreSQL server and on a real MariaDB server.

// clippy.toml allows these in tests, and knows a test by an attribute that the
// helpers lack.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../src/store/mysql/test_server.rs"]
#[allow(dead_code)]
mod mysql_server;
#[path = "../src/store/postgres/test_server.rs"]
#[allow(dead_code)]
mod server;
#[path = "postgres/site.rs"]
#[allow(dead_code)]
mod site;
#[allow(dead_code, unused_imports)]
mod support;

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

/// Three tests for each story.
macro_rules! stories {
    ($($story:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test] fn $story() { crate::on_sqlite(super::$story); })+
        }
        mod postgres {
            $(#[test] fn $story() { crate::on_postgres(super::$story); })+
        }
        mod mariadb {
            $(#[test] fn $story() { crate::on_mariadb(super::$story); })+
        }
    };
}

#[path = "verbs/acts.rs"]
mod acts;
#[path = "verbs/check.rs"]
mod check;
#[path = "verbs/doctor.rs"]
mod doctor;
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
#[path = "verbs/several.rs"]
mod several;
#[path = "verbs/versions.rs"]
mod versions;
