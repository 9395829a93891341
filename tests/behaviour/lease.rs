//! The job does not outlive its lease, whatever becomes of the store.

use nix::sys::signal::Signal;
use rusqlite::Connection;

use crate::support::{Store, boot_ms, until, until_dead};

const TAKEOVER_AFTER_MS: i64 = 5_000;

/// Locks the store as a hung administrator would.
fn block(store: &Store) -> Connection {
    let connection = store.sql();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection
}

fn count(text: &str, words: &str) -> usize {
    text.matches(words).count()
}

#[test]
fn a_store_that_fails_for_longer_than_the_lease_ends_the_job_in_time() {
    let store = Store::new();
    let run = store.free_run("node-a").hasty().start();
    store.until_begun("node-a");
    let blocker = block(&store);
    let last: i64 = store.cell("stamped_tick");
    store.until_job_gone();
    let gone = boot_ms();
    assert!(gone - last < TAKEOVER_AFTER_MS, "{} ms", gone - last);

    let ended = run.end().with_code(76);
    drop(blocker);
    assert_eq!(count(&ended.stderr, "can't be used"), 1, "{ended:?}");
    assert_eq!(count(&ended.stderr, "could not be renewed"), 1, "{ended:?}");
    assert!(ended.stderr.contains("locked"), "{ended:?}");
    assert!(
        ended.stderr.contains("did not confirm its record"),
        "{ended:?}"
    );
    // No other node may have the token before the holder's takeover-after.
    let next = until("node-b takes over", || {
        let ended = store.free_run("node-b").hasty().job(&["true"]).end();
        match ended.code {
            Some(75) => Err(ended.stderr),
            _ => Ok(ended),
        }
    });
    next.with_code(0);
    let history = store.history();
    assert_eq!(history[0]["grant"], "takeover");
    assert_eq!(history[1]["outcome"], "unknown");
}

#[test]
fn a_store_that_fails_for_a_while_does_no_harm() {
    let store = Store::new();
    let durations = ["--heartbeat=300ms", "--store-timeout=2s"];
    let run = store.free_run("node-a").with(&durations).start();
    let job = store.until_begun("node-a");
    for turn in 1..=2 {
        let blocker = block(&store);
        until("the trouble is reported", || {
            let seen = run.stderr();
            let is_seen = count(&seen, "can't be used") == turn;
            is_seen.then_some(()).ok_or(seen)
        });
        drop(blocker);
        until("its end is reported", || {
            let seen = run.stderr();
            let is_seen = count(&seen, "can be used again; sh went on") == turn;
            is_seen.then_some(()).ok_or(seen)
        });
    }
    assert!(crate::support::alive(job));
    store.go(0);
    let ended = run.end().with_code(0);
    assert_eq!(ended.messages().len(), 4, "{ended:?}");
    assert_eq!(store.history()[0]["outcome"], "succeeded");
}

#[test]
fn a_stopped_supervisors_job_is_ended_by_the_guard_and_it_finds_out_later() {
    let store = Store::new();
    let first = store.free_run("node-a").hasty().start();
    store.until_begun("node-a");
    store.suspend(&first);
    let last: i64 = store.cell("stamped_tick");
    store.until_job_gone();
    // A heartbeat that was on its way may have been written since.
    let last = last.max(store.cell("stamped_tick"));
    let gone = boot_ms();
    assert!(gone - last < TAKEOVER_AFTER_MS, "{} ms", gone - last);

    // A merely stopped supervisor whose job has ended delays no other node.
    let second = until("node-b takes over", || {
        let ended = store.free_run("node-b").hasty().job(&["true"]).end();
        match ended.code {
            Some(75) => Err(ended.stderr),
            _ => Ok(ended),
        }
    });
    second.with_code(0);

    first.signal(Signal::SIGCONT);
    let ended = first.end().with_code(76);
    assert!(ended.stderr.contains("sh is ended"), "{ended:?}");
    let history = store.history();
    assert_eq!(history[1]["client"], "node-a");
    assert_eq!(history[1]["outcome"], "lost", "{history:?}");
    assert_eq!(store.status()["state"], "free");
    store.assert_no_overlap();
}

#[test]
fn a_job_whose_guard_is_killed_is_ended_and_its_token_released() {
    let store = Store::new();
    let run = store.free_run("node-a").start();
    let job = store.until_begun("node-a");
    crate::support::signal(run.guard(), Signal::SIGKILL);
    let ended = run.end().with_code(76);
    until_dead(job);
    assert!(!store.is_job_alive());
    assert!(ended.stderr.contains("guard"), "{ended:?}");
    assert_eq!(store.history()[0]["outcome"], "lost");
    assert_eq!(store.status()["state"], "free");
    store.free_run("node-b").job(&["true"]).end().with_code(0);
}

#[test]
fn a_guard_that_is_stopped_is_continued_or_replaced() {
    let store = Store::new();
    let run = store.free_run("node-a").hasty().start();
    store.until_begun("node-a");
    let guard = run.guard();
    crate::support::signal(guard, Signal::SIGSTOP);
    until("the guard goes on or is gone", || {
        let stat = std::fs::read_to_string(format!("/proc/{guard}/stat"));
        let stopped = stat.is_ok_and(|text| text.contains(") T "));
        if stopped { Err(run.stderr()) } else { Ok(()) }
    });
    store.go(0);
    let ended = run.end();
    // On a machine that is too busy the guard may have been given up.
    assert!(matches!(ended.code, Some(0 | 76)), "{ended:?}");
    assert!(!store.is_job_alive());
    assert_eq!(store.status()["state"], "free");
}

#[test]
fn a_store_that_is_removed_ends_the_job_in_time() {
    let store = Store::new();
    let run = store.free_run("node-a").hasty().start();
    store.until_begun("node-a");
    let begun = boot_ms();
    std::fs::remove_dir_all(store.file("state")).unwrap();
    store.until_job_gone();
    assert!(boot_ms() - begun < TAKEOVER_AFTER_MS);
    let ended = run.end().with_code(76);
    assert_eq!(count(&ended.stderr, "removed or replaced"), 2, "{ended:?}");
}

/// It can't come back, so the end of the run does not wait for it: neither as long as the lease can
/// be trusted, four and a half minutes, nor for six time-outs.
#[test]
fn a_store_that_is_removed_is_not_waited_for_when_the_job_has_ended() {
    for (words, code) in [(&["--once=k"][..], 74), (&["--store-timeout=29s"], 0)] {
        let store = Store::new();
        let run = store.free_run("node-a").with(words);
        let run = run.with(&["--report", "report.json"]).start();
        store.until_begun("node-a");
        std::fs::remove_dir_all(store.file("state")).unwrap();
        store.go(0);
        let ended = run.end().with_code(code);
        let [line] = ended.messages()[..] else {
            panic!("{ended:?}");
        };
        assert!(line.contains("was removed or replaced"), "{line}");
        let report = std::fs::read_to_string(store.file("report.json")).unwrap();
        assert!(report.contains("\"recorded\": false"), "{report}");
    }
}

#[test]
fn a_log_that_is_removed_ends_the_job_at_once() {
    assert_a_removed_log_ends_the_job(&Store::new());
}

/// What `VACUUM INTO` or a restore leaves has no log until the first run writes to it.
#[test]
fn a_log_that_is_removed_ends_the_job_in_a_file_that_had_none() {
    let store = Store::new();
    store.free_run("node-a").job(&["true"]).end().with_code(0);
    store
        .sql()
        .execute_batch("PRAGMA journal_mode = DELETE")
        .unwrap();
    assert_a_removed_log_ends_the_job(&store);
}

fn assert_a_removed_log_ends_the_job(store: &Store) {
    let run = store.free_run("node-a").hasty().start();
    store.until_begun("node-a");
    for end in ["-wal", "-shm"] {
        let mut name = store.database().into_os_string();
        name.push(end);
        std::fs::remove_file(name).unwrap();
    }
    // Nothing would exclude another node: the end must not take a lease's length.
    store.until_job_gone();
    let ended = run.end().with_code(76);
    assert!(
        ended.messages()[0].contains("was removed or replaced"),
        "{ended:?}"
    );
}

#[test]
fn a_job_that_ends_while_the_store_fails_keeps_its_own_exit_code() {
    let store = Store::new();
    let durations = ["--heartbeat=300ms", "--store-timeout=1s"];
    let run = store.free_run("node-a").with(&durations).start();
    store.until_begun("node-a");
    let blocker = block(&store);
    run.until_says("can't be used");
    store.go(3);
    let ended = run.end().with_code(3);
    drop(blocker);
    assert_eq!(
        count(&ended.stderr, "did not confirm its record"),
        1,
        "{ended:?}"
    );
    assert_eq!(store.status()["state"], "running");
    assert_eq!(store.history()[0]["outcome"], "running");
}

#[test]
fn a_job_that_ends_during_a_short_failure_is_recorded_after_it() {
    let store = Store::new();
    let run = store.free_run("node-a").with(&["--store-timeout=5s"]);
    let run = run.start();
    store.until_begun("node-a");
    let blocker = block(&store);
    store.go(3);
    store.until_job_gone();
    drop(blocker);
    run.end().with_code(3).says_failed();
    assert_eq!(store.history()[0]["outcome"], "failed");
    assert_eq!(store.status()["state"], "free");
}
