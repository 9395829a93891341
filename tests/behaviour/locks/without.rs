//! Where no lock can be taken the job runs, and nothing is proven.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};

use super::{contender, kill_both};
use crate::support::{Line, Store, is_root};

/// Something else is mounted where the locks would be.
fn with_mounted(store: &Store, line: Line, what: &str) -> Line {
    fs::create_dir_all(store.locks()).unwrap();
    let script = format!("mount {what} none \"$0\" && exec \"$@\"");
    let directory = store.locks();
    line.under(&["unshare", "-rm", "sh", "-c", &script])
        .under(&[directory.to_str().unwrap()])
}

#[track_caller]
fn assert_it_runs_and_says(store: &Store, line: Line, why: &str) {
    let line = line.script("echo ran");
    let ended = line.clone().end().with_code(0);
    assert_eq!(ended.messages(), [""; 0], "without -v nothing is said");
    let ended = line.with(&["-v"]).end().with_code(0);
    let all = ended.messages();
    let said = all.iter().find(|line| line.contains("no lock"));
    let said = said.unwrap_or_else(|| panic!("{ended:?}"));
    assert!(said.contains(why) && said.contains("-locks"), "{said}");
    assert_eq!(ended.stdout, "ran\n");
    assert_eq!(store.history()[0]["outcome"], "succeeded");
}

#[test]
fn a_full_disk_is_no_obstacle() {
    let store = Store::new();
    let line = with_mounted(&store, store.free_run("a"), "-t tmpfs -o nr_inodes=1");
    assert_it_runs_and_says(&store, line, "No space left");
}

#[test]
fn a_read_only_file_system_is_no_obstacle() {
    let store = Store::new();
    let line = with_mounted(&store, store.free_run("a"), "-t tmpfs -o ro");
    assert_it_runs_and_says(&store, line, "Read-only");
}

#[test]
fn a_file_system_whose_locks_can_not_be_trusted_is_no_obstacle() {
    let store = Store::new();
    let line = with_mounted(&store, store.free_run("a"), "-t ramfs");
    assert_it_runs_and_says(&store, line, "ramfs, whose locks can't be trusted");
}

#[test]
fn something_else_in_the_directorys_place_is_no_obstacle() {
    let store = Store::new();
    fs::create_dir(store.file("state")).unwrap();
    fs::write(store.locks(), "").unwrap();
    assert_it_runs_and_says(&store, store.free_run("a"), "Not a directory");
}

#[test]
fn a_want_of_descriptors_for_the_lock_does_not_end_the_run() {
    let store = Store::new();
    store.free_run("a").job(&["true"]).end().with_code(0);
    let mut went_on = 0;
    // The job needs more of them than the lock: its own error says so.
    for limit in 6..20 {
        let script = format!("ulimit -n {limit}; exec \"$@\"");
        let line = store.free_run("a").with(&["-v", "--store-timeout=100ms"]);
        let line = line.job(&["true"]).under(&["sh", "-c", &script, "sh"]);
        let ended = line.end();
        assert!(
            matches!(ended.code, Some(0 | 69 | 71)),
            "{limit}: {ended:?}"
        );
        let lines: Vec<&str> = ended.messages();
        let lock = lines
            .iter()
            .position(|it| it.contains("no lock could be taken"));
        if let Some(lock) = lock {
            // EMFILE, in the words of either C library.
            assert!(lines[lock].contains("(os error 24)"), "{ended:?}");
            went_on += usize::from(lines[lock + 1].contains("took \"job\""));
        }
    }
    assert!(went_on > 0);
    assert_eq!(store.status()["state"], "free");
}

#[test]
fn a_run_without_locks_is_taken_over_when_it_is_silent() {
    let store = Store::new();
    fs::create_dir(store.file("state")).unwrap();
    fs::write(store.locks(), "").unwrap();
    let run = store.free_run("node-a").hasty().start();
    store.until_begun("node-a");
    assert_eq!(store.field::<Option<String>>("run.lock_file"), None);
    kill_both(run);
    contender(&store)
        .end()
        .with_code(75)
        .says(&["is held by node-a"]);
    let ended = super::once_silent(&contender(&store)).with_code(0);
    assert!(ended.stderr.contains("whose holder is silent"), "{ended:?}");
}

#[test]
fn a_lock_file_that_may_not_be_opened_proves_nothing() {
    let store = Store::new();
    let run = store.free_run("node-a").start();
    store.until_begun("node-a");
    kill_both(run);
    store.until_job_gone();
    // Every user may use the store, but not see the locks.
    for entry in fs::read_dir(store.file("state")).unwrap() {
        let entry = entry.unwrap();
        let is_locks = entry.path() == store.locks();
        let hidden = if is_root() { 0o700 } else { 0 };
        let mode = if is_locks { hidden } else { 0o666 };
        fs::set_permissions(entry.path(), Permissions::from_mode(mode)).unwrap();
    }
    let state = store.file("state");
    fs::set_permissions(&state, Permissions::from_mode(0o777)).unwrap();
    let line = contender(&store).with(&["-v"]).unprivileged();
    let ended = line.end();
    fs::set_permissions(store.locks(), Permissions::from_mode(0o700)).unwrap();
    let ended = ended.with_code(75);
    assert!(ended.stderr.contains("is held by node-a"), "{ended:?}");

    // Nor can it take locks of its own there; it runs without.
    if is_root() {
        for name in ["", "tokens.db", "tokens.db-wal", "tokens.db-shm"] {
            chown(state.join(name), Some(65_534), Some(65_534)).unwrap();
        }
    }
    contender(&store).end().with_code(0);
}
