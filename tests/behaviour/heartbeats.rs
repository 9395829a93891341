//! A run that lasts leaks nothing.

use std::fs;

use crate::support::{Store, until};

const BEATS: i64 = 300;

/// What a process has open now.
fn descriptors(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// A process's own memory in KiB.
fn memory(pid: i32) -> u64 {
    let memory = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = memory
        .lines()
        .find_map(|line| line.strip_prefix("Anonymous:"));
    line.unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap()
}

/// A thread costs a short run more than its grant on a free store.
#[test]
fn a_run_has_one_thread_until_its_first_heartbeat() {
    let store = Store::new();
    let supervisor = "$(cut -d' ' -f4 /proc/$PPID/stat)";
    let line = store.free_run("node-a");
    let ended = line.script(&format!("ls /proc/{supervisor}/task")).end();
    let ended = ended.with_code(0);
    assert_eq!(ended.stdout.lines().count(), 1, "{ended:?}");
}

#[test]
fn hundreds_of_heartbeats_leak_no_descriptor_and_no_memory() {
    let store = Store::new();
    let run = store
        .free_run("node-a")
        .with(&["--heartbeat=100ms"])
        .start();
    store.until_begun("node-a");
    let both = [run.pid(), run.guard()];
    // One connection: each that closes makes the holder wait.
    let connection = store.sql();
    let mut version = 0;
    let mut after = |beats: i64| {
        // What is open for a while, such as the log while the disk is waited for, is not open in each look.
        let mut open = both.map(descriptors);
        // Each by itself: a slow disk delays the sum of many by more than any wait for one.
        for beat in 1..=beats {
            until(&format!("heartbeat {beat} of {beats}"), || {
                open = [0, 1].map(|one| open[one].min(descriptors(both[one])));
                let sql = "SELECT version FROM tokens WHERE token_group = 'job'";
                let now: i64 = connection.query_row(sql, [], |row| row.get(0)).unwrap();
                let is_new = std::mem::replace(&mut version, now) != now;
                is_new.then_some(()).ok_or(now.to_string())
            });
        }
        [0, 1].map(|one| (open[one], memory(both[one])))
    };
    // The first one opens what all others use.
    after(2);
    let mut before = after(BEATS / 4);
    // What happens rarely touches pages once; a leak grows each time.
    let grows = (1..=3).all(|_| {
        let then = after(BEATS);
        println!(
            "(descriptors, KiB) of supervisor and guard: {before:?}, and {BEATS} heartbeats later {then:?}"
        );
        let opened = before.map(|(open, _)| open);
        assert_eq!(then.map(|(open, _)| open), opened);
        // A holder remembers the version of each: eight bytes.
        let grown = before.iter().zip(&then).any(|((_, kib), (_, kib_then))| *kib_then > kib + 24);
        before = then;
        grown
    });
    assert!(!grows, "it grew by more than 24 KiB each time");
    store.go(0);
    run.end().with_code(0);
}
