//! `doctor` on a SQLite file.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::site::{GROUP, Site};
use crate::support::{Line, Store, is_root};

fn site() -> Site {
    let store = Store::new();
    let url = store.database().to_str().unwrap().to_owned();
    Site { store, url }
}

#[track_caller]
fn found(line: Line, code: i32) -> Vec<Value> {
    let ended = line.with(&["--json"]).end().with_code(code);
    ended.json().as_array().unwrap().clone()
}

#[track_caller]
fn says(found: &[Value], step: &str, verdict: &str, words: &[&str]) {
    let check = found.iter().find(|check| check["step"] == step);
    let check = check.unwrap_or_else(|| panic!("no {step}: {found:#?}"));
    assert_eq!(check["verdict"], verdict, "{check:#}");
    assert_eq!(check["remedy"].is_string(), verdict != "ok", "{check:#}");
    for word in words {
        assert!(check.to_string().contains(word), "{word:?}: {check:#}");
    }
}

#[test]
fn a_store_that_is_well_is_left_as_it_is() {
    let site = site();
    site.short("a").with(&["--keep=5m"]).end().with_code(0);
    let file = site.store.database();
    let before = fs::read(&file).unwrap();
    let all = found(site.verb(&["doctor", "-g", GROUP]), 0);
    let steps: Vec<_> = all.iter().map(|it| it["step"].as_str().unwrap()).collect();
    assert_eq!(
        steps,
        [
            "setting",
            "store",
            "path",
            "file_system",
            "directory",
            "room",
            "file",
            "clock",
            "lock_files",
            "journal_mode",
            "schema",
            "writer",
            "round_trip",
            "tokens",
            "group",
            "timing",
        ]
    );
    assert!(
        all.iter()
            .all(|it| it["verdict"] == "ok" || it["step"] == "file_system"),
        "{all:#?}"
    );
    says(&all, "path", "ok", &[file.to_str().unwrap()]);
    says(&all, "clock", "ok", &["boot:"]);
    says(&all, "group", "ok", &["bound to a"]);
    assert_eq!(fs::read(&file).unwrap(), before);
    let other = found(
        site.verb(&["doctor", "-g", "other", "--takeover-after=2m"]),
        0,
    );
    says(&other, "group", "warn", &["no group", "other"]);
    let text = site.verb(&["doctor"]).end().with_code(0).stdout;
    assert!(
        text.lines().count() == all.len() - 1 && text.starts_with("ok    setting"),
        "{text}"
    );
}

#[test]
fn a_store_that_is_not_there_is_not_made() {
    let site = site();
    let all = found(site.verb(&["doctor"]), 0);
    says(&all, "file", "ok", &["the first run makes it"]);
    says(&all, "directory", "ok", &["the first run makes it"]);
    assert!(!site.store.database().exists());
    assert!(!site.file("state").exists());
    fs::create_dir(site.file("state")).unwrap();
    fs::write(site.store.database(), "").unwrap();
    says(&found(site.verb(&["doctor"]), 0), "file", "ok", &["empty"]);
    assert_eq!(fs::metadata(site.store.database()).unwrap().len(), 0);
}

#[test]
fn other_files_and_urls_are_distinguished_from_a_store() {
    let site = site();
    site.short("a").end().with_code(0);
    let file = site.store.database();
    let link = site.file("hard.db");
    fs::hard_link(&file, &link).unwrap();
    says(
        &found(site.verb(&["doctor"]), 78),
        "file",
        "FAIL",
        &["2 names"],
    );
    fs::remove_file(&link).unwrap();
    site.sql("UPDATE tokens SET state = 'odd'");
    says(
        &found(site.verb(&["doctor"]), 78),
        "tokens",
        "FAIL",
        &["state"],
    );
    site.sql("UPDATE tokens SET state = 'free'");
    site.sql("PRAGMA user_version = 99099");
    let all = found(site.verb(&["doctor", "-g", GROUP]), 78);
    says(&all, "schema", "FAIL", &["99", "install a newer tokenrun"]);
    site.sql("PRAGMA user_version = 7");
    says(
        &found(site.verb(&["doctor"]), 78),
        "schema",
        "FAIL",
        &["no tokenrun ever"],
    );
    site.sql("PRAGMA user_version = 2001");
    site.sql("PRAGMA journal_mode = DELETE");
    says(
        &found(site.verb(&["doctor"]), 0),
        "journal_mode",
        "warn",
        &["WAL"],
    );
    site.sql("PRAGMA application_id = 7; PRAGMA wal_checkpoint");
    says(
        &found(site.verb(&["doctor"]), 78),
        "format",
        "FAIL",
        &["another program"],
    );
    for (contents, word) in [(&b"hello"[..], "database"), (&[0; 4096], "database")] {
        let other = site.file("other");
        fs::write(&other, contents).unwrap();
        let line = site.store.bare(&["doctor", "-s", other.to_str().unwrap()]);
        let ended = line.end().with_code(78);
        assert!(ended.stdout.contains(word), "{ended:?}");
        assert_eq!(fs::read(&other).unwrap(), contents);
    }
    let folder = site.file("state");
    let line = site.store.bare(&["doctor", "-s", folder.to_str().unwrap()]);
    says(
        &found(line, 78),
        "file",
        "FAIL",
        &["not a file but a directory"],
    );
    let line = site.store.bare(&["doctor", "-s", "mongodb://u:s3cret@h"]);
    let ended = line.end().with_code(78);
    assert!(
        ended.stdout.contains("FAIL  store") && !ended.stdout.contains("s3cret"),
        "{ended:?}"
    );
    let line = site
        .store
        .bare(&["doctor", "--store-file", "/nowhere/at/all"]);
    says(&found(line, 78), "store", "FAIL", &["/nowhere/at/all"]);
}

#[test]
fn a_file_system_whose_locks_are_not_trusted_is_refused() {
    let site = site();
    let line = site.store.bare(&["doctor", "-s", "/proc/self/x.db"]);
    says(&found(line, 78), "file_system", "FAIL", &["procfs", "ext4"]);
}

#[test]
fn a_user_without_permission_learns_the_owner() {
    let site = site();
    site.short("a").end().with_code(0);
    let file = site.store.database();
    if !is_root() {
        fs::set_permissions(&file, Permissions::from_mode(0o400)).unwrap();
    }
    fs::set_permissions(site.file("state"), Permissions::from_mode(0o755)).unwrap();
    let all = found(site.verb(&["doctor"]).unprivileged(), 77);
    says(&all, "file", "FAIL", &["mode 0", "run as its owner"]);
}

#[test]
fn a_store_that_every_user_may_write_to_is_a_warning() {
    let site = site();
    site.short("a").end().with_code(0);
    let open = |path: &str, mode| {
        fs::set_permissions(site.file(path), Permissions::from_mode(mode)).unwrap();
    };
    open("state", 0o777);
    open("state/tokens.db", 0o666);
    // What lies beside it is not for the same users: it could be a private file.
    let all = found(site.verb(&["doctor"]), 78);
    says(&all, "file", "FAIL", &["-wal", "mode of the database"]);
    open("state/tokens.db-wal", 0o666);
    open("state/tokens.db-shm", 0o666);
    let all = found(site.verb(&["doctor"]), 0);
    says(&all, "file", "warn", &["every user", "chmod"]);
    says(&all, "directory", "warn", &["every user"]);
}

#[test]
fn the_process_that_blocks_writers_is_named() {
    let site = site();
    site.short("a").end().with_code(0);
    let connection = rusqlite::Connection::open(site.store.database()).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let line = site.verb(&["doctor", "--store-timeout=1s"]);
    let all = found(line, 69);
    let pid = std::process::id().to_string();
    let failed = all.iter().find(|it| it["verdict"] == "FAIL").unwrap();
    assert_eq!(failed["step"], "writer", "{failed:#}");
    assert!(
        failed["found"].as_str().unwrap().contains(&pid),
        "{failed:#}"
    );
    drop(connection);
    let run = site.run("b").start();
    site.store.until_begun("b");
    let all = found(site.verb(&["doctor", "-g", GROUP]), 0);
    says(&all, "group", "ok", &["running", "bound to b"]);
    says(&all, "tokens", "ok", &["1"]);
    says(&all, "lock_files", "ok", &["1 of runs"]);
    site.store.go(0);
    run.end().with_code(0);
}

#[test]
fn needs_root_there_is_no_default_store_in_a_container() {
    let site = site();
    let line = site.store.bare(&["doctor"]);
    let all = found(line.under(&["unshare", "-rpf", "--mount-proc"]), 78);
    says(&all, "store", "FAIL", &["no default store", "--store"]);
    let line = site
        .store
        .bare(&["doctor"])
        .env("KUBERNETES_SERVICE_HOST", "10.0.0.1");
    says(&found(line, 78), "store", "FAIL", &["Kubernetes"]);
}

#[test]
fn it_names_the_origin_of_each_setting() {
    let site = site();
    site.short("a").end().with_code(0);
    let file = site.store.path().join("settings.toml");
    fs::write(&file, "[groups.nightly]\nkeep = \"6h\"\n").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let file = file.to_str().unwrap().to_owned();
    let line = site.verb(&[
        "doctor",
        "-g",
        "nightly",
        "--config",
        &file,
        "--head-start=9s",
    ]);
    let all = found(line.env("TOKENRUN_HEARTBEAT", "2s"), 0);
    let settings = all.iter().filter(|it| it["step"] == "setting");
    let settings: Vec<_> = settings.map(|it| it["found"].as_str().unwrap()).collect();
    assert!(
        settings.contains(&"heartbeat is 2s, by environment TOKENRUN_HEARTBEAT"),
        "{settings:?}"
    );
    assert!(
        settings.contains(&"head-start is 9s, by flag"),
        "{settings:?}"
    );
    let keep = settings.iter().find(|it| it.starts_with("keep")).unwrap();
    assert!(
        keep.starts_with("keep is 6h, by ") && keep.contains("settings.toml:2"),
        "{keep}"
    );
    assert!(
        !settings.iter().any(|it| it.starts_with("takeover-after")),
        "{settings:?}"
    );
}
