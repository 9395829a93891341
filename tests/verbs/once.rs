//! `--once`: a key that is done is not run again, on whichever node.

use serde_json::Value;

use crate::site::{GROUP, Site};
use crate::support::{Line, PROVING, until};

stories!(
    a_key_that_is_done_is_not_run_again_on_either_node,
    a_waiter_whose_key_is_done_meanwhile_leaves_the_token_where_it_is,
    a_key_whose_run_failed_is_run_again,
    two_nodes_with_late_clocks_make_one_run,
    a_key_can_be_listed_and_forgotten,
    a_session_that_lost_its_token_marks_its_key_late,
    old_history_goes_and_keys_stay,
    a_key_must_be_a_name,
    ;
    about tables:
    a_success_that_can_not_be_recorded_is_reported_as_such,
    a_success_whose_record_was_deleted_is_written_whole,
    a_success_after_the_store_was_put_back_under_the_job_is_written_whole,
    records_that_a_leap_of_the_clock_makes_look_old_stay,
    a_store_without_a_place_for_the_note_is_not_pruned,
);

/// A run with a key, whose job appends a line to `ran`.
fn run(site: &Site, client: &str, key: &str) -> Line {
    let line = site.run(client).with(&["--once", key]);
    line.script("echo \"$TOKENRUN_CLIENT_ID $TOKENRUN_ONCE_KEY\" >> ran")
}

fn ran(site: &Site) -> String {
    std::fs::read_to_string(site.file("ran")).unwrap_or_default()
}

fn keys(site: &Site) -> Vec<Value> {
    let ended = site.verb(&["once", "list", "--json", "-g", GROUP]).end();
    ended.with_code(0).json().as_array().unwrap().clone()
}

fn a_key_that_is_done_is_not_run_again_on_either_node(site: &Site) {
    run(site, "node-a", "2026-11-21").end().with_code(0);
    for client in ["node-a", "node-b"] {
        let done = run(site, client, "2026-11-21").end().with_code(0);
        done.says(&[
            "2026-11-21 is done already",
            "node-a ran it",
            "was not started",
        ]);
    }
    let chosen = run(site, "node-b", "2026-11-21").with(&["--done-exit-code=9"]);
    let chosen = chosen.with(&["--report", "report.json"]);
    chosen.end().with_code(9);
    let report = std::fs::read_to_string(site.file("report.json")).unwrap();
    assert!(report.contains("\"outcome\": \"done\""), "{report}");
    run(site, "node-b", "2026-11-22").end().with_code(0);
    assert_eq!(ran(site), "node-a 2026-11-21\nnode-b 2026-11-22\n");
    // A key that is done is done, in any state of the token.
    site.verb(&["pause", "-g", GROUP]).end().with_code(0);
    run(site, "node-b", "2026-11-21").end().with_code(0);
    run(site, "node-b", "2026-11-23").end().with_code(75);
    let history = site
        .verb(&["history", "--json", "--client", "node-a"])
        .end();
    assert_eq!(history.with_code(0).json()[0]["once_key"], "2026-11-21");
}

/// Each night the token would move to a node that runs nothing.
fn a_waiter_whose_key_is_done_meanwhile_leaves_the_token_where_it_is(site: &Site) {
    let early = run(site, "node-a", "night").with(&["--keep=1h"]);
    let early = early.script(PROVING).start();
    site.store.until_begun("node-a");
    let late = ["node-b", "node-c"].map(|client| {
        let waits = run(site, client, "night").with(&["--wait", "--done-exit-code=9"]);
        waits.start()
    });
    until_waiting(site, 2);
    let metrics = || {
        let text = site.verb(&["metrics"]).end().with_code(0).stdout;
        let of = |name: &str| {
            text.lines()
                .find(|line| line.starts_with(name))
                .map(str::to_owned)
        };
        [of("tokenrun_takeovers_total"), of("tokenrun_grants_total")]
    };
    let before = metrics();
    site.store.go(0);
    early.end().with_code(0);
    for waiter in late {
        let said = waiter.end().with_code(9).stderr;
        assert!(said.contains("night is done already"), "{said}");
    }
    assert_eq!(ran(site), "");
    assert_eq!(metrics(), before);
    let status = site.verb(&["status", "--json", "-g", GROUP]).end().json();
    let status = &status[0];
    assert_eq!(
        (&status["client"], &status["state"]),
        (&"node-a".into(), &"idle".into())
    );
    // At once, or when their places lapse: a busy machine may be too slow for the former.
    until_waiting(site, 0);
    let history = site.verb(&["history", "--json"]).end().with_code(0).json();
    let clients: Vec<_> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["client"])
        .collect();
    assert_eq!(clients, ["node-a"]);
}

fn until_waiting(site: &Site, sessions: u64) {
    until("they are in the queue", || {
        let status = site.verb(&["status", "--json", "-g", GROUP]).end().json();
        match status[0]["waiters"].as_u64() {
            Some(found) if found == sessions => Ok(()),
            found => Err(format!("{found:?}")),
        }
    });
}

fn a_key_whose_run_failed_is_run_again(site: &Site) {
    let failing = site.run("node-a").with(&["--once", "k"]);
    failing.script("exit 3").end().with_code(3);
    assert_eq!(keys(site), Vec::<Value>::new());
    let killed = site.run("node-a").with(&["--once", "k"]);
    killed.script("kill -9 $$").end().with_code(137);
    run(site, "node-b", "k").end().with_code(0);
    assert_eq!(ran(site), "node-b k\n");
}

fn two_nodes_with_late_clocks_make_one_run(site: &Site) {
    let early = site.run("node-a").with(&["--once", "night"]).start();
    site.store.until_begun("node-a");
    run(site, "node-b", "night").end().with_code(75);
    site.store.go(0);
    early.end().with_code(0);
    // keep is 0 here: without the key node-b would run now.
    run(site, "node-b", "night")
        .end()
        .with_code(0)
        .says(&["is done already"]);
    assert_eq!(ran(site), "");
    // Many at one instant.
    let runs: Vec<_> = (0..8)
        .map(|n| run(site, &format!("node-{n}"), "rush").start())
        .collect();
    for one in runs {
        let ended = one.end();
        assert!(matches!(ended.code, Some(0 | 75)), "{ended:?}");
    }
    assert_eq!(ran(site).lines().count(), 1, "{}", ran(site));
}

fn a_key_can_be_listed_and_forgotten(site: &Site) {
    run(site, "node-a", "one").end().with_code(0);
    run(site, "node-a", "two").end().with_code(0);
    let listed = keys(site);
    assert_eq!((&listed[0]["once_key"], listed.len()), (&"two".into(), 2));
    let mut names: Vec<_> = listed[0].as_object().unwrap().keys().collect();
    names.sort();
    assert_eq!(
        names,
        ["client", "done_at", "fence", "group", "once_key", "session"]
    );
    let table = site.verb(&["once", "list"]).end().with_code(0).stdout;
    assert!(
        table.starts_with("DONE") && table.contains("node-a"),
        "{table}"
    );
    let forget = |key: &str| {
        let line = site.verb(&["once", "forget", "-g", GROUP, key]);
        line.with(&["--reason", "it was empty"]).end().with_code(0)
    };
    forget("one").says(&["one of \"job\"", "is forgotten"]);
    forget("one").says(&["is not done", "nothing was changed"]);
    assert_eq!(keys(site).len(), 1);
    run(site, "node-b", "one").end().with_code(0);
    assert_eq!(ran(site).lines().count(), 3);
    let history = site.verb(&["history", "--json"]).end().with_code(0).json();
    let act = history
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it.get("act").is_some());
    let act = act.unwrap();
    assert_eq!(
        (&act["act"], &act["once_key"]),
        (&"once_forget".into(), &"one".into())
    );
    for words in [&["once", "list"][..], &["once", "forget", "k"]] {
        let unknown = site.verb(words).with(&["-g", "nigthly"]).end();
        unknown.with_code(78).says(&["no group \"nigthly\""]);
    }
}

fn a_session_that_lost_its_token_marks_its_key_late(site: &Site) {
    let held = site.run("node-a").with(&["--once", "late"]).start();
    site.store.until_begun("node-a");
    site.verb(&["release", "--force", "-g", GROUP])
        .end()
        .with_code(0);
    site.store.go(0);
    // The job's own end counts, and is reported.
    held.end().with_code(0);
    assert_eq!(keys(site)[0]["once_key"], "late");
    run(site, "node-b", "late")
        .end()
        .with_code(0)
        .says(&["is done already"]);
}

fn a_success_that_can_not_be_recorded_is_reported_as_such(site: &Site) {
    let line = site.made().run("node-a").hasty().with(&["--once", "k"]);
    let held = line.start();
    site.store.until_begun("node-a");
    site.sql("ALTER TABLE runs RENAME TO moved");
    site.store.go(0);
    let ended = held.end().with_code(74);
    let words = "it is not known whether the key of \"job\" is done there";
    assert!(ended.stderr.contains(words), "{ended:?}");
    site.sql("ALTER TABLE moved RENAME TO runs");
    assert_eq!(keys(site), Vec::<Value>::new());
}

/// What a run leaves: its report, and what history and the keys say of it.
fn assert_recorded_whole(site: &Site) {
    let report = std::fs::read_to_string(site.file("report.json")).unwrap();
    assert!(report.contains("\"recorded\": true"), "{report}");
    let history = site.verb(&["history", "--json"]).end().with_code(0).json();
    let runs = history.as_array().unwrap();
    assert_eq!(runs.len(), 1, "{history}");
    let run = &runs[0];
    assert_eq!(run["outcome"], "succeeded", "{history}");
    assert_eq!(run["client"], "node-a", "{history}");
    assert_eq!(run["once_key"], "k", "{history}");
    assert!(
        run["started_at"].is_string() && run["ended_at"].is_string(),
        "{history}"
    );
    // Of all groups: the token itself may be gone.
    let keys = site.verb(&["once", "list", "--json"]).end().with_code(0);
    assert_eq!(keys.json().as_array().unwrap().len(), 1);
    let again = site.short("node-a").with(&["--once", "k"]).end();
    again.with_code(0).says(&["is done already"]);
}

fn a_success_whose_record_was_deleted_is_written_whole(site: &Site) {
    let line = site
        .run("node-a")
        .with(&["--once", "k", "--report", "report.json"]);
    let run = line.start();
    site.store.until_begun("node-a");
    site.sql("DELETE FROM runs");
    site.store.go(0);
    let ended = run.end().with_code(0);
    assert_eq!(
        ended.messages().len(),
        0,
        "the token was its own: {ended:?}"
    );
    assert_recorded_whole(site);
}

fn a_success_after_the_store_was_put_back_under_the_job_is_written_whole(site: &Site) {
    let line = site
        .run("node-a")
        .with(&["--once", "k", "--report", "report.json"]);
    let run = line.start();
    site.store.until_begun("node-a");
    site.sql("DELETE FROM runs");
    site.sql("DELETE FROM tokens WHERE token_group <> ''");
    site.store.go(0);
    run.end().with_code(0).says(&["no longer had the token"]);
    assert_recorded_whole(site);
}

/// A run that takes longer than a second, after which what is too old goes.
fn slow(site: &Site, words: &[&str]) {
    let line = site.run("node-a").with(words).script("sleep 1.2");
    line.end().with_code(0);
}

/// How many runs and acts are listed.
fn listed(site: &Site) -> usize {
    let line = site.verb(&["history", "--json"]);
    line.end().with_code(0).json().as_array().unwrap().len()
}

/// How many runs are listed; acts are not counted.
fn runs_listed(site: &Site) -> usize {
    let listed = site.verb(&["history", "--json"]).end().with_code(0).json();
    let entries = listed.as_array().unwrap().iter();
    entries.filter(|entry| entry["act"].is_null()).count()
}

/// What a clock that leaps ahead by ten years makes of the wall times before it.
const LEAP: &str = "UPDATE runs SET started_at = '2016-11-21T02:00:00.000Z',
        ended_at = '2016-11-21T02:00:01.000Z', written_at = '2016-11-21T02:00:01.000Z';
    UPDATE acts SET at = '2016-11-21T02:00:00.000Z';
    UPDATE done_keys SET done_at = '2016-11-21T02:00:01.000Z'";

fn records_that_a_leap_of_the_clock_makes_look_old_stay(site: &Site) {
    run(site, "node-a", "k").end().with_code(0);
    site.verb(&["pause", "-g", GROUP]).end().with_code(0);
    site.verb(&["resume", "-g", GROUP]).end().with_code(0);
    slow(site, &[]);
    site.sql(LEAP);
    for before in 4..6 {
        assert_eq!(listed(site), before);
        slow(site, &[]);
    }
    assert_eq!((listed(site), keys(site).len()), (6, 1));
    let again = run(site, "node-b", "k").end();
    again.with_code(0).says(&["is done already"]);
    assert_eq!(ran(site), "node-a k\n");
}

fn a_store_without_a_place_for_the_note_is_not_pruned(site: &Site) {
    run(site, "node-a", "k").end().with_code(0);
    site.sql("ALTER TABLE tokens DROP COLUMN pruning_note");
    if site.is_mysql() {
        // There the table counts as made anew.
        let now = "SELECT CONCAT(
            SUBSTRING_INDEX(JSON_UNQUOTE(JSON_EXTRACT(note, '$.incarnation')), '_', 2), '_',
            DATE_FORMAT(create_time, '%Y-%m-%dT%H:%i:%sZ')
        ) FROM tokenrun_meta, information_schema.tables
        WHERE table_schema = DATABASE() AND table_name = 'tokenrun_tokens'";
        let incarnation = site.in_mysql(&format!("SET time_zone = '+00:00'; {now}"));
        site.verb(&["settle", "--yes", &incarnation])
            .end()
            .with_code(0);
    }
    for _ in 0..2 {
        slow(site, &["--history-retain=500ms", "--once-retain=500ms"]);
    }
    assert_eq!((runs_listed(site), keys(site).len()), (3, 1));
}

fn old_history_goes_and_keys_stay(site: &Site) {
    for n in 0..4 {
        run(site, "node-a", &format!("k{n}")).end().with_code(0);
    }
    // A run that takes longer than a second looks after the old ones: the first notes that they
    // are there, and the next that they have been for longer than a second.
    for _ in 0..2 {
        slow(site, &["--history-retain=500ms"]);
    }
    until("the old ones are gone", || match listed(site) {
        1 => Ok(()),
        many => Err(format!("{many}")),
    });
    assert_eq!(keys(site).len(), 4);
    run(site, "node-b", "k0")
        .end()
        .with_code(0)
        .says(&["is done already"]);
    slow(site, &["--once-retain=500ms"]);
    until("the keys are gone", || match keys(site).len() {
        0 => Ok(()),
        many => Err(format!("{many}")),
    });
}

fn a_key_must_be_a_name(site: &Site) {
    for (key, why) in [("", "empty"), ("a\nb", "control character")] {
        let ended = run(site, "node-a", key).end().with_code(64);
        ended.says(&["--once", why]);
    }
    let long = "x".repeat(201);
    run(site, "node-a", &long)
        .end()
        .with_code(64)
        .says(&["201"]);
    assert_eq!(ran(site), "");
}
