//! `status` and `history`: tables for people, JSON with stable names for scripts.

use serde_json::Value;

use crate::support::Store;

const STATUS: [&str; 42] = [
    "group",
    "state",
    "client",
    "expected_client",
    "session",
    "fence",
    "host",
    "pid",
    "label",
    "heartbeat_at",
    "heartbeat_age_ms",
    "takeover_in_ms",
    "acquired_at",
    "not_before",
    "observed_until",
    "paused_by",
    "paused_reason",
    "paused_until",
    "client_paused_by",
    "client_paused_reason",
    "client_paused_until",
    "gives_way",
    "handoff_to",
    "handoff_at",
    "revoke_requested",
    "waiters",
    "queue",
    "program",
    "once_key",
    "grant",
    "takeover_after_ms",
    "keep_ms",
    "head_start_ms",
    "last_run",
    "last_outcome",
    "last_success_at",
    "not_started",
    "runs",
    "failures",
    "takeovers",
    "losses",
    "released_at",
];

const HISTORY: [&str; 19] = [
    "group",
    "fence",
    "session",
    "client",
    "previous_client",
    "host",
    "pid",
    "label",
    "once_key",
    "grant",
    "started_at",
    "ended_at",
    "outcome",
    "exit_code",
    "signal",
    "revoked",
    "reason",
    "moved_on",
    "program",
];

fn names(object: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = object.as_object().unwrap().keys().map(|k| &**k).collect();
    names.sort_unstable();
    names
}

fn sorted<const N: usize>(mut names: [&str; N]) -> [&str; N] {
    names.sort_unstable();
    names
}

#[test]
fn status_has_the_fields_that_it_promises() {
    let store = Store::new();
    let run = store.free_run("node-a").with(&["--label", "the label"]);
    let run = run.start();
    store.until_begun("node-a");
    let status = store.status();
    assert_eq!(names(&status), sorted(STATUS));
    assert_eq!(status["state"], "running");
    assert_eq!(status["label"], "the label");
    assert_eq!(status["pid"], run.pid());
    assert_eq!(status["runs"], 1);
    let age = status["heartbeat_age_ms"].as_u64().unwrap();
    let left = status["takeover_in_ms"].as_u64().unwrap();
    assert_eq!(age + left, 300_000);
    for time in ["heartbeat_at", "acquired_at"] {
        let text = status[time].as_str().unwrap();
        assert!(text.len() == 24 && text.ends_with('Z'), "{time}: {text}");
    }
    store.go(0);
    run.end().with_code(0);
    assert_eq!(names(&store.status()), sorted(STATUS));
    assert_eq!(store.status()["last_outcome"], "succeeded");
    assert_eq!(store.status()["last_run"]["outcome"], "succeeded");
}

#[test]
fn history_has_the_fields_that_it_promises() {
    let store = Store::new();
    let run = store.free_run("node-a").start();
    store.until_begun("node-a");
    let running = &store.history()[0];
    assert_eq!(names(running), sorted(HISTORY));
    assert_eq!(running["outcome"], "running");
    assert_eq!(running["ended_at"], Value::Null);
    store.go(4);
    run.end().with_code(4);
    let failed = &store.history()[0];
    assert_eq!(names(failed), sorted(HISTORY));
    assert_eq!(
        (&failed["outcome"], &failed["exit_code"]),
        (&"failed".into(), &4.into())
    );
    assert!(failed["ended_at"].is_string());
    assert_eq!(store.status()["failures"], 1);
}

#[test]
fn tables_have_a_head_and_a_line_each() {
    let store = Store::new();
    for code in [0, 3] {
        let script = format!("exit {code}");
        let line = store.run("node-a").with(&["--keep=1h"]).script(&script);
        line.end().with_code(code);
    }
    let status = store.verb(&["status"]).end().with_code(0);
    let lines: Vec<&str> = status.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{status:?}");
    assert!(lines[0].starts_with("GROUP"), "{status:?}");
    for word in ["job", "idle", "node-a", "failed (3) 0s ago"] {
        assert!(lines[1].contains(word), "{word}: {status:?}");
    }
    let database = store.database();
    let place = format!("(store sqlite://{})", database.display());
    assert_eq!(lines[2], place, "{status:?}");
    let history = store.verb(&["history"]).end().with_code(0);
    let lines: Vec<&str> = history.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{history:?}");
    assert!(
        lines[1].contains("failed (3)"),
        "the newest first: {history:?}"
    );
    assert!(lines[2].contains("succeeded"), "{history:?}");
}

#[test]
fn history_can_be_limited_to_the_newest_and_to_a_group() {
    let store = Store::new();
    let database = store.database();
    for group in ["one", "two", "one"] {
        let line = store.bare(&["-s", database.to_str().unwrap(), "-g", group]);
        line.job(&["true"]).end().with_code(0);
    }
    let count = |words: &[&str]| {
        let ended = store.verb(&["history", "--json"]).with(words).end();
        ended.with_code(0).json().as_array().unwrap().len()
    };
    assert_eq!(count(&[]), 3);
    assert_eq!(count(&["-n", "1"]), 1);
    assert_eq!(count(&["-g", "one"]), 2);
    assert_eq!(count(&["-g", "one", "-n", "1"]), 1);
}

#[test]
fn a_missing_store_is_reported_and_not_made() {
    let store = Store::new();
    for verb in ["status", "history"] {
        let ended = store.verb(&[verb, "--json"]).end().with_code(78);
        ended.says(&["there is no store"]);
        assert!(!store.database().exists());
    }
}
