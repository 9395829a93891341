//! A store that can't be the right one: 78, and nothing is changed.

use std::fs;
use std::process::Command;

use crate::support::Store;

fn run_on(store: &Store, url: &str) -> crate::support::Line {
    store.bare(&["-s", url, "-g", "job"]).job(&["touch", "ran"])
}

#[test]
fn a_store_that_tokenrun_does_not_know_is_named() {
    let store = Store::new();
    for (url, says) in [
        ("mongodb://host/0", "mongodb://"),
        ("sqlite://relative/path", "sqlite:///absolute/path"),
        ("sqlite:/absolute/path", "sqlite:///absolute/path"),
        ("~/tokens.db", "is no path that can be meant"),
        ("postgres://host/db?hots=x", "\"hots\""),
        ("host=db requirepeer=x", "requirepeer"),
        (" ", "empty"),
    ] {
        run_on(&store, url).end().with_code(78).says(&[says]);
        let status = store.bare(&["status", "-s", url]).end();
        status.with_code(78).says(&[says]);
    }
    assert!(!store.file("ran").exists());
}

#[test]
fn a_password_in_a_store_that_is_refused_is_not_repeated() {
    let store = Store::new();
    for url in [
        "redis://me:secret@host/db",
        "mysql://me:secret@host",
        "me:secret@host/db",
    ] {
        let ended = run_on(&store, url).end().with_code(78);
        assert!(!ended.stderr.contains("secret"), "{ended:?}");
    }
}

#[test]
fn a_file_that_is_no_database_is_left_as_it_is() {
    let store = Store::new();
    let file = store.file("notes.txt");
    let text = "remember the milk\n".repeat(100);
    fs::write(&file, &text).unwrap();
    let ended = run_on(&store, file.to_str().unwrap()).end().with_code(78);
    ended.says(&["notes.txt", "no SQLite database", "--store"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    assert!(!store.file("ran").exists());
}

#[test]
fn another_programs_database_is_left_as_it_is() {
    let store = Store::new();
    let file = store.file("theirs.db");
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.execute_batch("CREATE TABLE t (a)").unwrap();
    drop(connection);
    let before = fs::read(&file).unwrap();
    let ended = run_on(&store, file.to_str().unwrap()).end().with_code(78);
    ended.says(&["another program's"]);
    assert_eq!(fs::read(&file).unwrap(), before);
    assert!(!store.file("theirs.db-wal").exists());
}

#[test]
fn a_directory_is_no_store() {
    let store = Store::new();
    let ended = run_on(&store, store.path().to_str().unwrap()).end();
    ended.with_code(78).says(&["a directory"]);
}

#[test]
fn a_file_system_whose_locks_are_not_known_is_refused() {
    let store = Store::new();
    let ended = run_on(&store, "/proc/tokens.db").end().with_code(78);
    ended.says(&["procfs", "local file system"]);
}

#[test]
fn a_schema_from_the_future_asks_for_a_newer_tokenrun() {
    let store = Store::new();
    store.free_run("node-a").job(&["true"]).end().with_code(0);
    let sql = "PRAGMA user_version = 7007";
    store.sql().execute_batch(sql).unwrap();
    let ended = store.free_run("node-a").job(&["touch", "ran"]).end();
    ended
        .with_code(78)
        .says(&["schema is version 7", "install a newer tokenrun"]);
    assert!(!store.file("ran").exists());
    assert_eq!(store.verb(&["status"]).end().code, Some(78));
}

#[test]
fn a_newer_schema_that_still_serves_this_version_is_used() {
    let store = Store::new();
    store.free_run("node-a").job(&["true"]).end().with_code(0);
    let sql = "ALTER TABLE tokens ADD COLUMN colour TEXT; PRAGMA user_version = 4001";
    store.sql().execute_batch(sql).unwrap();
    store.free_run("node-a").job(&["true"]).end().with_code(0);
    assert_eq!(store.status()["runs"], 2);
}

#[test]
fn a_row_that_contradicts_itself_is_granted_to_no_client() {
    let store = Store::new();
    store.free_run("node-a").job(&["true"]).end().with_code(0);
    store.edit("state = 'running'");
    let ended = store.free_run("node-a").job(&["touch", "ran"]).end();
    ended.with_code(78).says(&["table tokens", "\"job\""]);
    assert!(!store.file("ran").exists());
}

#[test]
fn a_stored_name_with_a_blank_at_its_end_is_refused() {
    let store = Store::new();
    store.free_run("node-a").job(&["true"]).end().with_code(0);
    store.edit("expected_client = 'node-a '");
    let ended = store.free_run("node-a").job(&["touch", "ran"]).end();
    let words = ["table tokens", "\"job\"", "expected_client", "a blank"];
    ended.with_code(78).says(&words);
    assert!(!store.file("ran").exists());
}

#[test]
fn a_verb_names_a_group_that_was_never_seen() {
    let store = Store::new();
    store.free_run("node-a").job(&["true"]).end().with_code(0);
    for verb in ["status", "history"] {
        let ended = store.verb(&[verb, "-g", "nigthly"]).end().with_code(78);
        ended.says(&["no group \"nigthly\"", "tokenrun status"]);
    }
}

#[test]
fn in_kubernetes_there_is_no_default_store() {
    let store = Store::new();
    let line = store.bare(&["-g", "job"]).job(&["touch", "ran"]);
    let ended = line.env("KUBERNETES_SERVICE_HOST", "10.0.0.1").end();
    ended.with_code(78).says(&["no default store", "--store"]);
    assert!(!store.file("ran").exists());
}

const NEW_PID_NAMESPACE: [&str; 3] = ["unshare", "-rpf", "--mount-proc"];

/// Fails, with what to do, where no pid namespace can be had.
fn must_unshare() {
    let [unshare, words @ ..] = NEW_PID_NAMESPACE;
    let done = Command::new(unshare).args(words).arg("true").output();
    assert!(
        done.is_ok_and(|done| done.status.success()),
        "no pid namespace can be had here: install util-linux, and run the tests as root or \
         where user namespaces are allowed (sysctl kernel.unprivileged_userns_clone=1)"
    );
}

#[test]
fn process_1_has_no_default_store() {
    must_unshare();
    let store = Store::new();
    let line = store.bare(&["-g", "job"]).job(&["touch", "ran"]);
    let ended = line.under(&NEW_PID_NAMESPACE).end().with_code(78);
    ended.says(&["no default store", "process 1"]);
    assert!(!store.file("ran").exists());
}

#[test]
fn process_1_runs_a_job_and_is_refused_by_a_run_outside() {
    must_unshare();
    let store = Store::new();
    let first = store.free_run("node-a").start();
    store.until_begun("node-a");
    let inside = |client: &str| store.free_run(client).under(&NEW_PID_NAMESPACE);
    inside("node-b")
        .end()
        .with_code(75)
        .says(&["held by node-a"]);
    store.go(0);
    first.end().with_code(0);
    inside("node-b").script("exit 4").end().with_code(4);
    assert_eq!(store.status()["state"], "free");
}
