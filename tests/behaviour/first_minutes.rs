//! Two nodes, one job: what every user tries first.

use nix::sys::signal::Signal;

use crate::support::{Store, until_dead};

#[test]
fn a_second_node_is_refused_in_one_line_while_the_first_runs() {
    let store = Store::new();
    let first = store.free_run("node-a").start();
    store.until_begun("node-a");

    let refused = store.free_run("node-b").end().with_code(75);
    refused.says(&[
        "\"job\" is held by node-a",
        &format!("pid {}", first.pid()),
        " since 20",
        store.database().to_str().unwrap(),
        "last heartbeat is",
        "taken over in",
        "sh was not started",
    ]);

    store.go(0);
    let ended = first.end().with_code(0);
    assert_eq!(ended.stderr, "");
    assert_eq!(store.log().len(), 2, "{:?}", store.log());
}

#[test]
fn a_killed_supervisor_takes_its_job_along_and_another_node_takes_over() {
    let store = Store::new();
    let first = store.free_run("node-a").hasty().start();
    let job = store.until_begun("node-a");
    let guard = first.guard();

    first.signal(Signal::SIGKILL);
    first.end();
    until_dead(job);
    until_dead(guard);
    assert!(!store.is_job_alive());

    let elsewhere = || store.free_run("node-b").hasty().elsewhere(&store);
    let early = elsewhere().end().with_code(75);
    early.says(&["\"job\" is held by node-a", "taken over in"]);

    let script = r#"echo "$TOKENRUN_GRANT from $TOKENRUN_PREVIOUS_CLIENT" >> log"#;
    let ended = crate::support::until("node-b takes over", || {
        let ended = elsewhere().script(script).end();
        match ended.code {
            Some(75) => Err(ended.stderr),
            _ => Ok(ended),
        }
    });
    let ended = ended.with_code(0);
    assert!(
        ended.stderr.contains("took \"job\" from node-a"),
        "{ended:?}"
    );
    assert_eq!(store.log()[1..], ["takeover from node-a"]);
    store.assert_no_overlap();

    let history = store.history();
    assert_eq!(history[0]["outcome"], "succeeded", "{history:?}");
    assert_eq!(history[0]["client"], "node-b");
    assert_eq!(history[0]["grant"], "takeover");
    assert_eq!(history[0]["previous_client"], "node-a");
    assert_eq!(history[1]["outcome"], "unknown");
    assert_eq!(history[1]["client"], "node-a");
    assert!(history[0]["fence"].as_i64() > history[1]["fence"].as_i64());
}

#[test]
fn a_silent_holder_is_shown_as_silent_and_its_run_as_unknown() {
    let store = Store::new();
    let first = store.free_run("node-a").hasty().start();
    store.until_begun("node-a");
    assert_eq!(store.history()[0]["outcome"], "running");
    first.signal(Signal::SIGKILL);
    first.end();
    crate::support::until("the run is unknown", || {
        let history = store.history();
        let unknown = history[0]["outcome"] == "unknown";
        unknown.then_some(()).ok_or(format!("{history:?}"))
    });
    let table = store.verb(&["status"]).end().with_code(0).stdout;
    assert!(table.contains("running, silent"), "{table}");
    assert_eq!(store.status()["takeover_in_ms"], 0);
}

#[test]
fn since_when_a_token_is_held_does_not_change_with_its_heartbeats() {
    let store = Store::new();
    let first = store.free_run("node-a").with(&["--heartbeat=100ms"]);
    let first = first.start();
    store.until_begun("node-a");
    let begun = store.status();
    let now = crate::support::until("a heartbeat is written", || {
        let now = store.status();
        let beaten = now["heartbeat_at"] != begun["heartbeat_at"];
        if beaten {
            Ok(now)
        } else {
            Err(format!("{now}"))
        }
    });
    assert!(begun["acquired_at"].is_string());
    assert_eq!(now["acquired_at"], begun["acquired_at"]);
    let refused = store.free_run("node-b").end().with_code(75);
    refused.says(&[" since 20"]);
    store.go(0);
    first.end().with_code(0);
    assert_eq!(store.status()["acquired_at"], begun["acquired_at"]);
}
