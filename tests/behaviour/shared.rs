//! A store in a directory that several users of one group share.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::time::{Duration, SystemTime};

use nix::sys::signal::Signal;

use crate::support::{Line, Store, alive, is_root, until, until_dead};

/// The group that shares the directory.
pub(crate) const GROUP: u32 = 61_000;

/// The mode of the directory as the guide has it.
const MODE: u32 = 0o3770;

/// A store in a directory as an administrator makes it: `install -d -m 3770 -g jobs`.
pub(crate) fn shared(mode: u32) -> Store {
    assert!(
        is_root(),
        "this test starts processes of several users: run it as root"
    );
    let store = Store::new();
    let state = store.file("state");
    fs::create_dir(&state).unwrap();
    chown(&state, Some(0), Some(GROUP)).unwrap();
    fs::set_permissions(&state, Permissions::from_mode(mode)).unwrap();
    store
}

/// The line as this user of the group, with this umask.
pub(crate) fn by(line: Line, user: u32, umask: &str) -> Line {
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
        // A sweep's mark is its user's alone.
        let is_mark = path.to_string_lossy().contains("/swept-");
        let expected = match path.is_dir() {
            true => 0o3770,
            false if is_mark => 0o600,
            false => 0o660,
        };
        let mode = found.mode() & 0o7777;
        assert_eq!(mode, expected, "{}: {mode:o}", path.display());
        assert_eq!(found.gid(), GROUP, "{}", path.display());
    }
}

#[test]
fn needs_root_two_users_of_a_group_exclude_each_other_and_take_over_from_the_dead() {
    let store = shared(MODE);
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
    let guard = held.guard();
    held.signal(Signal::SIGKILL);
    held.end();
    until_dead(guard);
    assert!(!alive(job));
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
fn needs_root_each_user_of_a_group_removes_the_lock_files_of_their_own_dead_runs() {
    let store = shared(MODE);
    let users = [("node-a", 61_001), ("node-b", 61_002)];
    for (client, user) in users {
        let script = "echo $$; exec sleep 300";
        let line = run(&store, client, script).with(&["--keep=0"]);
        let held = by(line, user, "077").start();
        let job: i32 = until("the job has begun", || {
            held.stdout().trim().parse().map_err(|_| held.stderr())
        });
        held.signal(Signal::SIGKILL);
        held.end();
        until_dead(job);
    }
    let left = store.lock_files();
    assert!(!left.is_empty(), "{left:?}");
    let long_ago = SystemTime::now() - Duration::from_hours(48);
    for name in &left {
        let file = File::options().write(true).open(store.locks().join(name));
        file.unwrap().set_modified(long_ago).unwrap();
    }
    for (client, user) in users {
        let line = run(&store, client, "true").with(&["--keep=0"]);
        by(line, user, "077").end().with_code(0);
    }
    assert_eq!(store.lock_files(), [""; 0]);
}

/// A user who died while the store was being made, or an administrator's `touch`.
#[test]
fn needs_root_a_second_ordinary_user_finds_an_empty_file() {
    let store = shared(0o2770);
    fs::write(store.database(), "").unwrap();
    chown(store.database(), Some(61_001), Some(GROUP)).unwrap();
    fs::set_permissions(store.database(), Permissions::from_mode(0o660)).unwrap();
    by(run(&store, "node-b", "true"), 61_002, "077")
        .end()
        .with_code(0);
    by(run(&store, "node-a", "true"), 61_001, "077")
        .end()
        .with_code(75);
    assert_is_the_groups(&store);
    // With the sticky bit only its owner may replace it.
    let store = shared(MODE);
    fs::write(store.database(), "").unwrap();
    chown(store.database(), Some(61_001), Some(GROUP)).unwrap();
    fs::set_permissions(store.database(), Permissions::from_mode(0o660)).unwrap();
    let refused = by(run(&store, "node-b", "true"), 61_002, "077").end();
    let words = ["an empty file of another user", "remove it"];
    refused.with_code(77).says(&words);
    by(run(&store, "node-b", "true"), 61_001, "077")
        .end()
        .with_code(0);
}

#[test]
fn needs_root_users_outside_of_the_group_are_refused() {
    let store = shared(MODE);
    by(run(&store, "node-a", "true"), 61_001, "007")
        .end()
        .with_code(0);
    let stranger = run(&store, "node-x", "true").with_user_in(61_003, None);
    stranger.end().with_code(77).says(&["Permission denied"]);
}

#[test]
fn needs_root_a_directory_without_the_bit_or_open_to_everybody_is_not_shared() {
    for mode in [0o770, 0o2777, 0o2750] {
        let store = shared(mode);
        let state = store.file("state");
        run(&store, "node-a", "true").end().with_code(0);
        for path in everything(&state) {
            let mode = fs::metadata(&path).unwrap().mode() & 0o777;
            let expected = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode, expected, "{}: {mode:o}", path.display());
        }
    }
}
