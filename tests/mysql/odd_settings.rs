//! Servers whose defaults are odd: no wrong outcome, whatever they are.

use super::server::Server;
use super::site::Site;

/// A run, a refusal, a second run and a key.
fn works(site: &Site) {
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

#[test]
fn odd_defaults_of_the_server_change_nothing() {
    for configuration in [
        "transaction-isolation = SERIALIZABLE",
        "transaction-isolation = READ-UNCOMMITTED",
        "sql_mode = ORACLE",
        "sql_mode = ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE",
        "sql_mode = ''",
        "autocommit = 0",
        "lock_wait_timeout = 1000000\ninnodb_lock_wait_timeout = 10000",
        "max_statement_time = 0.001",
        "default-time-zone = +05:45",
        "completion_type = RELEASE",
        "SET GLOBAL sql_select_limit = 1",
        "character-set-server = latin1\nskip-character-set-client-handshake",
        "transaction-read-only = ON",
        "wait_timeout = 1",
        "init_connect = 'SET autocommit = 0, sql_mode = \"\"'",
    ] {
        let server = Server::start(&[]);
        let database = server.database();
        // For an administrator some of them do not count.
        let grant = format!("GRANT ALL ON {}.* TO u", database.name);
        database.sql(&format!("CREATE USER u; {grant}"));
        if configuration.starts_with("SET") {
            database.sql(configuration);
        } else {
            server.stop(nix::sys::signal::Signal::SIGTERM);
            server.configure(&[configuration]);
            server.run();
        }
        println!("{configuration}");
        works(&Site::new(database.url().replace("root@", "u@")));
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
