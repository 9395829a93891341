//! Processes that a job leaves behind.

use std::path::PathBuf;
use std::sync::OnceLock;

use nix::sys::signal::Signal;

use crate::clocks::NO_PROC;
use crate::programs;
use crate::support::{Line, Store, alive, signal, until_dead};

/// Leaves a process behind that left the session and is an orphan. It is `sleep` by then, where /proc shows it.
const LEAVING: &str = r#"
(setsid sh -c 'echo "begin left $$" >> log; exec sleep 300' > /dev/null 2>&1 &)
until grep -q 'begin left' log 2> /dev/null; do sleep 0.01; done
left=$(sed -n 's/begin left //p' log)
while grep -qx sh "/proc/$left/comm" 2> /dev/null; do sleep 0.01; done
exit 3
"#;

#[test]
fn leftovers_are_ended_with_a_message() {
    let store = Store::new();
    let line = store.free_run("node-a").script(LEAVING);
    let ended = line.end().with_code(3);
    let [left] = ended.other_messages()[..] else {
        panic!("{ended:?}");
    };
    assert!(left.contains("sh left 1 process behind (sleep)"), "{left}");
    assert!(left.contains("--leftovers leave"), "{left}");
    assert!(!alive(store.until_begun("left")));
    assert_eq!(store.history()[0]["outcome"], "failed");
}

#[test]
fn leftovers_that_proc_does_not_show_are_waited_for_and_not_said_to_be_ended() {
    let store = Store::new();
    let run = store
        .free_run("node-a")
        .script(LEAVING)
        .with(&["--kill-grace=200ms"])
        .under(&NO_PROC)
        .start();
    let said = run.until_says("left processes behind");
    assert!(said.contains("can't be ended"), "{said}");
    // When the grace is over, and then the time that a killed process may take to end.
    run.until_says("/proc does not show them");
    let left = store.until_begun("left");
    assert!(alive(left));
    assert_eq!(store.status()["state"], "running");
    signal(left, Signal::SIGKILL);
    run.end().with_code(3);
    assert_eq!(store.status()["state"], "free");
}

/// A sandbox may refuse waitid(2). Deadlines hold there too.
#[test]
fn processes_end_although_the_kernel_does_not_tell_which_have_ended() {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let blind = BUILT.get_or_init(|| programs::build("no_waitid"));
    let blind = [blind.to_str().unwrap()];
    let store = Store::new();
    let run = |line: Line| line.under(&blind).end();
    run(store.free_run("node-a").script(LEAVING)).with_code(3);
    assert!(!alive(store.until_begun("left")));
    let stubborn = "trap '' TERM; echo begin stubborn $$ >> log; while :; do sleep 1; done";
    let line = store.free_run("node-a").script(stubborn);
    run(line.with(&["--timeout=200ms", "--kill-grace=200ms"])).with_code(124);
    assert!(!alive(store.until_begun("stubborn")));
}

#[test]
fn leftovers_are_left_alone_on_request() {
    let store = Store::new();
    let line = store.free_run("node-a").script(LEAVING);
    let ended = line.with(&["--leftovers=leave"]).end().with_code(3);
    ended.says_failed();
    let left = store.until_begun("left");
    assert!(alive(left));
    signal(left, Signal::SIGKILL);
    until_dead(left);
}

#[test]
fn a_daemon_does_not_outlive_its_runs_lease() {
    let store = Store::new();
    let script = format!("{LEAVING} ").replace("exit 3", "read -r line < go");
    let line = store.free_run("node-a").hasty().script(&script);
    let run = line.with(&["--leftovers=leave"]).start();
    let left = store.until_begun("left");
    run.signal(Signal::SIGKILL);
    run.end();
    until_dead(left);
}
