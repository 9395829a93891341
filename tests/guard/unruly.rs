//! Jobs that do not want to end: none outlives its lease.

use std::ffi::OsString;
use std::time::Duration;

use nix::libc;
use tokenrun::job::{FromGuard, Leftovers, Received, ToGuard, TreeEnd};
use tokenrun::moment::Moment;
use tokenrun::sys::wait::Status;
use tokenrun::sys::{process, procfs};

use crate::harness::{Guarded, Test, shell, until};
use crate::killed::left_below;
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
        "a_tree_before_its_deadline_is_not_killed",
        a_tree_before_its_deadline_is_not_killed,
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
const MARGIN: Duration = Duration::from_secs(1);

/// The time that the processes below one have to end.
struct Margin {
    root: i32,
    ends: Moment,
    is_over: bool,
}

impl Margin {
    fn after(deadline: Moment, root: i32) -> Self {
        Self {
            root,
            ends: deadline.plus(MARGIN),
            is_over: false,
        }
    }

    /// Once it is over, those that are left must be killed: on a busy machine such a one may have to wait for a processor
    /// to end on.
    fn look(&mut self, now: Moment) {
        if !self.is_over && now >= self.ends {
            self.is_over = true;
            let (left, living) = left_below(self.root);
            println!("  {left} killed processes have not ended after {MARGIN:?}");
            assert_eq!(living, []);
        }
    }
}

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

/// Runs it until its deadline; nothing of it may execute after the margin.
fn assert_ended_in_time(words: &[&str]) {
    let mut guarded = started(words, 3_600_000);
    let deadline = guarded.deadline(20, 120);
    guarded.send(&ToGuard::Deadline { deadline });
    let margin = Margin::after(deadline.kill_at, guarded.handle.pid());
    let gone = until_gone(&mut guarded, margin);
    let late = gone.since(deadline.kill_at);
    println!("  {words:?}: gone {late:?} after the deadline");
    assert!(gone >= deadline.kill_at);
    guarded.expect_guard_ended();
}

fn until_gone(guarded: &mut Guarded, mut margin: Margin) -> Moment {
    loop {
        if !margin.is_over {
            guarded.wait_until(margin.ends);
            margin.look(guarded.clock.now());
        }
        match guarded.next() {
            Received::Message(FromGuard::Gone) => return guarded.clock.now(),
            Received::Message(
                FromGuard::Ack
                | FromGuard::Expired
                | FromGuard::Exited { .. }
                | FromGuard::Leftovers { .. },
            ) => {}
            Received::Message(FromGuard::Survivors { .. }) if margin.is_over => {}
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

/// The look after the margin finds what lives.
fn a_tree_before_its_deadline_is_not_killed() {
    let mut guarded = started(&["tree", "50"], 3_600_000);
    let guard = guarded.handle.pid();
    let (left, living) = left_below(guard);
    assert!(living.len() >= 50, "{living:?}");
    assert_eq!(left, living.len());
    let deadline = guarded.deadline(0, 0);
    guarded.send(&ToGuard::Deadline { deadline });
    until_gone(&mut guarded, Margin::after(deadline.kill_at, guard));
    assert_eq!(left_below(guard), (0, Vec::new()));
    guarded.expect_guard_ended();
}

fn a_guard_that_is_blinded_leaves_it_to_its_supervisor() {
    let mut guarded = started(&["blind"], 100);
    let signal = libc::SIGTERM;
    guarded.send(&ToGuard::Pass { signal });
    while guarded.next() != Received::Closed {}
    // A kill would be its end where it has closed its socket and not left yet.
    let status = until("the guard ends", || guarded.handle.try_wait().unwrap());
    assert_eq!(status, Status::Exited(71));
    until_gone_without_guard(&mut guarded);
}

fn until_gone_without_guard(guarded: &mut Guarded) {
    let mut margin = Margin::after(guarded.clock.now(), process::pid());
    until("the tree ends", || {
        margin.look(guarded.clock.now());
        match guarded.handle.end_tree_without_guard().unwrap() {
            TreeEnd::Gone => Some(()),
            TreeEnd::Ending { survivors, .. } => {
                assert!(survivors.is_none() || margin.is_over, "{survivors:?}");
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
}

fn a_chain_of_forks_is_ended_without_a_guard() {
    assert_ended_without_guard(&["chain", "2", "now"]);
}

fn a_storm_of_forks_is_ended_without_a_guard() {
    assert_ended_without_guard(&["storm", "100", "now"]);
}
