//! What becomes of processes that a job leaves behind.

use nix::libc;
use tokenrun::job::{Leftovers, ToGuard};
use tokenrun::sys::process::signal_child;
use tokenrun::sys::wait::Status;

use crate::harness::{Guarded, Test, alive, shell, until};

pub(crate) const TESTS: &[Test] = &[
    ("leftovers_are_asked_to_end", leftovers_are_asked_to_end),
    (
        "leftovers_that_do_not_listen_are_killed",
        leftovers_that_do_not_listen_are_killed,
    ),
    ("leftovers_that_may_stay_stay", leftovers_that_may_stay_stay),
    (
        "leftovers_that_may_stay_end_with_the_lease",
        leftovers_that_may_stay_end_with_the_lease,
    ),
    (
        "children_that_end_with_the_job_are_not_reported",
        children_that_end_with_the_job_are_not_reported,
    ),
];

/// Leaves a shell behind that has set its trap, and exits with 7.
fn leaving(trap: &str) -> String {
    format!(
        "setsid sh -c 'trap \"{trap}\" TERM; echo $$ > $D/left; while :; do sleep 0.01; done' & \
         until test -s $D/left; do :; done; exit 7"
    )
}

fn leftovers_are_asked_to_end() {
    let mut guarded = Guarded::running(&leaving("echo asked > $D/asked; exit"));
    guarded.expect_exited(Status::Exited(7));
    assert!(guarded.expect_leftovers().contains(&"sh".to_owned()));
    guarded.expect_gone();
    assert_eq!(guarded.line("asked"), "asked\n");
    assert!(alive(guarded.pid("left")).is_none());
}

fn leftovers_that_do_not_listen_are_killed() {
    let mut guarded = Guarded::fork(shell(&leaving("")), Leftovers::Kill, 50);
    guarded.start(None);
    guarded.expect_started();
    guarded.expect_exited(Status::Exited(7));
    assert!(!guarded.expect_leftovers().is_empty());
    guarded.expect_gone();
    assert!(alive(guarded.pid("left")).is_none());
}

fn leftovers_that_may_stay_stay() {
    let mut guarded = Guarded::fork(shell(&leaving("exit")), Leftovers::Leave, 10_000);
    guarded.start(Some(guarded.deadline(3_600_000, 3_600_000)));
    guarded.expect_started();
    guarded.expect_exited(Status::Exited(7));
    guarded.expect_gone();
    let left = guarded.pid("left");
    assert!(alive(left).is_some());
    // This process is a subreaper, so it is its child now.
    signal_child(left, libc::SIGTERM).unwrap();
    until("it ends", || {
        (!guarded.handle.reap_orphans().unwrap()).then_some(())
    });
}

fn leftovers_that_may_stay_end_with_the_lease() {
    let script = format!(
        "trap 'exit 9' TERM; ({}); while :; do sleep 0.01; done",
        leaving("")
    );
    let mut guarded = Guarded::fork(shell(&script), Leftovers::Leave, 3_600_000);
    guarded.start(None);
    guarded.expect_started();
    let left = guarded.pid("left");
    let kill_at = guarded.after(300);
    guarded.send(&ToGuard::End {
        kill_at,
        term_tree: true,
    });
    guarded.expect_exited(Status::Exited(9));
    guarded.expect_gone();
    assert!(guarded.clock.now() >= kill_at);
    assert!(alive(left).is_none());
}

fn children_that_end_with_the_job_are_not_reported() {
    let mut guarded = Guarded::running("true | true & wait; exit 0");
    guarded.expect_exited(Status::Exited(0));
    guarded.expect_gone();
}
