//! Only the original file proves anything; and useless files are removed.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use super::{contender, kill_both};
use crate::support::Store;

/// A run that is dead, its row and its file.
fn dead(store: &Store) -> String {
    let run = store.free_run("node-a").start();
    store.until_begun("node-a");
    let file = store.field("run.lock_file");
    kill_both(run);
    store.until_job_gone();
    file
}

fn assert_nothing_is_proven(store: &Store) {
    let refused = contender(store).end().with_code(75);
    refused.says(&["\"job\" is held by node-a", "taken over in"]);
}

#[test]
fn a_copy_that_was_put_back_proves_nothing() {
    let store = Store::new();
    let path = store.locks().join(dead(&store));
    let backup = store.file("backup");
    fs::copy(&path, &backup).unwrap();
    fs::remove_file(&path).unwrap();
    assert_nothing_is_proven(&store);
    fs::copy(&backup, &path).unwrap();
    assert_nothing_is_proven(&store);
}

#[test]
fn a_rows_lock_file_is_never_a_path() {
    let store = Store::new();
    let file = dead(&store);
    let path = store.locks().join(&file);
    for said in ["", "../tokens.db", &path.to_string_lossy(), "x'00"] {
        store.set(&[("run.lock_file", &format!("\"{said}\""))], &[]);
        assert_nothing_is_proven(&store);
    }
    store.set(&[("run.lock_file", &format!("\"{file}\""))], &[]);
    contender(&store).end().with_code(0);
}

#[test]
fn without_the_rows_word_for_it_nothing_is_proven() {
    let store = Store::new();
    dead(&store);
    store.set(&[("run.lock_file", "null")], &[]);
    assert_nothing_is_proven(&store);
}

#[test]
fn on_another_host_nothing_is_proven() {
    let store = Store::new();
    dead(&store);
    let refused = contender(&store).elsewhere(&store).end().with_code(75);
    refused.says(&["\"job\" is held by node-a"]);
    contender(&store).end().with_code(0);
}

#[test]
fn lock_files_of_the_dead_are_swept_after_a_day_at_the_end_of_a_run() {
    let store = Store::new();
    let file = dead(&store);
    let path = store.locks().join(&file);
    let other = || {
        let line = store.free_run("node-b").without(&["-g", "job"]);
        let line = line.with(&["-g", "other"]);
        line.job(&["true"]).end().with_code(0)
    };
    other();
    assert!(path.exists(), "it is young");
    let old = SystemTime::now() - Duration::from_secs(25 * 3_600);
    for path in [&path, &store.mark()] {
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(old).unwrap();
    }
    other();
    assert!(!path.exists());
    assert_nothing_is_proven(&store);
}
