//! A store that another process has locked: the error names it, with code 69.

use std::env;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use rusqlite::Connection;

use crate::support::{Store, signal, until_stopped};

const DATABASE: &str = "LOCK_THIS_DATABASE";

/// Not a test: the process that [`Holder`] starts.
#[test]
fn holds_a_lock_as_a_test_process() {
    let Ok(database) = env::var(DATABASE) else {
        return;
    };
    let connection = Connection::open(database).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    println!("\nlocked");
    // Until its parent closes the pipe.
    std::io::stdin().lines().for_each(drop);
}

/// A process that has the database locked.
struct Holder(Child);

impl Holder {
    fn of(database: &Path) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "locked_store::holds_a_lock_as_a_test_process"])
            .args(["--nocapture", "--test-threads=1"])
            .env(DATABASE, database)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "locked"));
        Self(child)
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // It is this test's own child, and not yet waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_lock_that_outlasts_the_time_out_is_reported_with_its_owner() {
    let store = Store::new();
    store.free_run("node-a").job(&["true"]).end().with_code(0);
    let holder = Holder::of(&store.database());
    let run = || {
        let line = store.free_run("node-a").with(&["--store-timeout=2s"]);
        line.job(&["touch", "ran"]).end().with_code(69)
    };
    let pid = format!("pid {}", holder.pid());
    let ended = run();
    ended.says(&["locked for longer than 2s", &pid, "touch was not started"]);
    assert!(!ended.stderr.contains("stopped"), "{ended:?}");

    signal(holder.pid(), Signal::SIGSTOP);
    until_stopped(holder.pid());
    run().says(&[
        &pid,
        "which is stopped",
        &format!("kill -CONT {}", holder.pid()),
    ]);

    drop(holder);
    assert!(!store.file("ran").exists());
    assert_eq!(store.status()["state"], "free");
    assert_eq!(store.status()["runs"], 1);
}

#[test]
fn a_refusal_and_a_listing_need_no_lock() {
    let store = Store::new();
    let line = store.run("node-a").with(&["--keep=1h"]);
    line.job(&["true"]).end().with_code(0);
    let _holder = Holder::of(&store.database());
    store
        .free_run("node-b")
        .end()
        .with_code(75)
        .says(&["belongs to node-a"]);
    assert_eq!(store.status()["client"], "node-a");
    assert_eq!(store.history().len(), 1);
}
