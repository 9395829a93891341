//! The guard is killed, stopped, or looked for by a nested run.

use nix::libc;
use tokenrun::job::{Leftovers, Received, ToGuard, TreeEnd};
use tokenrun::moment::Moment;
use tokenrun::sys::procfs;
use tokenrun::sys::wait::Status;

use crate::harness::{Guarded, Test, alive, own_signals, shell, until, until_dead, until_stopped};

pub(crate) const TESTS: &[Test] = &[
    (
        "the_tree_of_a_killed_guard_is_killed",
        the_tree_of_a_killed_guard_is_killed,
    ),
    (
        "processes_are_not_stopped_before_they_are_killed",
        processes_are_not_stopped_before_they_are_killed,
    ),
    (
        "a_guard_that_does_not_answer_is_killed_with_its_tree",
        a_guard_that_does_not_answer_is_killed_with_its_tree,
    ),
    ("a_stopped_guard_goes_on", a_stopped_guard_goes_on),
    (
        "children_of_others_are_left_alone",
        children_of_others_are_left_alone,
    ),
    (
        "many_orphans_are_reaped_in_batches",
        many_orphans_are_reaped_in_batches,
    ),
    ("a_nested_run_finds_its_guard", a_nested_run_finds_its_guard),
];

const TREE: &str = "setsid sh -c 'trap \"\" TERM; echo $$ > $D/far; while :; do sleep 1; done' & \
                    (setsid sh -c 'echo $$ > $D/orphan; while :; do sleep 1; done' &) ; \
                    echo $$ > $D/main; while :; do sleep 1; done";

fn end(guarded: &mut Guarded) {
    until("the tree ends", || {
        match guarded.handle.end_tree_without_guard().unwrap() {
            TreeEnd::Gone => Some(()),
            TreeEnd::Ending { .. } => None,
        }
    });
}

fn running_tree() -> (Guarded, Vec<i32>) {
    let guarded = Guarded::running(TREE);
    let pids = ["main", "far", "orphan"].map(|file| guarded.pid(file));
    (guarded, pids.to_vec())
}

fn assert_all_dead(pids: &[i32]) {
    for pid in pids {
        assert_eq!(alive(*pid), None);
    }
}

fn the_tree_of_a_killed_guard_is_killed() {
    let (mut guarded, pids) = running_tree();
    guarded.handle.signal_guard(libc::SIGKILL).unwrap();
    assert_eq!(guarded.next(), Received::Closed);
    end(&mut guarded);
    assert_all_dead(&pids);
    let status = guarded.handle.try_wait().unwrap();
    assert_eq!(status, Some(Status::Signalled(libc::SIGKILL)));
}

/// The killer may be killed half-way: a stopped process would then stay stopped for ever.
fn processes_are_not_stopped_before_they_are_killed() {
    let (mut guarded, pids) = running_tree();
    guarded.handle.signal_guard(libc::SIGKILL).unwrap();
    assert_eq!(guarded.next(), Received::Closed);
    // It has a parent-death signal; the others are this process's children now.
    until_dead(pids[0]);
    let signals = own_signals();
    until("what has ended is heard of", || {
        guarded.handle.reap_orphans().unwrap();
        signals.read().is_none().then_some(())
    });
    let _ = guarded.handle.end_tree_without_guard().unwrap();
    // One SIGCHLD is pending at a time: what the first child did first.
    let heard = until("a child is heard of", || signals.read());
    assert_eq!(
        (heard.signal, heard.code),
        (libc::SIGCHLD, libc::CLD_KILLED)
    );
    end(&mut guarded);
    assert_all_dead(&pids);
}

fn a_guard_that_does_not_answer_is_killed_with_its_tree() {
    let (mut guarded, pids) = running_tree();
    guarded.handle.signal_guard(libc::SIGSTOP).unwrap();
    until_stopped(guarded.handle.pid());
    let deadline = guarded.deadline(3_600_000, 3_600_000);
    let full = std::iter::repeat_with(|| guarded.handle.send(&ToGuard::Deadline { deadline }));
    let err = full.take(100_000).find_map(Result::err).unwrap();
    assert_eq!(err.kind(), std::io::ErrorKind::WouldBlock);
    end(&mut guarded);
    assert_all_dead(&pids);
}

fn a_stopped_guard_goes_on() {
    let (mut guarded, pids) = running_tree();
    guarded.handle.signal_guard(libc::SIGSTOP).unwrap();
    until_stopped(guarded.handle.pid());
    guarded.send(&ToGuard::Kill);
    guarded.handle.signal_guard(libc::SIGCONT).unwrap();
    guarded.expect_exited(Status::Signalled(libc::SIGKILL));
    while let Received::Message(_) = guarded.next() {}
    until("the guard ends", || guarded.handle.try_wait().unwrap());
    assert_all_dead(&pids);
}

fn children_of_others_are_left_alone() {
    // As if the shell that executed tokenrun had started something before.
    let mut earlier = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .unwrap();
    let (mut guarded, pids) = running_tree();
    guarded.handle.signal_guard(libc::SIGKILL).unwrap();
    end(&mut guarded);
    assert_all_dead(&pids);
    assert_eq!(earlier.try_wait().unwrap(), None);
    earlier.kill().unwrap();
    earlier.wait().unwrap();
}

fn many_orphans_are_reaped_in_batches() {
    const BATCH: usize = 32;
    let mut guarded = Guarded::running("while :; do sleep 0.01; done");
    let orphan = || std::process::Command::new("true").spawn().unwrap();
    let pids: Vec<i32> = (0..BATCH + 1)
        .map(|_| i32::try_from(orphan().id()).unwrap())
        .collect();
    let unreaped = || pids.iter().filter(|pid| procfs::process(**pid).is_some());
    until("they have ended", || {
        unreaped().all(|pid| alive(*pid).is_none()).then_some(())
    });
    assert_eq!(guarded.handle.reap_at(), None);
    guarded.handle.note_child_ended();
    assert!(guarded.handle.reap_at().is_some());
    assert!(guarded.handle.reap_orphans().unwrap());
    assert_eq!(unreaped().count(), 1);
    assert!(guarded.handle.reap_at().unwrap() > Moment::default());
    // The guard is left.
    assert!(guarded.handle.reap_orphans().unwrap());
    assert_eq!(unreaped().count(), 0);
    assert_eq!(guarded.handle.reap_at(), None);
    guarded.send(&ToGuard::Kill);
    guarded.expect_exited(Status::Signalled(libc::SIGKILL));
    guarded.expect_gone();
}

fn a_nested_run_finds_its_guard() {
    // This very program, which then says whether it is inside.
    let own = std::env::current_exe().unwrap();
    let pid = std::process::id();
    let script = format!("{} --is-inside {pid}; exit $?", own.display());
    let mut guarded = Guarded::fork(shell(&script), Leftovers::Kill, 10_000);
    guarded.start(None);
    guarded.expect_started();
    guarded.expect_exited(Status::Exited(0));
    guarded.expect_gone();
    let outside = std::process::Command::new(own)
        .args(["--is-inside", &pid.to_string()])
        .status()
        .unwrap();
    assert_eq!(outside.code(), Some(1));
}
