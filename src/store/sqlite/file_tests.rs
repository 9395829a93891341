//! How a file is found, refused or made.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use tempfile::TempDir;

use super::SqliteStore;
use crate::store::{Store as _, StoreError, Tokens as _, Trouble};
use crate::token::GroupName;

const SECOND: Duration = Duration::from_secs(1);

fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn refused(path: &Path) -> StoreError {
    SqliteStore::open(path, SECOND).unwrap_err()
}

fn names_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn read_something(path: &Path) {
    let mut store = SqliteStore::open(path, SECOND).unwrap();
    assert_eq!(store.read(&GroupName::new("g").unwrap()).unwrap().row, None);
}

#[test]
fn a_new_file_is_private_and_an_existing_one_keeps_its_mode() {
    let home = directory();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = home.path().join("a/b/tokens.db");
    read_something(&path);
    assert_eq!(mode(home.path()), 0o755);
    assert_eq!(mode(&home.path().join("a")), 0o700);
    assert_eq!(mode(&home.path().join("a/b")), 0o700);
    for name in ["tokens.db", "tokens.db-wal", "tokens.db-shm"] {
        assert_eq!(mode(&home.path().join("a/b").join(name)), 0o600, "{name}");
    }
    assert_eq!(
        names_in(&home.path().join("a/b")),
        ["tokens.db", "tokens.db-shm", "tokens.db-wal"],
        "no draft is left"
    );
}

#[test]
fn an_empty_file_is_filled_and_keeps_its_mode() {
    let home = directory();
    let path = home.path().join("tokens.db");
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o660)).unwrap();
    read_something(&path);
    read_something(&path);
    assert_eq!(mode(&path), 0o660);
    assert_eq!(mode(&home.path().join("tokens.db-wal")), 0o660);
}

#[test]
fn a_log_that_outlived_its_database_is_not_played_into_a_new_one() {
    let home = directory();
    let path = home.path().join("tokens.db");
    read_something(&path);
    let mut store = SqliteStore::open(&path, SECOND).unwrap();
    super::garbage_tests::create(&mut store, "g");
    drop(store);
    fs::remove_file(&path).unwrap();
    let log = fs::metadata(home.path().join("tokens.db-wal")).unwrap();
    assert!(log.len() > 0);
    read_something(&path);
}

#[test]
fn a_draft_that_a_dead_process_left_is_replaced() {
    let home = directory();
    let path = home.path().join("tokens.db");
    fs::write(&path, "").unwrap();
    fs::write(home.path().join(".tokens.db.new"), "half").unwrap();
    fs::write(home.path().join(".tokens.db.new-journal"), "half").unwrap();
    read_something(&path);
    assert!(!home.path().join(".tokens.db.new").exists());
}

#[test]
fn a_file_of_another_kind_is_refused_and_stays_as_it_was() {
    let home = directory();
    let long = "text, but more than a hundred bytes of it. ".repeat(20);
    for contents in ["#!/bin/sh\necho important\n", long.as_str()] {
        let path = home.path().join("script.sh");
        fs::write(&path, contents).unwrap();
        // A journal that SQLite would play back into the file.
        fs::write(home.path().join("script.sh-journal"), "also text").unwrap();
        let error = refused(&path);
        assert_eq!(error.trouble, Trouble::Misconfigured);
        assert!(
            error.to_string().contains("is no SQLite database"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), contents);
        assert_eq!(names_in(home.path()), ["script.sh", "script.sh-journal"]);
    }
}

#[test]
fn another_programs_database_is_refused_and_stays_as_it_was() {
    let home = directory();
    let path = home.path().join("theirs.db");
    for journal in ["DELETE", "WAL"] {
        let theirs = Connection::open(&path).unwrap();
        theirs
            .execute_batch(&format!(
                "PRAGMA journal_mode = {journal};
                 CREATE TABLE IF NOT EXISTS tokens (precious TEXT)"
            ))
            .unwrap();
        drop(theirs);
        let before = (fs::read(&path).unwrap(), names_in(home.path()));
        let error = refused(&path);
        assert_eq!(error.trouble, Trouble::Misconfigured);
        assert!(error.to_string().contains("another program's"), "{error}");
        assert_eq!((fs::read(&path).unwrap(), names_in(home.path())), before);
    }
}

#[test]
fn a_directory_or_a_parent_that_is_a_file_is_refused() {
    let home = directory();
    let error = refused(home.path());
    assert_eq!(error.trouble, Trouble::Misconfigured);
    assert!(
        error.to_string().contains("not a file but a directory"),
        "{error}"
    );

    let file = home.path().join("file");
    fs::write(&file, "x").unwrap();
    for below in [file.join("tokens.db"), file.join("a/tokens.db")] {
        let error = refused(&below);
        assert_eq!(error.trouble, Trouble::Misconfigured);
        assert!(error.to_string().contains("is no directory"), "{error}");
    }
}

#[test]
fn a_symbolic_link_is_followed_and_one_to_nothing_is_refused() {
    let home = directory();
    let link = home.path().join("link");
    symlink(home.path().join("real.db"), &link).unwrap();
    let error = refused(&link);
    assert_eq!(error.trouble, Trouble::Misconfigured);
    assert!(error.to_string().contains("symbolic link"), "{error}");

    read_something(&home.path().join("real.db"));
    let store = SqliteStore::open(&link, SECOND).unwrap();
    assert!(store.name().ends_with("/real.db"), "{}", store.name());
}

#[test]
fn unusual_paths_work() {
    let home = directory();
    for name in [
        "file:x?mode=memory",
        ":memory:",
        "a b%20c",
        "ä\u{301}",
        "x\ny",
    ] {
        let path = home.path().join(name);
        read_something(&path);
        assert!(path.is_file(), "{name}");
    }
}

#[test]
fn a_file_system_without_locks_is_refused_before_anything_is_made() {
    for path in ["/proc/tokens.db", "/proc/new/tokens.db"] {
        let error = refused(Path::new(path));
        assert_eq!(error.trouble, Trouble::Misconfigured);
        assert!(error.to_string().contains("procfs"), "{error}");
    }
}

fn made(home: &TempDir) -> PathBuf {
    let path = home.path().join("tokens.db");
    read_something(&path);
    path
}

#[test]
fn a_newer_schema_is_used_if_it_serves_us() {
    let home = directory();
    let path = made(&home);
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            "PRAGMA user_version = 9001;
             ALTER TABLE tokens ADD COLUMN news TEXT;
             ALTER TABLE runs ADD COLUMN news TEXT NOT NULL DEFAULT 'x';",
        )
        .unwrap();
    read_something(&path);
}

#[test]
fn a_newer_schema_is_refused_with_a_remedy() {
    let home = directory();
    let path = made(&home);
    for oldest in [4, 7, 999] {
        Connection::open(&path)
            .unwrap()
            .execute_batch(&format!("PRAGMA user_version = {}", 9_000 + oldest))
            .unwrap();
        let error = refused(&path);
        assert_eq!(error.trouble, Trouble::Misconfigured);
        for part in [
            "version 9",
            "knows 1",
            "install a newer tokenrun",
            "tokens.db",
        ] {
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}

#[test]
fn an_impossible_schema_version_is_refused() {
    let home = directory();
    let path = made(&home);
    Connection::open(&path)
        .unwrap()
        .execute_batch("PRAGMA user_version = 0")
        .unwrap();
    assert!(refused(&path).to_string().contains("version 0"));
    Connection::open(&path)
        .unwrap()
        .execute_batch("PRAGMA user_version = 1001; DROP TABLE tokens")
        .unwrap();
    let mut store = SqliteStore::open(&path, SECOND).unwrap();
    let error = store.read(&GroupName::new("g").unwrap()).unwrap_err();
    assert_eq!(error.trouble, Trouble::Misconfigured, "{error}");
}

#[test]
fn a_file_that_is_replaced_under_a_store_is_noticed() {
    let home = directory();
    let path = made(&home);
    let mut store = SqliteStore::open(&path, SECOND).unwrap();
    let group = GroupName::new("g").unwrap();
    fs::rename(&path, home.path().join("moved.db")).unwrap();
    let error = store.read(&group).unwrap_err();
    assert_eq!(error.trouble, Trouble::Gone);
    assert!(error.to_string().contains("removed or replaced"), "{error}");
    read_something(&path);
    assert_eq!(store.read(&group).unwrap_err(), error);
}

/// Processes that come by the link use a log beside the file's new name.
#[test]
fn a_file_that_is_moved_behind_a_link_is_noticed() {
    let home = directory();
    let path = made(&home);
    let mut store = SqliteStore::open(&path, SECOND).unwrap();
    fs::rename(&path, home.path().join("moved.db")).unwrap();
    symlink("moved.db", &path).unwrap();
    let error = store.read(&GroupName::new("g").unwrap()).unwrap_err();
    assert_eq!(error.trouble, Trouble::Gone);
}

#[test]
fn a_log_that_was_taken_off_is_put_back() {
    let home = directory();
    let path = made(&home);
    let sqlite = Connection::open(&path).unwrap();
    sqlite
        .execute_batch("PRAGMA journal_mode = DELETE")
        .unwrap();
    drop(sqlite);
    let mut store = SqliteStore::open(&path, SECOND).unwrap();
    super::garbage_tests::create(&mut store, "g");
    let sqlite = Connection::open(&path).unwrap();
    let mode: String = sqlite
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "wal");
}

/// A file from `VACUUM INTO` or a restore has no log when it is opened.
#[test]
fn a_log_that_is_removed_is_noticed_in_a_file_that_had_none_when_it_was_opened() {
    let home = directory();
    let path = made(&home);
    let sqlite = Connection::open(&path).unwrap();
    sqlite
        .execute_batch("PRAGMA journal_mode = DELETE")
        .unwrap();
    drop(sqlite);
    let mut store = SqliteStore::open(&path, SECOND).unwrap();
    super::garbage_tests::create(&mut store, "g");
    for end in ["-wal", "-shm"] {
        fs::remove_file(crate::sys::sqlite_files::companion(&path, end)).unwrap();
    }
    let error = store.read(&GroupName::new("g").unwrap()).unwrap_err();
    assert_eq!(error.trouble, Trouble::Gone);
}
