//! The permissions of a store: who may use it, and the errors for others (77).

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;

use crate::support::{Line, Store, is_root};

const NOBODY: Option<u32> = Some(65_534);

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A folder of the unprivileged user's.
fn home(store: &Store) -> std::path::PathBuf {
    let home = store.file("home");
    fs::create_dir(&home).unwrap();
    if is_root() {
        chown(&home, NOBODY, NOBODY).unwrap();
    }
    home
}

fn unprivileged_run(store: &Store) -> Line {
    store.free_run("node-a").job(&["true"]).unprivileged()
}

#[test]
fn a_new_store_is_for_its_user_alone_whatever_the_umask() {
    let store = Store::new();
    let line = store.free_run("node-a").job(&["true"]);
    line.under(&["sh", "-c", "umask 0; exec \"$@\"", "sh"])
        .end()
        .with_code(0);
    let directory = store.file("state");
    assert_eq!(mode(&directory), 0o700);
    for entry in fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(&path), expected, "{}", path.display());
    }
}

#[test]
fn a_tight_umask_does_not_lock_the_user_out() {
    let store = Store::new();
    let run = || {
        let line = store.free_run("node-a").job(&["true"]).unprivileged();
        line.under(&["sh", "-c", "umask 777; exec \"$@\"", "sh"])
    };
    let state = store.file("state");
    fs::create_dir(&state).unwrap();
    if is_root() {
        chown(&state, NOBODY, NOBODY).unwrap();
    }
    run().end().with_code(0);
    run().end().with_code(0);
    assert_eq!(mode(&store.database()), 0o600);
}

#[test]
fn the_default_store_is_in_the_users_state_directory() {
    let store = Store::new();
    let home = home(&store);
    for (variable, folder) in [
        ("XDG_STATE_HOME", "tokenrun"),
        ("HOME", ".local/state/tokenrun"),
    ] {
        let line = store.bare(&["-g", "job", "--client-id=node-a"]);
        let line = line.job(&["true"]).env(variable, &home).unprivileged();
        line.end().with_code(0);
        let folder = home.join(folder);
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(&folder.join("tokenrun.db")), 0o600);
    }
}

/// Each host would have a file of its own, and all of them would run the job.
#[test]
fn the_run_that_makes_the_default_file_says_what_it_excludes() {
    let store = Store::new();
    let home = home(&store);
    let run = |more: &[&str]| {
        let line = store.bare(&["-g", "job", "--client-id=node-a"]).with(more);
        line.job(&["true"])
            .env("XDG_STATE_HOME", &home)
            .unprivileged()
    };
    let file = home.join("tokenrun/tokenrun.db");
    run(&[]).end().with_code(0).says(&[
        &format!("made the store {}", file.display()),
        "excludes runs of this user on this host only",
        "for several hosts, give the address of a database",
    ]);
    assert_eq!(run(&[]).end().with_code(0).messages(), [""; 0], "once");
    fs::remove_dir_all(home.join("tokenrun")).unwrap();
    assert_eq!(run(&["-q"]).end().with_code(0).messages(), [""; 0]);
    // One that was chosen needs no explanation.
    let chosen = home.join("chosen.db");
    let given = run(&["--store", chosen.to_str().unwrap()]).end();
    assert_eq!(given.with_code(0).messages(), [""; 0]);
}

#[test]
fn an_unsearchable_directory_is_reported() {
    let store = Store::new();
    let state = store.file("state");
    fs::create_dir(&state).unwrap();
    set_mode(&state, if is_root() { 0o700 } else { 0o000 });
    let ended = unprivileged_run(&store).end();
    set_mode(&state, 0o700);
    ended.with_code(77).says(&["Permission denied"]);
}

#[test]
fn an_unwritable_directory_is_reported() {
    let store = Store::new();
    let state = store.file("state");
    fs::create_dir(&state).unwrap();
    set_mode(&state, 0o555);
    let ended = unprivileged_run(&store).end();
    set_mode(&state, 0o755);
    ended
        .with_code(77)
        .says(&["Permission denied", "run as its owner"]);
}

#[test]
fn a_read_only_store_is_reported() {
    let store = Store::new();
    store.free_run("node-a").job(&["true"]).end().with_code(0);
    let state = store.file("state");
    let modes = |directory: u32, file: u32| {
        for entry in fs::read_dir(&state).unwrap() {
            set_mode(&entry.unwrap().path(), file);
        }
        set_mode(&state, directory);
    };
    modes(0o555, 0o444);
    let ended = unprivileged_run(&store).end();
    modes(0o755, 0o644);
    let message = ended.with_code(77).message().to_owned();
    assert!(message.contains("tokens.db"), "{message}");
}
