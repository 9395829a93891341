//! Swaps beside other sessions that lock a row or make it, and in tables whose engine locks no rows.

use std::thread::{JoinHandle, spawn};

use super::client::Client;
use super::server::{Database, Kind, Server};
use super::site::Site;
use crate::support::until;

on_both!(
    a_row_that_another_session_has_locked_is_refused_at_once,
    a_token_that_another_session_makes_slowly_is_not_made_late,
    of_two_swaps_in_a_table_without_locks_of_rows_one_happens,
    tables_of_another_engine_are_refused,
    an_engine_that_changes_beside_a_holder_lets_no_other_in,
);

/// Sends a statement in a session of its own, whose answer may take long.
fn begin(database: &Database<'_>, statement: &str) -> JoinHandle<String> {
    let mut client = Client::of(database, "root");
    client.say("SET time_zone = '+00:00', @tokenrun_epoch = 'x'");
    let statement = statement.to_owned();
    spawn(move || client.say(&statement))
}

/// Waits until so many statements on these tables wait in the server.
fn until_waiting(database: &Database<'_>, count: usize) {
    let others = format!(
        "SELECT count(*) FROM information_schema.processlist WHERE command = 'Query' AND db = '{}'
            AND info LIKE '%tokenrun\\_%' AND info NOT LIKE '%processlist%'
            AND (state LIKE 'Waiting%' OR info LIKE 'INSERT%')",
        database.name
    );
    until("they wait", || {
        let waiting = database.sql(&others);
        if waiting == count.to_string() {
            Ok(())
        } else {
            Err(waiting)
        }
    });
}

/// A grant of the group in the clock epoch x, by this expiry.
fn grant(group: &str, from: &str, to: u32, expiry: &str) -> String {
    format!(
        "CALL tokenrun_swap('{group}', {from}, {to}, 9000000000000, 'running', 'c', NULL, 1, '{{}}', '{expiry}',
            'x', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, 0)"
    )
}

const NEVER: &str = "2999-01-01";

fn a_row_that_another_session_has_locked_is_refused_at_once(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let site = Site::new(database.url());
    site.short("a").end().with_code(0);
    let mut locker = Client::of(&database, "root");
    locker.say("BEGIN; SELECT 1 FROM tokenrun_tokens FOR UPDATE");
    // A swap that waited for the lock would end with another error.
    let refused = site.short("b").end().with_code(75);
    refused.says(&["locked by another session", "SHOW PROCESSLIST"]);
    drop(locker);
    site.short("b").end().with_code(0);
}

fn a_token_that_another_session_makes_slowly_is_not_made_late(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let site = Site::new(database.url());
    site.verb(&["init"]).end().with_code(0);
    let mut maker = Client::of(&database, "root");
    maker.say(
        "BEGIN; INSERT INTO tokenrun_tokens VALUES
            ('new', 1, 1, 'free', NULL, NULL, UTC_TIMESTAMP(6), 'x', '{}', NULL)",
    );
    let expiry = database.sql("SELECT UTC_TIMESTAMP(6) + INTERVAL 2 SECOND");
    let swap = begin(&database, &grant("new", "NULL", 2, &expiry));
    until_waiting(&database, 1);
    until("the swap has expired", || {
        let left = format!("SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), '{expiry}')");
        match database.sql(&left) {
            left if left.starts_with('-') => Ok(()),
            left => Err(left),
        }
    });
    maker.say("ROLLBACK");
    let answer = swap.join().unwrap();
    assert!(answer.starts_with("expired"), "{answer}");
    assert_eq!(database.sql("SELECT COUNT(*) FROM tokenrun_tokens"), "0");
}

/// The answers of two statements that have both passed their first reads before either writes.
fn at_once(database: &Database<'_>, blocked: &str, statements: [String; 2]) -> [String; 2] {
    let mut locker = Client::of(database, "root");
    assert_eq!(locker.say(&format!("LOCK TABLES {blocked} WRITE")), "");
    let begun = statements.map(|statement| begin(database, &statement));
    until_waiting(database, 2);
    locker.say("UNLOCK TABLES");
    let answers = begun.map(|it| it.join().unwrap());
    let mut whats = answers.map(|it| it.split('\t').next().unwrap_or_default().to_owned());
    whats.sort();
    whats
}

fn of_two_swaps_in_a_table_without_locks_of_rows_one_happens(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let site = Site::new(database.url());
    site.short("a").end().with_code(0);
    database.sql("ALTER TABLE tokenrun_tokens ENGINE = MyISAM");
    let version = database.sql("SELECT version FROM tokenrun_tokens");
    let releases = [1, 2].map(|to| {
        format!(
            "CALL tokenrun_swap('job', {version}, {to}, 1, 'free', NULL, NULL, 1, '{{}}', '{NEVER}', 'x', 0,
                NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, 0)"
        )
    });
    // Each has read the version, and then reads the fence.
    let answers = at_once(&database, "tokenrun_fences", releases);
    assert_eq!(answers, ["conflict", "done"]);
}

fn an_engine_that_changes_beside_a_holder_lets_no_other_in(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let site = Site::new(database.url());
    let fast = ["--heartbeat=200ms", "--kill-grace=500ms"];
    let held = site.run("a").with(&fast).start();
    site.store.until_begun("a");
    for table in ["tokenrun_tokens", "tokenrun_fences"] {
        database.sql(&format!("ALTER TABLE {table} ENGINE = MyISAM"));
        let words = [&*format!("{table} has the engine \"MyISAM\"")];
        site.short("b").end().with_code(78).says(&words);
        database.sql(&format!("ALTER TABLE {table} ENGINE = InnoDB"));
    }
    let version = || database.sql("SELECT version FROM tokenrun_tokens");
    let before = version();
    until("a heartbeat is written", || match version() {
        now if now == before => Err(now),
        _ => Ok(()),
    });
    site.store.go(0);
    held.end().with_code(0);
    assert_eq!(
        database.sql("SELECT outcome FROM tokenrun_runs"),
        "succeeded"
    );
}

fn tables_of_another_engine_are_refused(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let site = Site::new(database.url());
    site.short("a").end().with_code(0);
    database.sql("ALTER TABLE tokenrun_tokens ENGINE = MyISAM");
    let version = database.sql("SELECT version FROM tokenrun_tokens");
    let words = ["has the engine \"MyISAM\"", "ENGINE = InnoDB"];
    site.short("a").end().with_code(78).says(&words);
    site.short("b")
        .with(&["--wait=2s"])
        .end()
        .with_code(78)
        .says(&words);
    assert_eq!(database.sql("SELECT version FROM tokenrun_tokens"), version);
    let checked = site.verb(&["doctor"]).end().with_code(78);
    let found = "the table tokenrun_tokens has the engine MyISAM";
    assert!(checked.stdout.contains(found), "{checked:?}");
    database.sql(
        "ALTER TABLE tokenrun_tokens ENGINE = InnoDB; ALTER TABLE tokenrun_fences ENGINE = MyISAM",
    );
    let checked = site.verb(&["doctor"]).end().with_code(78);
    assert!(
        checked.stdout.contains("the table tokenrun_fences has"),
        "{checked:?}"
    );
}
