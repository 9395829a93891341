//! A run inside of a run of the same group, and a session that only looks like it.

use crate::support::{Store, TOKENRUN, until_dead};

fn nested(store: &Store, rest: &str) -> String {
    let database = store.database();
    let database = database.display();
    format!("{TOKENRUN} -s {database} -g job -- {rest}")
}

#[test]
fn a_run_inside_of_a_run_of_its_group_has_its_lease() {
    let store = Store::new();
    let script = nested(&store, "sh -c 'echo inner $TOKENRUN_SESSION; exit 7'");
    let script = format!("echo outer $TOKENRUN_SESSION; {script}; echo $?");
    let ended = store.free_run("node-a").script(&script).end().with_code(0);
    let words: Vec<&str> = ended.stdout.split_whitespace().collect();
    assert_eq!((words[0], words[2], words[4]), ("outer", "inner", "7"));
    assert_eq!(words[1], words[3]);
    assert_eq!(store.history().len(), 1);
    assert_eq!(store.status()["state"], "free");
}

#[test]
fn a_nested_run_under_another_client_id_has_its_lease_too() {
    let store = Store::new();
    let inner = nested(&store, "true").replace(" -g ", " --client-id other -g ");
    store.free_run("node-a").script(&inner).end().with_code(0);
    assert_eq!(store.status()["client"], serde_json::Value::Null);
}

/// The outer run's lock tells of both.
#[test]
fn a_nested_run_takes_no_locks() {
    let store = Store::new();
    let inner = nested(&store, "sh -c 'ls \"$0\" | grep -v swept' ");
    let script = format!("{inner} {}", store.locks().display());
    let line = store.free_run("node-a").with(&["--wait"]).script(&script);
    let ended = line.end().with_code(0);
    assert_eq!(ended.stdout.lines().count(), 1, "{ended:?}");
}

#[test]
fn another_group_inside_of_a_run_has_a_token_of_its_own() {
    let store = Store::new();
    let inner = nested(&store, "true").replace("-g job", "-g inner");
    store.free_run("node-a").script(&inner).end().with_code(0);
    assert_eq!(store.history().len(), 2);
}

#[test]
fn a_nested_waiter_that_gave_up_leaves_nothing_behind() {
    let store = Store::new();
    let holder = store.free_run("holder").start();
    store.until_begun("holder");
    let inner = nested(&store, "true").replace(" -g ", " -q --client-id w --wait=20ms -g ");
    let script = format!("{inner}; exit 4");
    let database = store.database();
    for _ in 0..20 {
        let outer = ["-s", database.to_str().unwrap(), "-g", "outer"];
        let ended = store.bare(&outer).script(&script).end().with_code(4);
        ended.says_failed();
    }
    store.go(0);
    holder.end().with_code(0);
}

#[test]
fn a_session_that_leaked_is_no_way_in() {
    let store = Store::new();
    let first = store.free_run("node-a").start();
    let job = store.until_begun("node-a");
    let session = store.status()["session"].as_str().unwrap().to_owned();
    for (client, holder) in [
        ("node-a", "node-a, in an earlier run"),
        ("node-b", "node-a"),
    ] {
        let line = store.free_run(client).job(&["touch", "ran"]);
        let ended = line.env("TOKENRUN_SESSION", &session).end().with_code(75);
        ended.says(&[&format!("\"job\" is held by {holder}")]);
    }
    assert!(!store.file("ran").exists());
    store.go(0);
    first.end().with_code(0);
    until_dead(job);
}
