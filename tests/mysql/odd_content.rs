//! Tables whose contents an administrator has changed: whatever is in them, tokenrun says what is wrong there,
//! and grants nothing by it.

use super::server::{Database, Kind, Server};
use super::site::Site;
use crate::support::Ended;

on_both!(
    odd_tokens_are_refused_in_words,
    odd_records_are_said_in_words,
    odd_tables_are_refused_in_words,
    a_malformed_waiter_or_token_hides_no_other,
);

/// All that reads.
const READERS: [&[&str]; 8] = [
    &["status"],
    &["history"],
    &["history", "--refusals"],
    &["once", "list"],
    &["explain", "-g", "job"],
    &["metrics"],
    &["page", "--output", "page.html"],
    &["doctor", "-g", "job"],
];

/// With a run and a waiter, an act, a refusal, a key and an output.
fn used(database: &Database<'_>) -> Site {
    let site = Site::new(database.url());
    let recorded = ["--once", "k", "--capture=1k"];
    site.short("a").with(&recorded).end().with_code(0);
    site.verb(&["pause", "-g", "job"]).end().with_code(0);
    site.short("a").end().with_code(75);
    site.verb(&["resume", "-g", "job"]).end().with_code(0);
    site
}

/// Changes the tables, asks everything, and then for a run, which must end in one of these ways and say this.
/// What was wrong.
fn wrongs(database: &Database<'_>, damage: &str, codes: &[i32], words: &str) -> Vec<String> {
    let site = used(database);
    database.sql(&format!("SET sql_mode = ''; {damage}"));
    let mut wrong = Vec::new();
    let mut see = |asked: &[&str], ended: &Ended, codes: &[i32], words: &str| {
        let is_said =
            ended.stderr.contains(words) && (ended.code == Some(0) || !ended.stderr.is_empty());
        let is_expected = ended.code.is_some_and(|code| codes.contains(&code));
        if !is_expected || !is_said || ended.stderr.contains("panicked") {
            wrong.push(format!("{damage}: {asked:?}: {ended:?}"));
        }
    };
    for reader in READERS {
        let ended = site.verb(reader).end();
        let code = ended.code.unwrap_or(-1);
        // Doctor says it on its own output.
        let is_doctor = reader[0] == "doctor" && [69, 77, 78].contains(&code);
        if !is_doctor {
            see(reader, &ended, &[0, 69, 75, 78], "");
        }
    }
    let ended = site.short("b").with(&["--wait=2s"]).end();
    see(&["a run"], &ended, codes, words);
    wrong
}

fn odd_tokens_are_refused_in_words(kind: Kind) {
    let server = Server::shared_of(kind);
    let mut wrong = Vec::new();
    for (damage, column) in [
        ("document = ''", "document"),
        ("document = '{'", "document"),
        ("document = 'null'", "document"),
        ("document = '[]'", "document"),
        ("document = '{\"stamp_of\": 5}'", "document"),
        ("document = JSON_SET(document, '$.keep_ms', -1)", "document"),
        (
            "document = JSON_SET(document, '$.keep_ms', 1e300)",
            "document",
        ),
        ("document = REPEAT('[', 100000)", "document"),
        ("state = 'odd'", "state"),
        ("state = ''", "state"),
        ("fence = -1", "fence"),
        ("stamped_at = '0000-00-00'", "stamped_at"),
        ("stamped_at = '1969-12-31 23:59:59'", "stamped_at"),
        ("client_bound = ''", "client_bound"),
        ("client_bound = '\t'", "client_bound"),
        ("expected_client = CONCAT('a', CHAR(10))", "expected_client"),
    ] {
        let damage = format!("UPDATE tokenrun_tokens SET {damage}");
        let words = format!("in the table tokenrun_tokens, {column} ");
        wrong.extend(wrongs(&server.database(), &damage, &[78], &words));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn odd_records_are_said_in_words(kind: Kind) {
    let server = Server::shared_of(kind);
    let mut wrong = Vec::new();
    for damage in [
        "UPDATE tokenrun_tokens SET fence = 9223372036854775807",
        "UPDATE tokenrun_tokens SET stamped_at = '9999-12-31 23:59:59.999999'",
        "UPDATE tokenrun_tokens
            SET document = JSON_SET(document, '$.takeover_after_ms', 18446744073709551615)",
        "UPDATE tokenrun_tokens SET clock_epoch = ''",
        "UPDATE tokenrun_tokens SET pruning_note = '{'",
        "UPDATE tokenrun_fences SET fence = -9223372036854775808",
        "DELETE FROM tokenrun_fences",
        "UPDATE tokenrun_runs SET document = '{'",
        "UPDATE tokenrun_runs SET outcome = 'odd'",
        "UPDATE tokenrun_runs SET fence = -1, started_at = '0000-00-00'",
        "UPDATE tokenrun_acts SET document = '7'",
        "UPDATE tokenrun_acts SET at = '9999-12-31 23:59:59.999999'",
        "UPDATE tokenrun_refusals SET document = '', count = -1",
        "UPDATE tokenrun_refusal_totals SET total = -1",
        "UPDATE tokenrun_outputs SET document = '{\"bytes\": \"?\"}'",
        "UPDATE tokenrun_done_keys SET document = '[]', done_at = '0000-00-00'",
        "INSERT INTO tokenrun_waiters VALUES ('job', '', 1, SYSDATE(), '', '{')",
        "INSERT INTO tokenrun_waiters VALUES ('job', 's', -1, '0000-00-00', 'x', '{}')",
        "UPDATE tokenrun_meta SET note = '{'",
        "UPDATE tokenrun_meta SET note = NULL",
        "UPDATE tokenrun_meta SET note_version = NULL",
    ] {
        wrong.extend(wrongs(&server.database(), damage, &[0, 69, 75, 78], ""));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn odd_tables_are_refused_in_words(kind: Kind) {
    let server = Server::shared_of(kind);
    let mut wrong = Vec::new();
    for damage in [
        "ALTER TABLE tokenrun_tokens MODIFY fence varchar(50); UPDATE tokenrun_tokens SET fence = 'x'",
        "ALTER TABLE tokenrun_tokens MODIFY fence double; UPDATE tokenrun_tokens SET fence = 1e300",
        "ALTER TABLE tokenrun_tokens MODIFY version bigint NULL; UPDATE tokenrun_tokens SET version = NULL",
        "ALTER TABLE tokenrun_tokens MODIFY document longblob; UPDATE tokenrun_tokens SET document = X'ff'",
        "ALTER TABLE tokenrun_tokens MODIFY stamped_at varchar(50); UPDATE tokenrun_tokens SET stamped_at = 'now'",
        "ALTER TABLE tokenrun_tokens DROP COLUMN document",
        "ALTER TABLE tokenrun_waiters DROP COLUMN document",
        "UPDATE tokenrun_meta SET oldest_reader = '999'",
        "UPDATE tokenrun_meta SET oldest_reader = 'x'",
        "DROP PROCEDURE tokenrun_swap",
        "DROP PROCEDURE tokenrun_swap; CREATE PROCEDURE tokenrun_swap() SELECT 1",
        "DROP TABLE tokenrun_fences",
        "DROP TABLE tokenrun_tokens; CREATE VIEW tokenrun_tokens AS SELECT 1 AS token_group",
    ] {
        wrong.extend(wrongs(&server.database(), damage, &[78], "can't be used"));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn a_malformed_waiter_or_token_hides_no_other(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let site = Site::new(database.url());
    for group in ["bad", "fine", "worse"] {
        site.short_in(group).end().with_code(0);
    }
    database.sql(
        "INSERT INTO tokenrun_waiters (token_group, session, seen_at, clock_epoch, document)
            VALUES ('bad', 's', UTC_TIMESTAMP(6), 'x', '{'), ('bad', 't', UTC_TIMESTAMP(6), 'x', '{');
         UPDATE tokenrun_tokens SET document = '{' WHERE token_group = 'worse'",
    );
    let status = site.verb(&["status"]).end().with_code(78);
    for words in ["fine", "bad", "worse"] {
        assert!(status.stdout.contains(words), "{words}: {status:?}");
    }
    let all = site.verb(&["status", "--json"]).end().with_code(78).json();
    let groups = all.as_array().unwrap().iter();
    let groups: Vec<_> = groups.filter_map(|it| it["group"].as_str()).collect();
    assert!(groups.contains(&"fine"), "{all}");
    let metrics = site.verb(&["metrics"]).end();
    assert!(metrics.stdout.contains("group=\"fine\""), "{metrics:?}");
    // Runs of other groups go on, and those of this one say what is wrong.
    site.short_in("fine").end().with_code(0);
    site.short_in("bad")
        .end()
        .with_code(78)
        .says(&["tokenrun_waiters"]);
}
