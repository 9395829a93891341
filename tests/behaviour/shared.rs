//! A store in a directory that several users of one group share.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;

use nix::sys::signal::Signal;

use crate::support::{Line, Store, is_root, until, until_dead};

/// The group that shares the directory.
const GROUP: u32 = 61_000;

/// A store in a directory as an administrator makes it: `install -d -m 2770 -g jobs`.
fn shared() -> Store {
    assert!(
        is_root(),
        "this test starts processes of several users: run it as root"
    );
    let store = Store::new();
    let state = store.file("state");
    fs::create_dir(&state).unwrap();
    chown(&state, Some(0), Some(GROUP)).unwrap();
    fs::set_permissions(&state, Permissions::from_mode(0o2770)).unwrap();
    store
}

/// The line as this user of the group, with this umask.
fn by(line: Line, user: u32, umask: &str) -> Line {
    let script = format!("umask {umask}; exec \"$@\"");
    line.with_user_in(user, Some(GROUP))
        .under(&["sh", "-c", &script, "sh"])
}

fn run(store: &Store, client: &str, script: &str) -> Line {
    store.run(client).script(script)
}

/// Everything in a directory, and in those within it.
fn everything(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let all = paths.flat_map(|path| match path.is_dir() {
        true => [vec![path.clone()], everything(&path)].concat(),
        false => vec![path],
    });
    all.collect()
}

fn assert_is_the_groups(store: &Store) {
    let all = everything(&store.file("state"));
    // The database, its log and the log's index, the directory of locks.
    assert!(all.len() >= 4, "{all:?}");
    for path in all {
        let Ok(found) = fs::metadata(&path) else {
            continue;
        };
        let expected = if path.is_dir() { 0o2770 } else { 0o660 };
        let mode = found.mode() & 0o7777;
        assert_eq!(mode, expected, "{}: {mode:o}", path.display());
        assert_eq!(found.gid(), GROUP, "{}", path.display());
    }
}

#[test]
fn two_users_of_a_group_exclude_each_other_and_take_over_from_the_dead() {
    let store = shared();
    let script = "echo $$; exec sleep 300";
    let held = by(run(&store, "node-a", script), 61_001, "007").start();
    let job: i32 = until("the job has begun", || {
        held.stdout().trim().parse().map_err(|_| held.stderr())
    });
    assert_is_the_groups(&store);
    // The umask does not matter, and neither does who comes first.
    for umask in ["007", "077"] {
        let refused = by(run(&store, "node-b", "true"), 61_002, umask).end();
        refused
            .with_code(75)
            .says(&["\"job\" is held by node-a", "can be taken over in"]);
    }
    held.signal(Signal::SIGKILL);
    held.end();
    until_dead(job);
    // It is proven by the locks of another user's run: the lease lasts for minutes.
    let took = by(run(&store, "node-b", "true"), 61_002, "077");
    let took = took.with(&["-v"]).end().with_code(0);
    let said = "took \"job\" from node-a, whose holder is dead";
    assert!(took.stderr.contains(said), "{took:?}");
    let back = by(run(&store, "node-a", "true"), 61_001, "022").end();
    back.with_code(75).says(&["belongs to node-b"]);
    assert_is_the_groups(&store);
    let ended: Vec<_> = store.history().iter().map(outcome).collect();
    assert_eq!(ended, ["node-b succeeded", "node-a unknown"]);
}

fn outcome(run: &serde_json::Value) -> String {
    let text = |name: &str| run[name].as_str().unwrap().to_owned();
    format!("{} {}", text("client"), text("outcome"))
}

#[test]
fn users_outside_of_the_group_are_refused() {
    let store = shared();
    by(run(&store, "node-a", "true"), 61_001, "007")
        .end()
        .with_code(0);
    let stranger = run(&store, "node-x", "true").with_user_in(61_003, None);
    stranger.end().with_code(77).says(&["Permission denied"]);
}

#[test]
fn a_directory_without_the_bit_or_open_to_everybody_is_not_shared() {
    for mode in [0o770, 0o2777, 0o2750] {
        let store = shared();
        let state = store.file("state");
        fs::set_permissions(&state, Permissions::from_mode(mode)).unwrap();
        run(&store, "node-a", "true").end().with_code(0);
        for path in everything(&state) {
            let mode = fs::metadata(&path).unwrap().mode() & 0o777;
            let expected = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode, expected, "{}: {mode:o}", path.display());
        }
    }
}
