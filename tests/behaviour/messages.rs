//! What is said on stderr, and how much.

use serde_json::Value;

use crate::support::{Ended, Line, Store};

/// A node that is refused.
fn refused(store: &Store, more: &[&str]) -> Ended {
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

/// The messages of a JSON log, by their events.
fn logged(ended: &Ended, event: &str) -> Value {
    let all = ended.messages().into_iter();
    let mut all = all.map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.find(|message| message["event"] == event)
        .unwrap_or_else(|| panic!("{event}: {}", ended.stderr))
}

#[test]
fn json_messages_name_what_they_are_about() {
    let store = Store::new();
    let json = ["--log-format=json", "-v"];
    let bound = logged(&refused(&store, &json), "bound");
    assert_eq!(bound["group"], "job");
    assert_eq!(bound["client"], "node-b");
    assert!(
        bound["session"].is_string() && bound["host"].is_string(),
        "{bound}"
    );
    assert_eq!(
        (&bound["reason"], &bound["holder"]),
        (&"bound".into(), &"node-a".into())
    );
    assert_eq!(bound.get("fence"), None);

    let run = store.run("node-a").with(&json).job(&["sh", "-c", "exit 3"]);
    let ended = run.end().with_code(3);
    let status: Value = store.verb(&["status", "--json"]).end().json();
    assert_eq!(logged(&ended, "started")["fence"], status[0]["fence"]);

    let missing = store
        .run("node-a")
        .with(&json)
        .job(&["no-such-command"])
        .end();
    assert_eq!(
        logged(&missing.with_code(127), "not_started")["reason"],
        "not_found"
    );
    let nowhere = store.bare(&["-g", "x", "-s", "/dev/null/x.db"]).with(&json);
    let failed = nowhere.job(&["true"]).end();
    let message = logged(&failed, "store_failed");
    assert_eq!(message["reason"], "misconfigured", "{message}");
}

#[test]
fn a_json_message_of_a_loss_says_how_it_was_lost() {
    let lost = logged(&revoked(&Store::new(), "--log-format=json"), "lost");
    assert_eq!(lost["reason"], "revoked", "{lost}");
    assert_eq!(lost["client"], "node-a", "{lost}");
}

/// A run whose job is ended because an operator revokes its token.
fn revoked(store: &Store, quiet: &str) -> Ended {
    let line = store.free_run("node-a").with(&[quiet, "--heartbeat=200ms"]);
    let run = line.start();
    store.until_begun("node-a");
    let revoke = store.verb(&["revoke", "-g", "job", "-qq"]).end();
    assert_eq!(revoke.with_code(0).stderr, "");
    run.end().with_code(76)
}

#[test]
fn quiet_silences_what_is_ordinary() {
    let store = Store::new();
    let silent = |ended: &Ended| assert_eq!(ended.messages(), Vec::<&str>::new());
    silent(&refused(&store, &["-q"]));
    let once = || store.bare(&["-s", "once.db", "-g", "g", "-q", "--once=key"]);
    silent(&once().job(&["true"]).end().with_code(0));
    silent(&once().job(&["false"]).end().with_code(0));
    silent(&store.verb(&["pause", "-g", "job", "-q"]).end().with_code(0));
}

#[test]
fn quiet_keeps_the_line_of_a_job_that_is_lost() {
    let ended = revoked(&Store::new(), "-q");
    ended.says(&["an operator revoked the token of \"job\"", "sh is ended"]);
}

#[test]
fn quiet_keeps_warnings_and_errors() {
    let store = Store::new();
    let none = |line: Line| line.job(&["no-such-command"]).end().with_code(127);
    none(store.free_run("node-a").with(&["-q"])).says(&["no-such-command"]);
    let known = store.free_run("node-a").env("TOKENRUN_KEEPP", "5m");
    let ended = known.with(&["-q"]).job(&["true"]).end().with_code(0);
    ended.says(&["TOKENRUN_KEEPP"]);
    let away = ["-s", "postgres://127.0.0.1:1/x", "-g", "g"];
    let away = store.bare(&away).with(&["-q", "--store-timeout=1s"]);
    away.job(&["true"]).end().with_code(69).says(&["127.0.0.1"]);
    let late = store.free_run("node-a").with(&["-q", "--timeout=100ms"]);
    late.end().with_code(124).says(&["--timeout"]);
}

#[test]
fn twice_quiet_says_nothing() {
    let store = Store::new();
    assert_eq!(revoked(&store, "-qq").stderr, "");
    let line = store.free_run("node-a").env("TOKENRUN_KEEPP", "5m");
    let line = line.with(&["-q", "--quiet"]).job(&["no-such-command"]);
    assert_eq!(line.end().with_code(127).stderr, "");
    assert_eq!(refused(&store, &["-qq"]).stderr, "");
    let away = ["-s", "postgres://127.0.0.1:1/x", "-g", "g", "-qq"];
    let away = store.bare(&away).with(&["--store-timeout=1s"]);
    assert_eq!(away.job(&["true"]).end().with_code(69).stderr, "");
}

#[test]
fn an_invalid_command_line_is_reported_however_quiet_it_is() {
    let store = Store::new();
    for (words, says) in [
        (["-qq", "--keep=x", "-g", "g"], "--keep"),
        (["-qq", "--keep=5m", "-g", ""], "--group"),
    ] {
        let ended = store.bare(&words).job(&["true"]).end().with_code(64);
        ended.says(&[says]);
    }
    let thrice = store.bare(&["-qqq", "-g", "g"]).job(&["true"]).end();
    thrice.with_code(64).says(&["--quiet", "twice"]);
}

#[test]
fn a_variable_says_how_quiet_it_is() {
    let store = Store::new();
    refused(&store, &[]).says(&["belongs to node-a"]);
    for (value, refusals, warnings) in [
        ("0", 1, 1),
        ("false", 1, 1),
        ("1", 0, 1),
        ("true", 0, 1),
        ("2", 0, 0),
    ] {
        let line = store.run("node-b").env("TOKENRUN_QUIET", value);
        let ended = line.with(&["--keep=1h"]).end().with_code(75);
        assert_eq!(ended.messages().len(), refusals, "{value}: {ended:?}");
        let store = Store::new();
        let line = store.free_run("node-a").env("TOKENRUN_KEEPP", "5m");
        let line = line.job(&["true"]).env("TOKENRUN_QUIET", value);
        let ended = line.end().with_code(0);
        assert_eq!(ended.messages().len(), warnings, "{value}: {ended:?}");
    }
    for value in ["3", "-1", "yes", ""] {
        let line = store.run("node-b").env("TOKENRUN_QUIET", value);
        line.end().with_code(64).says(&["TOKENRUN_QUIET"]);
    }
    // What the line says goes before the variable, and -v takes the place of both.
    let line = store.run("node-b").env("TOKENRUN_QUIET", "2");
    line.with(&["-q"]).end().with_code(75);
    let line = store.run("node-b").env("TOKENRUN_QUIET", "2");
    let ended = line.with(&["-v"]).end().with_code(75);
    assert!(ended.messages().len() > 1, "{ended:?}");
}

#[test]
fn verbose_tells_every_step() {
    let store = Store::new();
    let run = store.free_run("node-a").with(&["-v", "--heartbeat=200ms"]);
    let run = run.start();
    store.until_begun("node-a");
    run.until_says("the heartbeat of \"job\" was written");
    store.go(3);
    let ended = run.end().with_code(3);
    let mut rest = ended.stderr.as_str();
    for step in [
        "looked at \"job\"",
        "clause 15",
        "took \"job\"",
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

/// A line that can't be read has its message in JSON too, if it or its variable asks for that.
#[test]
fn a_usage_error_is_json_where_messages_are() {
    let store = Store::new();
    let usage = |words: &[&str], variable: &str| {
        let line = store.bare(words).env("TOKENRUN_LOG_FORMAT", variable);
        let ended = line.end().with_code(64);
        let [message] = &ended.messages()[..] else {
            panic!("{ended:?}");
        };
        serde_json::from_str::<Value>(message).ok()
    };
    for (words, variable) in [
        (&["--log-format=json", "--gruop", "x"][..], ""),
        (&["--log-format", "json", "-g", "x"], ""),
        (&["-g", "x"], "json"),
        (&["status", "--xyzzy"], "json"),
    ] {
        let message = usage(words, variable).unwrap_or_else(|| panic!("{words:?}"));
        assert_eq!(message["event"], "usage", "{message}");
        assert_eq!(message["level"], "warning", "{message}");
    }
    assert_eq!(usage(&["--log-format=text", "-g", "x"], "json"), None);
    let nothing = usage(&[], "json").unwrap();
    assert_eq!(nothing["message"], "no group, and no command to run");
}

#[test]
fn an_accent_is_shown_and_a_control_character_is_escaped() {
    let store = Store::new();
    let group = "cafe\u{301}";
    let line = || {
        store.bare(&[
            "-g",
            group,
            "-s",
            store.database().to_str().unwrap(),
            "--keep=0",
        ])
    };
    line()
        .job(&["sh", "-c", "exit 3"])
        .end()
        .with_code(3)
        .says(&["\"cafe\u{301}\" failed"]);
    let paused = store
        .verb(&["pause", "-g", group, "--reason", "a\u{e9}b", "--json"])
        .end();
    assert!(paused.stdout.contains("a\u{e9}b"), "{paused:?}");
    let printed = store.bare(&[
        "-g",
        "x",
        "-s",
        store.database().to_str().unwrap(),
        "--capture",
    ]);
    printed.script("printf 'a\\302\\233b'").end().with_code(0);
    let output = store.verb(&["output", "-g", "x", "--json"]).end();
    assert!(output.stdout.contains("a\\u009bb"), "{output:?}");
}
