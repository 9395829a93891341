//! Errors, and their messages.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rusqlite::Connection;

use super::SqliteStore;
use super::garbage_tests::create;
use super::test_process::{TestProcess, part, wait_to_be_let_go};
use crate::store::{Records as _, Tokens as _, Trouble};
use crate::sys::user::is_root;
use crate::token::GroupName;
use crate::token::record::fixture::unheld_run;

fn made(directory: &Path) -> std::path::PathBuf {
    let path = directory.join("tokens.db");
    create(
        &mut SqliteStore::open(&path, Duration::from_secs(5)).unwrap(),
        "g",
    );
    path
}

#[test]
fn a_lock_that_outlasts_the_timeout_is_reported_with_its_owner() {
    if let Some(file) = part() {
        let sqlite = Connection::open(file).unwrap();
        sqlite.execute_batch("BEGIN IMMEDIATE").unwrap();
        println!("\nlocked");
        wait_to_be_let_go();
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let path = made(home.path());
    let test =
        "store::sqlite::fault_tests::a_lock_that_outlasts_the_timeout_is_reported_with_its_owner";
    let mut owner = TestProcess::start(TestProcess::command(test, &path));
    owner.heard("locked");
    let pid = owner.pid();
    let mut store = SqliteStore::open(&path, Duration::from_millis(30)).unwrap();
    let group = GroupName::new("g").unwrap();
    assert!(store.read(&group).is_ok(), "who reads waits for no writer");
    let mut refused = || {
        let closed = store.record(&unheld_run(&group, 1));
        closed.unwrap_err()
    };

    let error = refused();
    assert_eq!(error.trouble, Trouble::Locked);
    let running = format!("locked for longer than 30ms by pid {pid} (");
    assert!(error.to_string().contains(&running), "{error}");
    assert!(!error.to_string().contains("stopped"), "{error}");

    let target = Pid::from_raw(pid.cast_signed());
    kill(target, Signal::SIGSTOP).unwrap();
    let stopped = waitpid(target, Some(WaitPidFlag::WUNTRACED)).unwrap();
    assert!(matches!(stopped, WaitStatus::Stopped(..)));
    let error = refused();
    assert!(error.to_string().contains(&running), "{error}");
    let advice = format!("which is stopped: continue it (kill -CONT {pid}) or end it");
    assert!(error.to_string().contains(&advice), "{error}");
    assert!(!error.to_string().contains('\n'), "{error}");

    kill(target, Signal::SIGCONT).unwrap();
    owner.finish();
    store.set_timeout(Duration::from_secs(10)).unwrap();
    create(&mut store, "after");
}

const NOBODY: u32 = 65_534;

/// Runs one test as the user `nobody`, and returns its error.
fn error_of_nobody(test: &str, file: &Path) -> String {
    assert!(
        is_root(),
        "root is needed, to become another user; run the tests in a container"
    );
    let mut command = TestProcess::command(test, file);
    command.uid(NOBODY).gid(NOBODY);
    TestProcess::start(command).heard("error: ")
}

/// Opens and writes, and prints how that failed.
fn say_what_happens(file: &Path) {
    let timeout = Duration::from_secs(5);
    let opened = SqliteStore::open(file, timeout);
    let error = opened.and_then(|mut store| {
        let group = GroupName::new("g")
            .map_err(|error| crate::store::StoreError::misconfigured(error.to_string()))?;
        store.record(&unheld_run(&group, 1))
    });
    match error {
        Ok(_) => println!("\nerror: none"),
        Err(error) => println!("\nerror: {:?} {error}", error.trouble),
    }
}

/// A program and a directory that `nobody` can reach.
fn reachable() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    home
}

#[test]
fn needs_root_missing_permissions_are_denied() {
    if let Some(file) = part() {
        return say_what_happens(&file);
    }
    let test = "store::sqlite::fault_tests::needs_root_missing_permissions_are_denied";
    let home = reachable();
    let denied = |file: &Path, what: &str| {
        let error = error_of_nobody(test, file);
        assert!(error.starts_with("Denied sqlite://"), "{error}");
        assert!(error.contains(what), "{error}");
        assert!(error.contains("; run as its owner"), "{error}");
    };
    denied(&home.path().join("tokens.db"), "can't make ");
    denied(
        &home.path().join("a/b/tokens.db"),
        "can't make the directory ",
    );
    let path = made(home.path());
    denied(&path, "can't read ");

    // Readable, not writable.
    for name in ["tokens.db", "tokens.db-wal", "tokens.db-shm"] {
        let file = home.path().join(name);
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
    }
    denied(&path, "can't");

    let closed = home.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    denied(&closed.join("tokens.db"), "can't find ");
}

#[test]
fn needs_root_a_store_that_was_given_to_another_user_is_theirs_with_all_its_files() {
    if let Some(file) = part() {
        return say_what_happens(&file);
    }
    let test = "store::sqlite::fault_tests::needs_root_a_store_that_was_given_to_another_user_is_theirs_with_all_its_files";
    let home = reachable();
    chown(home.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let path = home.path().join("tokens.db");
    fs::write(&path, "").unwrap();
    chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
    made(home.path());
    assert_eq!(error_of_nobody(test, &path), "none");
}

/// Runs one test in a separate mount namespace, after `setup`.
fn error_in_mounts(test: &str, setup: &str, file: &Path) -> String {
    let script = format!("set -e; {setup}; exec \"$@\"");
    // An ordinary user may mount as root of a user namespace.
    let apart = if is_root() { "-m" } else { "-rm" };
    let through = ["unshare", apart, "sh", "-c", &script, "sh"].map(OsStr::new);
    TestProcess::start(TestProcess::command_through(&through, test, file)).heard("error: ")
}

#[test]
fn a_full_disk_is_reported_as_such() {
    if let Some(file) = part() {
        return say_what_happens(&file);
    }
    let test = "store::sqlite::fault_tests::a_full_disk_is_reported_as_such";
    let home = tempfile::tempdir().unwrap();
    let mount = home.path().join("small");
    fs::create_dir(&mount).unwrap();
    let at = mount.display();
    let path = mount.join("tokens.db");

    let too_small = format!("mount -t tmpfs -o size=8k none {at}");
    let error = error_in_mounts(test, &too_small, &path);
    assert!(error.starts_with("Refused sqlite://"), "{error}");
    assert!(error.contains("No space left"), "{error}");

    let made = made(home.path());
    let copy = made.display();
    let filled = format!(
        "mount -t tmpfs -o size=100k none {at}; cp {copy} {at}/tokens.db; \
         dd if=/dev/zero of={at}/filler bs=4k 2>/dev/null || true"
    );
    let error = error_in_mounts(test, &filled, &path);
    assert!(error.starts_with("Unavailable sqlite://"), "{error}");
    assert!(error.contains("full"), "{error}");
}

#[test]
fn a_file_system_that_is_mounted_for_reading_denies() {
    if let Some(file) = part() {
        return say_what_happens(&file);
    }
    let test = "store::sqlite::fault_tests::a_file_system_that_is_mounted_for_reading_denies";
    let home = tempfile::tempdir().unwrap();
    let made = made(home.path());
    let mount = home.path().join("ro");
    fs::create_dir(&mount).unwrap();
    let (at, copy) = (mount.display(), made.display());
    let setup = format!(
        "mount -t tmpfs -o size=1m none {at}; cp {copy} {at}/tokens.db; mount -o remount,bind,ro {at}"
    );
    for name in ["tokens.db", "new.db", "new/tokens.db"] {
        let error = error_in_mounts(test, &setup, &mount.join(name));
        assert!(error.starts_with("Denied sqlite://"), "{name}: {error}");
    }
}

#[test]
fn a_file_that_is_mounted_by_itself_is_refused() {
    if let Some(file) = part() {
        return say_what_happens(&file);
    }
    let test = "store::sqlite::fault_tests::a_file_that_is_mounted_by_itself_is_refused";
    let home = tempfile::tempdir().unwrap();
    let made = made(home.path());
    let mount = home.path().join("container");
    fs::create_dir(&mount).unwrap();
    let (at, theirs) = (mount.display(), made.display());
    let setup = format!(
        "mount -t tmpfs -o size=1m none {at}; touch {at}/tokens.db; \
         mount --bind {theirs} {at}/tokens.db"
    );
    let error = error_in_mounts(test, &setup, &mount.join("tokens.db"));
    assert!(error.starts_with("Misconfigured"), "{error}");
    assert!(error.contains("mount its directory instead"), "{error}");
}

#[test]
fn a_damaged_file_is_reported_as_such() {
    let home = tempfile::tempdir().unwrap();
    let path = made(home.path());
    Connection::open(&path)
        .unwrap()
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[4096..].fill(0x55);
    fs::write(&path, bytes).unwrap();
    let error = SqliteStore::open(&path, Duration::from_secs(1))
        .and_then(|mut store| store.list())
        .unwrap_err();
    assert_eq!(error.trouble, Trouble::Misconfigured);
    assert!(error.to_string().contains("damaged"), "{error}");
}
