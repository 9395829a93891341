//! A disk without room for the grant: it is refused, and nothing is left in doubt.

use crate::support::Store;

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
