//! A disk that can't be written to: without room, broken, or mounted for reading.

use crate::support::{Line, Store};

/// A file system of a mebibyte with a copy of the store on it, filled but for what SQLite takes to
/// open the store.
const FULL: &str = "mount -t tmpfs -o size=1m none small && cp state/tokens.db small/tokens.db
dd if=/dev/zero of=small/filler bs=4k 2> /dev/null
truncate -s -36k small/filler && exec \"$@\"";

#[test]
fn a_grant_that_finds_no_room_has_not_happened() {
    let store = Store::new();
    store.free_run("a").job(&["true"]).end().with_code(0);
    let to_file = "PRAGMA wal_checkpoint(TRUNCATE)";
    store.sql().query_row(to_file, [], |_| Ok(())).unwrap();
    std::fs::create_dir(store.file("small")).unwrap();
    let line = store.bare(&["-s", "small/tokens.db", "-g", "job", "--keep=0"]);
    let line = line.with(&["--client-id=a"]).job(&["true"]);
    let ended = line
        .under(&["unshare", "-rm", "sh", "-c", FULL, "sh"])
        .end();
    let ended = ended.with_code(69);
    ended.says(&["the disk is full; make room there", "true was not started"]);
    assert!(!ended.stderr.contains("may be held"), "{ended:?}");
}

/// A store on a file system of a mebibyte that is then made useless by this script.
fn on_small_disk(store: &Store, words: &[&str], spoiled: &str) -> Line {
    store.free_run("a").job(&["true"]).end().with_code(0);
    let to_file = "PRAGMA wal_checkpoint(TRUNCATE)";
    store.sql().query_row(to_file, [], |_| Ok(())).unwrap();
    std::fs::create_dir(store.file("small")).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=1m none small && cp state/tokens.db small/tokens.db
         {spoiled}
         exec \"$@\""
    );
    let line = store.bare(words).with(&["-s", "small/tokens.db"]);
    line.under(&["unshare", "-rm", "sh", "-c", &script, "sh"])
}

#[test]
fn doctor_sees_that_the_disk_is_full() {
    let filled = "dd if=/dev/zero of=small/filler bs=4k 2> /dev/null";
    for name in ["small/tokens.db", "small/new.db"] {
        let store = Store::new();
        let line = on_small_disk(&store, &["doctor"], filled);
        let line = line.without(&["small/tokens.db"]).with(&[name]);
        let ended = line.end().with_code(69);
        let said =
            "64 KiB can't be written: No space left on device (os error 28) -> make room there";
        assert!(ended.stdout.contains(said), "{name}: {ended:?}");
    }
}

#[test]
fn a_disk_that_is_mounted_for_reading_has_its_own_remedy() {
    let read_only = "mount -o remount,bind,ro small";
    let store = Store::new();
    let ended = on_small_disk(&store, &["doctor"], read_only).end();
    let ended = ended.with_code(77);
    let advice = ended.stdout.matches("-> mount it writable").count();
    assert!(advice >= 2, "{ended:?}");
    assert!(!ended.stdout.contains("chown"), "{ended:?}");
    let store = Store::new();
    let line = on_small_disk(
        &store,
        &["-g", "job", "--client-id=a", "--keep=0"],
        read_only,
    );
    let refused = line.job(&["true"]).end().with_code(77);
    refused.says(&["Read-only file system", "mount it writable"]);
}

/// The kernel reports the failed write once, and would report success the next time.
#[test]
fn a_disk_that_fails_to_write_the_end_of_a_run_is_not_asked_again() {
    let store = Store::new();
    store.free_run("a").job(&["true"]).end().with_code(0);
    let broken = ["-f", "-qq", "-o", "trace", "-e", "trace=fdatasync"];
    let broken = [
        &["strace"],
        &broken[..],
        &["-e", "inject=fdatasync:error=EIO"],
    ]
    .concat();
    for words in [&[][..], &["--once=k"]] {
        let line = store.free_run("a").with(words).job(&["true"]);
        let ended = line.under(&broken).end();
        ended.tells(&["os error 5", "the disk is broken"]);
        let trace = std::fs::read_to_string(store.file("trace")).unwrap();
        assert_eq!(trace.matches("INJECTED").count(), 1, "{trace}");
    }
}
