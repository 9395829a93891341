//! Servers whose defaults are odd: no wrong outcome, whatever they are.

use super::server::{Kind, Server};
use super::site::Site;

on_both!(odd_defaults_of_the_server_change_nothing,);

/// A run, a refusal, a second run and a key.
pub(crate) fn works(site: &Site) {
    let held = site.run("a").start();
    site.store.until_begun("a");
    site.short("b").end().with_code(75);
    site.store.go(0);
    held.end().with_code(0);
    for _ in 0..2 {
        site.short("b")
            .with(&["--once", "it's \\ \"k\""])
            .end()
            .with_code(0);
    }
    let history = site.verb(&["history", "--json"]).end().json();
    assert_eq!(history.as_array().unwrap().len(), 2, "{history}");
    let marks = site.verb(&["once", "list", "--json"]).end().json();
    assert_eq!(marks[0]["once_key"], "it's \\ \"k\"");
}

fn odd_defaults_of_the_server_change_nothing(kind: Kind) {
    let both = [
        "transaction-isolation = SERIALIZABLE",
        "transaction-isolation = READ-UNCOMMITTED",
        "sql_mode = ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE",
        "sql_mode = ''",
        "autocommit = 0",
        "lock_wait_timeout = 1000000\ninnodb_lock_wait_timeout = 10000",
        "default-time-zone = +05:45",
        "completion_type = RELEASE",
        "SET GLOBAL sql_select_limit = 1",
        "transaction-read-only = ON",
        "innodb_default_row_format = compact",
        "wait_timeout = 1",
        "init_connect = 'SET autocommit = 0, sql_mode = \"\"'",
    ];
    let own: &[&str] = match kind {
        Kind::Mariadb => &[
            "sql_mode = ORACLE",
            "max_statement_time = 0.001",
            "character-set-server = latin1\nskip-character-set-client-handshake",
        ],
        Kind::Mysql => &[
            "max_execution_time = 1",
            "character-set-server = latin1",
            "sql_require_primary_key = ON",
            "gtid_mode = ON\nenforce_gtid_consistency = ON",
            "explicit_defaults_for_timestamp = OFF",
            "sql_generate_invisible_primary_key = ON",
        ],
    };
    let server = Server::start_of(kind, &[]);
    // For an administrator some of them do not count.
    let prepared = both.iter().chain(own).map(|configuration| {
        let database = server.database();
        let user = format!("u_{}", database.name);
        let grant = format!("GRANT ALL ON {}.* TO {user}", database.name);
        database.sql(&format!("CREATE USER {user}; {grant}"));
        let url = database.url().replace("root@", &format!("{user}@"));
        (*configuration, database, Site::new(url))
    });
    for (configuration, database, site) in prepared.collect::<Vec<_>>() {
        println!("{configuration}");
        server.stop(nix::sys::signal::Signal::SIGTERM);
        if configuration.starts_with("SET") {
            server.configure(&[]);
            server.run();
            database.sql(configuration);
        } else {
            server.configure(&[configuration]);
            server.run();
        }
        works(&site);
    }
}

#[test]
fn a_server_that_can_not_record_the_writes_says_so() {
    let server = Server::start(&["log_bin", "binlog_format = STATEMENT", "sync_binlog = 1"]);
    let database = server.database();
    let site = Site::new(database.url());
    let ended = site.short("a").end();
    assert!([69, 78].contains(&ended.code.unwrap()), "{ended:?}");
    assert!(ended.stderr.contains("binlog_format"), "{ended:?}");
    let checked = site.verb(&["doctor"]).end().with_code(78);
    assert!(
        checked.stdout.contains("binlog_format is STATEMENT"),
        "{checked:?}"
    );
}

#[test]
fn a_binary_log_in_rows_is_fine() {
    let server = Server::start(&["log_bin", "binlog_format = ROW", "sync_binlog = 1"]);
    works(&Site::new(server.database().url()));
}

/// The server does not let the tables be InnoDB's, which is no server that is read-only.
#[test]
fn a_server_that_enforces_another_engine_says_so() {
    let server = Server::start(&["enforce_storage_engine = Aria"]);
    let site = Site::new(server.database().url());
    let ended = site.short("a").end().with_code(78);
    ended.says(&["NO_ENGINE_SUBSTITUTION", "enforce_storage_engine"]);
    assert!(!ended.stderr.contains("read-only"), "{ended:?}");
}
