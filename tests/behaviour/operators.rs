//! An operator writes the row of a group whose job runs.

use rusqlite::Connection;

use crate::support::{Run, Store, until_dead};

/// Free, as an operator's forced release leaves it.
const FREED: &str = "state = 'free', client_bound = NULL, version = 4711, \
     document = json_remove(document, '$.run', '$.session_version')";

fn start(store: &Store) -> (Run, i32) {
    let line = store.free_run("node-a").with(&["--heartbeat=500ms", "-v"]);
    let run = line.start();
    let job = store.until_begun("node-a");
    (run, job)
}

#[track_caller]
fn assert_lost(store: &Store, run: Run, job: i32) {
    let ended = run.end().with_code(76);
    until_dead(job);
    assert!(!store.is_job_alive());
    assert!(
        ended.stderr.contains("no longer has the token"),
        "{ended:?}"
    );
    let history = store.history();
    let own = history.iter().find(|run| run["client"] == "node-a");
    assert_eq!(own.unwrap()["outcome"], "lost", "{history:?}");
}

#[test]
fn a_holder_whose_row_is_freed_notices_and_ends_its_job() {
    let store = Store::new();
    let (run, job) = start(&store);
    store.edit(FREED);
    assert_lost(&store, run, job);
    assert_eq!(store.status()["state"], "free");
    assert_eq!(store.cell::<i64>("version"), 4711);
}

#[test]
fn a_holder_whose_row_is_deleted_notices_and_ends_its_job() {
    let store = Store::new();
    let (run, job) = start(&store);
    let sql = "DELETE FROM tokens WHERE token_group <> ''";
    assert_eq!(store.sql().execute(sql, []).unwrap(), 1);
    assert_lost(&store, run, job);
    let listing = store.verb(&["status", "--json"]).end().with_code(0);
    assert_eq!(listing.stdout, "[]\n");
}

#[test]
fn a_holder_whose_token_was_given_to_another_session_notices_and_ends_its_job() {
    let store = Store::new();
    let (run, job) = start(&store);
    let other = "0123456789abcdef0123456789abcdef";
    store.edit(&format!(
        "client_bound = 'node-b', version = 9, \
         document = json_set(document, '$.run.session', '{other}', '$.session_version', 9)"
    ));
    assert_lost(&store, run, job);
    assert_eq!(store.status()["client"], "node-b");
}

#[test]
fn an_operators_write_is_adopted_and_the_job_goes_on() {
    let store = Store::new();
    let (run, job) = start(&store);
    store.edit("expected_client = 'node-z', version = 4711");
    run.until_says("another process wrote the row of \"job\"; this session still has the token");
    let connection: Connection = store.sql();
    crate::support::until("a heartbeat is written after it", || {
        let sql = "SELECT version FROM tokens WHERE token_group <> ''";
        let version: i64 = connection.query_row(sql, [], |row| row.get(0)).unwrap();
        (version != 4711).then_some(()).ok_or(run.stderr())
    });
    assert!(crate::support::alive(job));
    store.go(0);
    run.end().with_code(0);
    assert_eq!(store.status()["expected_client"], "node-z");
    assert_eq!(store.history()[0]["outcome"], "succeeded");
}

#[test]
fn a_revoked_token_is_freed_without_overlap() {
    let store = Store::new();
    let (run, job) = start(&store);
    store.set(&[("revoke", "true")], &["version = 4711"]);
    let ended = run.end().with_code(76);
    until_dead(job);
    assert!(!store.is_job_alive());
    assert!(ended.stderr.contains("revoked"), "{ended:?}");
    assert_eq!(store.status()["state"], "free");
    assert_eq!(store.history()[0]["outcome"], "lost");
}

#[test]
fn a_paused_group_is_refused_and_a_running_job_goes_on() {
    let store = Store::new();
    let (run, _) = start(&store);
    let pause = r#"{"by": "ops", "reason": "migration"}"#;
    store.set(&[("pause", pause)], &["version = 4711"]);
    run.until_says("another process wrote the row");
    store.go(0);
    run.end().with_code(0);
    let refused = store.free_run("node-a").end().with_code(75);
    refused.says(&["paused by ops", "migration"]);
    assert_eq!(store.status()["paused_by"], "ops");
}
