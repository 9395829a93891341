//! What has happened in the stores of the tests of the page.

use std::path::Path;

use serde_json::json;

use super::past::{DAY, HOUR, MINUTE, Past, Ran};
use crate::support::Store;

/// Eight jobs of three nodes, as they may be after a month.
pub(crate) fn eight_jobs() -> Past {
    let mut past = Past::new();
    past.at_once(|past| {
        nightly(past);
        by_the_hour(past);
        others(past);
    });
    past.without_the_first()
}

fn nightly(past: &mut Past) {
    // vm-1 was down for five nights.
    let node = |ago: i64| match ago / DAY {
        12..17 => "vm-2",
        _ => "vm-1",
    };
    let last = past.since(1);
    past.series(
        "backup-database",
        last,
        DAY,
        [20 * MINUTE, 12 * MINUTE],
        node,
    );
    past.fails(
        "backup-database",
        last + 17 * DAY,
        "unknown",
        &json!({"exit_code": null}),
    );
    past.group(
        "backup-database",
        "idle",
        Some("vm-1"),
        last - 25 * MINUTE,
        &json!({"last_outcome": "succeeded"}),
    );
    let last = past.since(2);
    past.series("etl-nightly", last, DAY, [70 * MINUTE, 35 * MINUTE], node);
    past.fails("etl-nightly", last, "failed", &json!({"exit_code": 3}));
    past.fails(
        "etl-nightly",
        last + 6 * DAY,
        "timed_out",
        &json!({"exit_code": null}),
    );
    past.fails(
        "etl-nightly",
        last + 17 * DAY,
        "unknown",
        &json!({"exit_code": null}),
    );
    past.group(
        "etl-nightly",
        "idle",
        Some("vm-1"),
        last - 80 * MINUTE,
        &json!({"last_outcome": "failed"}),
    );
    for client in ["vm-2", "vm-3"] {
        let nights = || (0..10).map(|night| last + night * DAY);
        past.refuses("etl-nightly", client, "held", nights());
        past.refuses(
            "backup-database",
            client,
            "held",
            nights().map(|ago| ago + HOUR),
        );
    }
}

fn by_the_hour(past: &mut Past) {
    let last = HOUR + 4 * MINUTE;
    past.series(
        "reports-hourly",
        last,
        HOUR,
        [3 * MINUTE, 5 * MINUTE],
        |ago| match ago / HOUR {
            0..9 => "vm-3",
            9..11 => "vm-1",
            11..300 => "vm-3",
            _ => "vm-2",
        },
    );
    past.fails(
        "reports-hourly",
        last + 8 * HOUR,
        "lost",
        &json!({"exit_code": null}),
    );
    past.fails(
        "reports-hourly",
        last + 90 * HOUR,
        "failed",
        &json!({"exit_code": 1}),
    );
    past.fails(
        "reports-hourly",
        last + 91 * HOUR,
        "failed",
        &json!({"exit_code": 1}),
    );
    past.act("reports-hourly", 10 * HOUR, "handoff", "vm-3 is rebooted");
    past.group(
        "reports-hourly",
        "running",
        Some("vm-3"),
        4 * MINUTE,
        &json!({"last_outcome": "succeeded", "label": "sales"}),
    );
    past.series(
        "search-index",
        18 * MINUTE,
        30 * MINUTE,
        [4 * MINUTE, 11 * MINUTE],
        |_| "vm-2",
    );
    past.group(
        "search-index",
        "idle",
        Some("vm-2"),
        9 * MINUTE,
        &json!({"last_outcome": "succeeded", "expected": "vm-3"}),
    );
    past.series(
        "geo-import",
        2 * HOUR,
        6 * HOUR,
        [25 * MINUTE, 50 * MINUTE],
        |ago| match ago / DAY {
            0..20 => "vm-3",
            _ => "vm-1",
        },
    );
    past.group(
        "geo-import",
        "running",
        Some("vm-3"),
        2 * HOUR,
        &json!({"silent": 7 * MINUTE}),
    );
    past.sql.execute_batch("DELETE FROM runs WHERE token_group = 'geo-import' AND fence = (SELECT max(fence) FROM runs WHERE token_group = 'geo-import')").unwrap();
}

fn others(past: &mut Past) {
    let last = past.since(3);
    past.series("certificates", last, 12 * HOUR, [12_000, 9_000], |_| "vm-1");
    past.group(
        "certificates",
        "free",
        None,
        last,
        &json!({"last_outcome": "succeeded"}),
    );
    let long = [
        (29 * DAY, 8 * DAY, "vm-1", "succeeded"),
        (21 * DAY, 7 * DAY, "vm-2", "succeeded"),
        (14 * DAY, 9 * DAY, "vm-3", "lost"),
    ];
    let mut before = None;
    for (ago, took, client, outcome) in long {
        let more = before.map_or(
            json!({}),
            |it: &str| json!({"grant": "handoff", "previous_client": it}),
        );
        past.ran(&Ran {
            group: "mail-queue",
            client,
            ago,
            took: took - MINUTE,
            outcome,
            more,
        });
        before = Some(client);
    }
    past.act("mail-queue", 21 * DAY, "handoff", "kernel update");
    past.act("mail-queue", 14 * DAY, "handoff", "back again");
    past.group("mail-queue", "running", Some("vm-1"), 5 * DAY, &json!({"last_outcome": "lost", "run": {"session": "s", "program": "mailer", "grant": "takeover", "previous_client": "vm-3"}}));
    past.series(
        "invoices",
        3 * DAY,
        7 * DAY,
        [2 * HOUR, 20 * MINUTE],
        |_| "vm-2",
    );
    past.act("invoices", 2 * DAY, "pause", "new price list");
    let pause =
        json!({"pause": {"by": "alice", "reason": "new price list"}, "last_outcome": "succeeded"});
    past.group("invoices", "idle", Some("vm-2"), 3 * DAY - 2 * HOUR, &pause);
}

/// So many jobs that run each hour, and now and then fail.
pub(crate) fn many_jobs(count: usize) -> Past {
    let mut past = Past::new();
    past.at_once(|past| {
        for number in 1..=count {
            let name = format!("job-{number:03}");
            let every = [HOUR, DAY, 6 * HOUR][number % 3];
            past.series(
                &name,
                10 * MINUTE,
                every,
                [MINUTE, 8 * MINUTE],
                |ago| match ago / DAY {
                    0..10 => "node-a",
                    _ => "node-b",
                },
            );
            if number % 7 == 0 {
                past.fails(&name, 2 * DAY, "failed", &json!({"exit_code": 1}));
            }
            past.group(&name, "idle", Some("node-a"), 5 * MINUTE, &json!({}));
        }
    });
    past
}

/// A group whose names are what a page must not take for its own.
pub(crate) fn hostile(past: &mut Past, names: &[&str]) {
    for name in names {
        past.group(
            name,
            "idle",
            Some(name),
            MINUTE,
            &json!({"label": name, "host": name}),
        );
        let more =
            json!({"label": name, "program": name, "grant": "takeover", "previous_client": "a<b"});
        past.ran(&Ran {
            group: name,
            client: name,
            ago: HOUR,
            took: MINUTE,
            outcome: "failed",
            more,
        });
        past.act(name, HOUR, name, name);
    }
}

/// Writes the page of a store.
pub(crate) fn write(store: &Store, page: &Path, words: &[&str]) {
    let line = store
        .verb(&["page", "--output", page.to_str().unwrap()])
        .with(words);
    let ended = line.end().with_code(0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
}
