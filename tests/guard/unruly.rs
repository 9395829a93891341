//! Jobs that do not want to end: none outlives its lease.

use std::ffi::OsString;

use nix::libc;
use tokenrun::job::{FromGuard, Leftovers, Received, ToGuard, TreeEnd};
use tokenrun::moment::Moment;
use tokenrun::sys::procfs;
use tokenrun::sys::wait::Status;

use crate::harness::{Guarded, Test, shell, until};
use crate::programs::unruly;

pub(crate) const TESTS: &[Test] = &[
    (
        "a_chain_of_forks_does_not_outlive_its_lease",
        a_chain_of_forks_does_not_outlive_its_lease,
    ),
    (
        "many_chains_of_forks_do_not_outlive_their_lease",
        many_chains_of_forks_do_not_outlive_their_lease,
    ),
    (
        "a_process_replaced_by_two_does_not_outlive_its_lease",
        a_process_replaced_by_two_does_not_outlive_its_lease,
    ),
    (
        "processes_that_wake_each_other_do_not_outlive_their_lease",
        processes_that_wake_each_other_do_not_outlive_their_lease,
    ),
    (
        "a_storm_of_forks_does_not_outlive_its_lease",
        a_storm_of_forks_does_not_outlive_its_lease,
    ),
    (
        "a_traced_process_does_not_outlive_its_lease",
        a_traced_process_does_not_outlive_its_lease,
    ),
    (
        "odd_descendants_do_not_outlive_their_lease",
        odd_descendants_do_not_outlive_their_lease,
    ),
    (
        "a_whole_tree_does_not_outlive_its_lease",
        a_whole_tree_does_not_outlive_its_lease,
    ),
    (
        "a_guard_that_is_blinded_leaves_it_to_its_supervisor",
        a_guard_that_is_blinded_leaves_it_to_its_supervisor,
    ),
    (
        "a_chain_of_forks_is_ended_without_a_guard",
        a_chain_of_forks_is_ended_without_a_guard,
    ),
    (
        "a_storm_of_forks_is_ended_without_a_guard",
        a_storm_of_forks_is_ended_without_a_guard,
    ),
];

fn job(words: &[&str]) -> Vec<OsString> {
    let program = unruly().as_os_str().to_owned();
    let words = words.iter().map(OsString::from);
    std::iter::once(program).chain(words).collect()
}

/// The least margin between a holder's own deadline and another's takeover.
const MARGIN_MS: u64 = 1_000;

/// Starts it, and waits until it is ready.
fn started(words: &[&str], kill_grace: u64) -> Guarded {
    let script = format!("exec {} {} > $D/ready", unruly().display(), words.join(" "));
    let mut guarded = Guarded::fork(shell(&script), Leftovers::Kill, kill_grace);
    guarded.start(Some(guarded.deadline(3_600_000, 3_600_000)));
    guarded.expect_started();
    until("it is ready", || {
        std::fs::read(guarded.path("ready"))
            .ok()
            .filter(|text| text == b"r")
    });
    guarded
}

/// Runs it until its deadline; it must be gone within the margin.
fn assert_ended_in_time(words: &[&str]) {
    let mut guarded = started(words, 3_600_000);
    let deadline = guarded.deadline(20, 120);
    guarded.send(&ToGuard::Deadline { deadline });
    let gone = until_gone(&mut guarded);
    let late = gone.since(deadline.kill_at);
    println!("  {words:?}: gone {late:?} after the deadline");
    assert!(gone >= deadline.kill_at);
    assert!(late.as_millis() < MARGIN_MS.into(), "{late:?}");
    guarded.expect_guard_ended();
}

fn until_gone(guarded: &mut Guarded) -> Moment {
    loop {
        match guarded.next() {
            Received::Message(FromGuard::Gone) => return guarded.clock.now(),
            Received::Message(
                FromGuard::Ack
                | FromGuard::Expired
                | FromGuard::Exited { .. }
                | FromGuard::Leftovers { .. },
            ) => {}
            other => panic!("unexpected: {other:?}"),
        }
    }
}

fn a_chain_of_forks_does_not_outlive_its_lease() {
    for _ in 0..5 {
        assert_ended_in_time(&["chain", "1"]);
    }
}

fn many_chains_of_forks_do_not_outlive_their_lease() {
    assert_ended_in_time(&["chain", "20"]);
}

fn a_process_replaced_by_two_does_not_outlive_its_lease() {
    assert_ended_in_time(&["hydra", "5"]);
}

fn processes_that_wake_each_other_do_not_outlive_their_lease() {
    assert_ended_in_time(&["waker", "4"]);
}

fn a_storm_of_forks_does_not_outlive_its_lease() {
    assert_ended_in_time(&["storm", "300"]);
}

fn a_traced_process_does_not_outlive_its_lease() {
    assert_ended_in_time(&["tracer"]);
}

fn odd_descendants_do_not_outlive_their_lease() {
    assert_ended_in_time(&["odd"]);
}

fn a_whole_tree_does_not_outlive_its_lease() {
    assert_ended_in_time(&["tree", "50"]);
}

fn a_guard_that_is_blinded_leaves_it_to_its_supervisor() {
    let mut guarded = started(&["blind"], 100);
    let signal = libc::SIGTERM;
    guarded.send(&ToGuard::Pass { signal });
    while guarded.next() != Received::Closed {}
    until_gone_without_guard(&mut guarded);
    let status = guarded.handle.try_wait().unwrap();
    assert_eq!(status, Some(Status::Exited(71)));
}

fn until_gone_without_guard(guarded: &mut Guarded) {
    until("the tree ends", || {
        match guarded.handle.end_tree_without_guard().unwrap() {
            TreeEnd::Gone => Some(()),
            TreeEnd::Ending { survivors, .. } => {
                assert_eq!(survivors, None);
                None
            }
        }
    });
}

fn assert_ended_without_guard(words: &[&str]) {
    let mut guarded = Guarded::fork(job(words), Leftovers::Kill, 3_600_000);
    guarded.start(None);
    let main = guarded.expect_started();
    until("it has forked", || {
        let children = procfs::child_pids(main);
        children.is_none_or(|all| !all.is_empty()).then_some(())
    });
    let begun = guarded.clock.now();
    guarded.handle.signal_guard(libc::SIGKILL).unwrap();
    until_gone_without_guard(&mut guarded);
    let took = guarded.clock.now().since(begun);
    println!("  {words:?}: gone {took:?} after the guard");
    assert!(took.as_millis() < MARGIN_MS.into(), "{took:?}");
}

fn a_chain_of_forks_is_ended_without_a_guard() {
    assert_ended_without_guard(&["chain", "2", "now"]);
}

fn a_storm_of_forks_is_ended_without_a_guard() {
    assert_ended_without_guard(&["storm", "100", "now"]);
}
