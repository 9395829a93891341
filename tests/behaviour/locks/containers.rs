//! Containers on one host: other processes, other mounts, the same directory.

use super::{contender, kill_both, once_silent};
use crate::support::{Line, Store, until, until_dead};

/// Process and mount namespaces of its own, in which the store's directory is mounted
/// elsewhere. tokenrun is process 1.
const CONTAINER: [&str; 6] = [
    "unshare",
    "-rmpf",
    "--mount-proc",
    "sh",
    "-c",
    "mkdir -p inner && mount --bind state inner && mount -t tmpfs none state && exec \"$@\"",
];

fn inside(store: &Store, line: Line) -> Line {
    let database = store.file("inner/tokens.db");
    let mut line = line.with(&[&format!("--store={}", database.display())]);
    line = line.without(&["-s", store.database().to_str().unwrap()]);
    line.under(&CONTAINER).under(&["sh"])
}

/// Kills the container's process 1, and everything in it with it.
fn kill_container(run: crate::support::Run) {
    let first = run.guard();
    crate::support::signal(first, nix::sys::signal::Signal::SIGKILL);
    until_dead(first);
    run.end();
}

#[test]
fn one_that_was_killed_is_taken_over_at_once_from_outside_and_from_another() {
    let store = Store::new();
    store.free_run("node-x").job(&["true"]).end().with_code(0);
    for from_another in [false, true] {
        let name = format!("node-{from_another}");
        let run = inside(&store, store.free_run(&name)).start();
        store.until_begun(&name);
        let refused = contender(&store).end().with_code(75);
        refused.says(&[&format!("\"job\" is held by {name}")]);
        kill_container(run);
        store.until_job_gone();
        let line = contender(&store);
        let line = if from_another {
            inside(&store, line)
        } else {
            line
        };
        let ended = line.end().with_code(0);
        assert!(ended.stderr.contains("whose holder is dead"), "{ended:?}");
    }
    assert_eq!(store.lock_files(), [""; 0]);
}

#[test]
fn one_outside_that_was_killed_is_taken_over_at_once_from_inside() {
    let store = Store::new();
    let run = store.free_run("node-a").start();
    store.until_begun("node-a");
    let refused = inside(&store, contender(&store)).end().with_code(75);
    refused.says(&["\"job\" is held by node-a"]);
    kill_both(run);
    // The job itself dies of its guard's death, a moment later.
    let ended = once_silent(&inside(&store, contender(&store))).with_code(0);
    assert!(ended.stderr.contains("whose holder is dead"), "{ended:?}");
}

#[test]
fn a_survivor_in_another_container_blocks_a_takeover_although_it_is_unnamed() {
    let store = Store::new();
    let script = r#"
        (setsid sh -c 'echo "begin left $$" >> log; exec sleep 300' > /dev/null 2>&1 &)
        until read -r line < go; do :; done"#;
    let run = store.free_run("node-a").hasty().script(script).start();
    let left = store.until_begun("left");
    kill_both(run);
    let refused = once_silent(&inside(&store, contender(&store))).with_code(75);
    refused.says(&["still alive here: processes that can't be seen from here"]);
    crate::support::signal(left, nix::sys::signal::Signal::SIGKILL);
    until_dead(left);
    until("it is taken", || {
        let ended = inside(&store, contender(&store)).end();
        match ended.code {
            Some(0) => Ok(()),
            _ => Err(ended.stderr),
        }
    });
}
