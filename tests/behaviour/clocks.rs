//! Stamps of another boot are never compared, and the wall clock decides nothing.

use nix::sys::signal::Signal;

use crate::support::{Run, Store, until};

/// A holder that is stopped, and its stamp another boot's.
fn held_by_another_clock(store: &Store) -> Run {
    let first = store.free_run("node-a").with(&["--heartbeat=1s"]).start();
    store.until_begun("node-a");
    store.suspend(&first);
    store.edit("clock_epoch = 'boot:another'");
    first
}

/// Runs a program where /proc shows nothing.
pub(crate) const NO_PROC: [&str; 6] = [
    "unshare",
    "-rm",
    "sh",
    "-c",
    "mount -t tmpfs none /proc && exec \"$@\"",
    "sh",
];

#[test]
fn the_stamp_of_another_boot_is_watched_and_a_live_holders_heartbeat_ends_that() {
    let store = Store::new();
    let first = held_by_another_clock(&store);
    let second = store.free_run("node-b").start();
    second.until_says("was stamped by another clock (boot:another");
    first.signal(Signal::SIGCONT);
    let refused = second.end().with_code(75);
    assert!(
        refused.stderr.contains("\"job\" is held by node-a"),
        "{refused:?}"
    );
    store.go(0);
    first.end().with_code(0);
    store.assert_no_overlap();
}

#[test]
fn a_holder_that_is_heard_while_it_is_watched_refuses_whatever_its_clock() {
    // Without /proc there is no boot id: its clock epoch is private.
    let store = Store::new();
    let first = store.free_run("node-a").with(&["--heartbeat=300ms"]);
    let first = first.under(&NO_PROC).start();
    store.until_begun("node-a");
    let second = store.free_run("node-b").with(&["--heartbeat=300ms"]).end();
    let second = second.with_code(75);
    let [watching, refused] = second.messages()[..] else {
        panic!("two messages are expected: {second:?}");
    };
    assert!(watching.contains("was stamped by another clock"));
    assert!(refused.contains("\"job\" is held by node-a"));
    store.go(0);
    first.end().with_code(0);
    store.assert_no_overlap();
}

#[test]
fn an_observing_run_can_be_stopped() {
    let store = Store::new();
    let first = held_by_another_clock(&store);
    let second = store.free_run("node-b").start();
    second.until_says("was stamped by another clock");
    second.signal(Signal::SIGTERM);
    let ended = second.end();
    assert_eq!(ended.signal, Some(Signal::SIGTERM as i32), "{ended:?}");
    first.signal(Signal::SIGCONT);
    store.go(0);
    first.end().with_code(0);
    assert_eq!(store.history().len(), 1);
}

#[test]
fn a_holder_renews_in_its_own_clock_whatever_the_row_said() {
    let store = Store::new();
    let run = store
        .free_run("node-a")
        .with(&["--heartbeat=300ms"])
        .start();
    store.until_begun("node-a");
    let epoch: String = store.cell("clock_epoch");
    store.edit("clock_epoch = 'boot:another'");
    until("a heartbeat stamps the row", || {
        let seen: String = store.cell("clock_epoch");
        (seen == epoch).then_some(()).ok_or(seen)
    });
    store.go(0);
    run.end().with_code(0);
}

#[test]
fn a_holder_that_died_with_its_boot_on_another_host_is_taken_over_once_it_has_been_watched() {
    let store = Store::new();
    let first = store.free_run("node-a").hasty().start();
    store.until_begun("node-a");
    first.signal(Signal::SIGKILL);
    first.end();
    store.until_job_gone();
    // By the numbers it would be open now, or not for years.
    for (tick, client) in [("0", "node-b"), ("9000000000000", "node-c")] {
        if client == "node-c" {
            let dead = store.free_run("node-x").hasty().start();
            store.until_begun("node-x");
            dead.signal(Signal::SIGKILL);
            dead.end();
            store.until_job_gone();
        }
        store.edit(&format!(
            "clock_epoch = 'boot:another', stamped_tick = {tick}"
        ));
        let started = std::time::Instant::now();
        let line = store.free_run(client).hasty().job(&["true"]);
        let ended = line.elsewhere(&store).end().with_code(0);
        assert!(started.elapsed().as_millis() >= 5_000);
        assert!(ended.stderr.contains("another clock"), "{ended:?}");
        assert_eq!(store.history()[0]["grant"], "takeover");
    }
}

#[test]
fn a_holder_that_died_with_its_boot_on_this_host_is_known_to_be_dead() {
    let store = Store::new();
    let first = store.free_run("node-a").start();
    store.until_begun("node-a");
    first.signal(Signal::SIGKILL);
    first.end();
    store.until_job_gone();
    store.edit("clock_epoch = 'boot:another', stamped_tick = 9000000000000");
    let ended = until("the guard is gone too", || {
        let line = store.free_run("node-a").hasty().job(&["true"]);
        let ended = line.end();
        match ended.stderr.contains("holder is dead") {
            true => Ok(ended),
            false => Err(ended.stderr),
        }
    });
    ended.with_code(0);
}

/// The wall times in the row become a day later or earlier.
fn shift(store: &Store, days: &str) {
    let by = format!("{days} days");
    store.edit(&format!(
        "stamped_at = strftime('%Y-%m-%dT%H:%M:%fZ', stamped_at, '{by}')"
    ));
    let acquired = "document ->> '$.acquired.wall_ms'";
    store.edit(&format!(
        "document = CASE WHEN {acquired} IS NULL THEN document ELSE
            json_set(document, '$.acquired.wall_ms', {acquired} + 86400000 * {days}) END"
    ));
}

#[test]
fn a_step_of_the_wall_clock_frees_nothing() {
    for days in ["-1", "+1"] {
        let store = Store::new();
        let first = store.free_run("node-a").with(&["--heartbeat=1m"]).start();
        store.until_begun("node-a");
        shift(&store, days);
        let refused = store.free_run("node-b").end().with_code(75);
        refused.says(&["\"job\" is held by node-a"]);
        store.go(0);
        first.end().with_code(0);

        let line = store.run("node-a").with(&["--keep=1h"]).job(&["true"]);
        line.end().with_code(0);
        shift(&store, days);
        let refused = store.free_run("node-b").end().with_code(75);
        refused.says(&["belongs to node-a"]);
    }
}

#[test]
fn a_step_of_the_wall_clock_freezes_nothing() {
    for days in ["-1", "+1"] {
        let store = Store::new();
        let line = store.run("node-a").with(&["--keep=1s"]).job(&["true"]);
        line.end().with_code(0);
        shift(&store, days);
        until("node-b has it", || {
            let ended = store.free_run("node-b").job(&["true"]).end();
            match ended.code {
                Some(75) => Err(ended.stderr),
                _ => Ok(ended.with_code(0)),
            }
        });
    }
}
