//! What is said on stderr, and how much.

use serde_json::Value;

use crate::support::{Line, Store};

/// A node that is refused.
fn refused(store: &Store, more: &[&str]) -> crate::support::Ended {
    let line = |client: &str| -> Line { store.run(client).with(&["--keep=1h"]).job(&["true"]) };
    line("node-a").end().with_code(0);
    line("node-b").with(more).end().with_code(75)
}

#[test]
fn json_messages_are_an_object_a_line() {
    let store = Store::new();
    let ended = refused(&store, &["--log-format=json", "-v"]);
    let mut events = Vec::new();
    for line in ended.messages() {
        let message: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        for field in ["time", "level", "event", "message"] {
            assert!(message[field].is_string(), "{field}: {line}");
        }
        events.push(message["event"].as_str().unwrap().to_owned());
    }
    assert_eq!(events, ["decided", "bound"]);
}

#[test]
fn quiet_says_nothing() {
    let store = Store::new();
    assert_eq!(refused(&store, &["-q"]).stderr, "");
    let line = store.free_run("node-a").job(&["no-such-command"]);
    assert_eq!(line.with(&["-q"]).end().with_code(127).stderr, "");
}

#[test]
fn verbose_tells_every_step() {
    let store = Store::new();
    let run = store.free_run("node-a").with(&["-v", "--heartbeat=200ms"]);
    let run = run.start();
    store.until_begun("node-a");
    run.until_says("the heartbeat of job was written");
    store.go(3);
    let ended = run.end().with_code(3);
    let mut rest = ended.stderr.as_str();
    for step in [
        "looked at job",
        "clause 15",
        "took job",
        "sh started",
        "the heartbeat",
        "sh exited with 3",
    ] {
        let found = rest.split_once(step);
        rest = found.unwrap_or_else(|| panic!("{step}: {ended:?}")).1;
    }
}

#[test]
fn an_ordinary_run_says_nothing() {
    let store = Store::new();
    let ended = store.free_run("node-a").script("echo out; echo err >&2");
    let ended = ended.end().with_code(0);
    assert_eq!((&*ended.stdout, &*ended.stderr), ("out\n", "err\n"));
}

#[test]
fn a_variable_that_means_nothing_is_warned_of() {
    let store = Store::new();
    let line = store.free_run("node-a").job(&["true"]);
    let ended = line.env("TOKENRUN_KEEPP", "5m").end().with_code(0);
    ended.says(&["TOKENRUN_KEEPP", "unknown"]);
}
