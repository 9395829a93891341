//! Between two runs: whose the token is, and when others may have it.

use crate::support::{Store, until};

fn grants(store: &Store) -> Vec<String> {
    let mut history = store.history();
    history.reverse();
    let words = |run: &serde_json::Value| {
        format!(
            "{} {}",
            run["client"].as_str().unwrap(),
            run["grant"].as_str().unwrap()
        )
    };
    history.iter().map(words).collect()
}

#[test]
fn another_node_is_refused_while_the_token_is_kept_and_the_same_node_is_not() {
    let store = Store::new();
    let run = |client: &str| store.run(client).with(&["--keep=1h"]).job(&["true"]);
    run("node-a").end().with_code(0);
    run("node-b").end().with_code(75).says(&[
        "\"job\" in sqlite://",
        "belongs to node-a",
        "other clients can have it in",
        "true was not started",
    ]);
    run("node-a").end().with_code(0);
    assert_eq!(grants(&store), ["node-a bind", "node-a renew"]);
    let status = store.status();
    assert_eq!(status["state"], "idle");
    assert_eq!(status["client"], "node-a");
}

#[test]
fn another_node_takes_the_token_when_it_has_been_kept_long_enough() {
    let store = Store::new();
    let run = |client: &str| store.run(client).with(&["--keep=2s"]).job(&["true"]);
    run("node-a").end().with_code(0);
    let ended = until("node-b has it", || {
        let ended = run("node-b").end();
        match ended.code {
            Some(75) => Err(ended.stderr),
            _ => Ok(ended),
        }
    });
    ended.with_code(0);
    assert_eq!(grants(&store), ["node-a bind", "node-b takeover"]);
}

#[test]
fn a_token_that_is_not_kept_is_free_at_once() {
    let store = Store::new();
    for client in ["node-a", "node-b", "node-a"] {
        let ended = store.free_run(client).job(&["true"]).end().with_code(0);
        assert_eq!(ended.messages(), Vec::<&str>::new());
    }
    assert_eq!(
        grants(&store),
        ["node-a bind", "node-b bind", "node-a bind"]
    );
    assert_eq!(store.status()["state"], "free");
}

#[test]
fn a_new_group_is_reserved_for_the_client_that_is_expected() {
    let store = Store::new();
    let run = |client: &str| {
        let expected = ["--expected=node-a", "--keep=1h"];
        store.run(client).with(&expected).job(&["true"]).end()
    };
    run("node-b").with_code(75).says(&[
        "new and reserved for node-a",
        "other clients can have it in",
    ]);
    assert_eq!(store.status()["expected_client"], "node-a");
    run("node-a").with_code(0);
    assert_eq!(grants(&store), ["node-a bind"]);
}

#[test]
fn an_expected_client_that_never_comes_delays_no_other() {
    let store = Store::new();
    let ended = until("node-b has it", || {
        let line = store.free_run("node-b").hasty().job(&["true"]);
        let ended = line.with(&["--expected=node-a"]).end();
        match ended.code {
            Some(75) => Err(ended.stderr),
            _ => Ok(ended),
        }
    });
    ended.with_code(0);
    assert_eq!(grants(&store), ["node-b bind"]);
}

#[test]
fn the_expected_client_comes_back_in_the_slot_after_the_one_that_has_run() {
    let store = Store::new();
    let expected = ["--expected=node-a", "--keep=1ms", "--head-start=0"];
    let run = |client: &str, more: &[&str]| {
        let line = store.run(client).with(&expected).with(more);
        line.job(&["true"]).end()
    };
    run("node-a", &[]).with_code(0);
    until("node-b has it", || {
        let ended = run("node-b", &["--keep=1h"]);
        match ended.code {
            Some(75) => Err(ended.stderr),
            _ => Ok(ended.with_code(0)),
        }
    });
    // This slot has been run by node-b.
    run("node-a", &["--failback"])
        .with_code(75)
        .says(&["belongs to node-b"]);
    assert_eq!(store.status()["handoff_to"], "node-a");
    run("node-a", &["--failback"]).with_code(0);
    let grants = grants(&store);
    assert_eq!(
        grants[grants.len() - 2..],
        ["node-b takeover", "node-a handoff"]
    );
}

#[test]
fn a_run_too_soon_after_the_last_is_refused_on_every_node() {
    let store = Store::new();
    let run = |client: &str| {
        let line = store.free_run(client).with(&["--at-least=1h"]);
        line.job(&["true"]).end()
    };
    run("node-a").with_code(0);
    for client in ["node-a", "node-b"] {
        run(client)
            .with_code(75)
            .says(&["ran too recently for its --at-least", "it can run again in"]);
    }
    assert!(store.status()["not_before"].is_string());
    assert_eq!(grants(&store), ["node-a bind"]);
}

#[test]
fn two_live_sessions_with_one_client_id_do_not_both_run() {
    let store = Store::new();
    let first = store.free_run("node-a").start();
    store.until_begun("node-a");
    store
        .free_run("node-a")
        .end()
        .with_code(75)
        .says(&["is held by node-a, in an earlier run on this host"]);
    store.go(0);
    first.end().with_code(0);
    store.assert_no_overlap();
}

#[test]
fn fences_rise_from_run_to_run() {
    let store = Store::new();
    for client in ["node-a", "node-b", "node-b"] {
        let script = r#"echo "$TOKENRUN_FENCE" >> log"#;
        store.free_run(client).script(script).end().with_code(0);
    }
    let fences: Vec<i64> = store.log().iter().map(|f| f.parse().unwrap()).collect();
    assert!(fences.is_sorted_by(|one, next| one < next), "{fences:?}");
    // At least the time in milliseconds, so that a lost database does not turn them back.
    assert!(fences[0] > 1_700_000_000_000, "{fences:?}");
    assert_eq!(store.status()["fence"], fences[2]);
}
