//! Supervisor and guard are killed at once, and processes that left the session live on.

use std::path::Path;

use nix::sys::signal::Signal;

use super::{contender, kill_both, once_silent};
use crate::support::{Line, Store, alive, signal, until_dead};

/// Leaves a process behind that left the session, is an orphan, and does `$DO` first.
const LEAVING: &str = r#"
(setsid bash -c "$DO"'; echo "begin left $$" >> log; exec sleep 300' > /dev/null 2>&1 &)
until grep -q 'begin left' log 2> /dev/null; do sleep 0.01; done
until read -r line < go; do :; done
"#;

/// What a process does that closes every descriptor but the standard ones, as sudo(8)
/// and daemons do.
const CLOSE_ALL: &str = r#"
for fd in /proc/$$/fd/*; do
    fd=${fd##*/}
    [ "$fd" -le 2 ] || eval "exec $fd>&-"
done"#;

fn leaving(store: &Store, first: &str) -> Line {
    let line = store.free_run("node-a").hasty().script(LEAVING);
    line.env("DO", first)
}

#[test]
fn no_run_starts_on_this_host_while_one_survives() {
    let store = Store::new();
    let run = leaving(&store, ":").start();
    let left = store.until_begun("left");
    kill_both(run);
    contender(&store)
        .end()
        .with_code(75)
        .says(&["is held by node-a"]);

    let report = store.file("report.json");
    let line = contender(&store).with(&["--report", report.to_str().unwrap()]);
    let refused = once_silent(&line).with_code(75);
    refused.says(&[
        "\"job\" in sqlite://",
        "its run is still alive here: ",
        &format!("sleep (pid {left})"),
        "end them first",
        "true was not started",
    ]);
    assert!(refusal(&report).contains("alive_here"));
    assert!(alive(left));
    // However long it lives.
    contender(&store).end().with_code(75);
    assert_eq!(store.history().len(), 1);
    assert_eq!(store.history()[0]["outcome"], "unknown");

    signal(left, Signal::SIGKILL);
    until_dead(left);
    let ended = contender(&store).end().with_code(0);
    assert!(ended.stderr.contains("whose holder is dead"), "{ended:?}");
    assert_eq!(store.lock_files(), [""; 0]);
}

fn refusal(report: &Path) -> String {
    std::fs::read_to_string(report).unwrap()
}

#[test]
fn on_another_host_it_is_unseen() {
    let store = Store::new();
    let run = leaving(&store, ":").start();
    let left = store.until_begun("left");
    kill_both(run);
    let ended = once_silent(&contender(&store).elsewhere(&store)).with_code(0);
    assert!(ended.stderr.contains("whose holder is silent"), "{ended:?}");
    assert!(alive(left));
}

#[test]
fn one_that_closed_the_descriptor_is_unseen() {
    let store = Store::new();
    let run = leaving(&store, CLOSE_ALL).start();
    let left = store.until_begun("left");
    kill_both(run);
    // The job itself dies of its guard's death, a moment later.
    let ended = once_silent(&contender(&store)).with_code(0);
    assert!(ended.stderr.contains("whose holder is dead"), "{ended:?}");
    assert!(alive(left));
}

#[test]
fn with_close_lock_nothing_is_proven() {
    let store = Store::new();
    let run = leaving(&store, ":").with(&["--close-lock"]).start();
    let left = store.until_begun("left");
    let file: String = store.field("run.lock_file");
    assert!(file.ends_with("-closed"), "{file}");
    kill_both(run);
    // Never proven dead: otherwise the token would be open at once.
    let refused = contender(&store).end().with_code(75);
    refused.says(&["is held by node-a"]);
    let ended = once_silent(&contender(&store)).with_code(0);
    assert!(ended.stderr.contains("whose holder is silent"), "{ended:?}");
    assert!(alive(left));
}

#[test]
fn with_close_lock_a_live_guard_is_still_seen() {
    let store = Store::new();
    let run = leaving(&store, ":").with(&["--close-lock"]).start();
    store.until_begun("left");
    let guard = run.guard();
    signal(guard, Signal::SIGSTOP);
    run.signal(Signal::SIGKILL);
    run.end();
    let refused = once_silent(&contender(&store)).with_code(75);
    refused.says(&[&format!("alive here: lease-guard (pid {guard});")]);
    signal(guard, Signal::SIGKILL);
}

#[test]
fn a_survivor_that_was_left_alone_delays_no_other() {
    let store = Store::new();
    let line = leaving(&store, ":").with(&["--leftovers=leave"]);
    let run = line.start();
    let left = store.until_begun("left");
    store.go(0);
    run.end().with_code(0);
    assert_eq!(store.lock_files(), [""; 0]);
    contender(&store).end().with_code(0);
    assert!(alive(left));
}

#[test]
fn a_survivor_that_was_left_alone_delays_no_other_although_its_runs_end_was_not_recorded() {
    let store = Store::new();
    let line = leaving(&store, ":").with(&["--leftovers=leave"]);
    let run = line.start();
    let left = store.until_begun("left");
    let blocker = store.sql();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    store.go(0);
    run.end().with_code(0);
    drop(blocker);
    assert_eq!(store.lock_files(), [""; 0]);
    once_silent(&contender(&store)).with_code(0);
    assert!(alive(left));
}
