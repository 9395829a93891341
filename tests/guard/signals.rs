//! Signals that are passed on, or have come by themselves.

use nix::libc;
use tokenrun::job::{FromGuard, Received, ToGuard};
use tokenrun::sys::wait::Status;

use crate::harness::{Guarded, Test, own_signals, until};

pub(crate) const TESTS: &[Test] = &[
    (
        "a_signal_is_passed_to_the_job_alone",
        a_signal_is_passed_to_the_job_alone,
    ),
    (
        "a_signal_to_the_group_is_not_passed_twice",
        a_signal_to_the_group_is_not_passed_twice,
    ),
    (
        "a_job_in_a_group_of_its_own_gets_every_signal",
        a_job_in_a_group_of_its_own_gets_every_signal,
    ),
    (
        "an_end_without_term_leaves_the_job_its_time",
        an_end_without_term_leaves_the_job_its_time,
    ),
    (
        "each_order_to_end_is_answered",
        each_order_to_end_is_answered,
    ),
    ("a_later_end_only_shortens", a_later_end_only_shortens),
];

/// Counts USR1 in `count`, a dot each, and leaves on TERM.
const COUNTING: &str = "trap 'printf . >> $D/count' USR1; trap 'echo >> $D/count; exit 4' TERM; \
                        echo > $D/ready; while :; do sleep 0.01; done";

fn pass(guarded: &mut Guarded, signal: i32) {
    guarded.send(&ToGuard::Pass { signal });
}

fn dots(guarded: &Guarded) -> usize {
    std::fs::read_to_string(guarded.path("count")).map_or(0, |text| text.len())
}

fn a_signal_is_passed_to_the_job_alone() {
    let script = format!(
        "sh -c 'trap \"echo > $D/wrong\" USR1; echo > $D/child; \
         while :; do sleep 0.01; done' & {COUNTING}"
    );
    let mut guarded = Guarded::running(&script);
    guarded.line("ready");
    guarded.line("child");
    pass(&mut guarded, libc::SIGUSR1);
    until("the signal arrives", || (dots(&guarded) == 1).then_some(()));
    pass(&mut guarded, libc::SIGTERM);
    guarded.expect_exited(Status::Exited(4));
    guarded.expect_leftovers();
    guarded.expect_gone();
    assert_eq!(guarded.line("count"), ".\n");
    assert!(!guarded.path("wrong").exists());
}

fn is_nothing_pending(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
    u64::from_str_radix(pending.unwrap().trim(), 16) == Ok(0)
}

fn a_signal_to_the_group_is_not_passed_twice() {
    // A separate group, so that no other test gets the signal.
    let own = nix::unistd::Pid::from_raw(0);
    nix::unistd::setpgid(own, own).unwrap();
    let signals = own_signals();
    let mut guarded = Guarded::running(COUNTING);
    guarded.line("ready");
    for round in 1..=3 {
        nix::sys::signal::killpg(nix::unistd::getpgrp(), nix::sys::signal::SIGUSR1).unwrap();
        let received = until("our copy arrives", || {
            signals.read().filter(|it| it.signal == libc::SIGUSR1)
        });
        assert_eq!(received.from_pid, tokenrun::sys::process::pid());
        // Two of a kind that are pending are one: the guard must have read this one
        // before the next is sent.
        let guard = guarded.handle.pid();
        until("the guard reads its copy", || {
            is_nothing_pending(guard).then_some(())
        });
        pass(&mut guarded, received.signal);
        until("the signal arrives", || {
            (dots(&guarded) == round).then_some(())
        });
    }
    // One to us alone, after those: it is passed, and nothing before it was.
    pass(&mut guarded, libc::SIGUSR1);
    until("the signal arrives", || (dots(&guarded) == 4).then_some(()));
    pass(&mut guarded, libc::SIGTERM);
    guarded.expect_exited(Status::Exited(4));
    guarded.expect_gone();
    assert_eq!(guarded.line("count"), "....\n");
}

fn a_job_in_a_group_of_its_own_gets_every_signal() {
    let mut guarded =
        Guarded::running("until test -e $D/script; do :; done; exec setsid sh $D/script");
    // setsid(1) forks only if it leads a group: here it does not, so it is the job.
    std::fs::write(guarded.path("new"), COUNTING).unwrap();
    std::fs::rename(guarded.path("new"), guarded.path("script")).unwrap();
    guarded.line("ready");
    // The guard gets a copy that the job does not get.
    let guard = guarded.handle.pid();
    tokenrun::sys::process::signal_child(guard, libc::SIGUSR1).unwrap();
    pass(&mut guarded, libc::SIGUSR1);
    until("the signal arrives", || (dots(&guarded) == 1).then_some(()));
    pass(&mut guarded, libc::SIGTERM);
    guarded.expect_exited(Status::Exited(4));
    guarded.expect_gone();
}

fn an_end_without_term_leaves_the_job_its_time() {
    let script = "trap '' TERM; echo > $D/ready; until test -e $D/go; do sleep 0.01; done; exit 8";
    let mut guarded = Guarded::running(script);
    guarded.line("ready");
    let kill_at = guarded.after(3_600_000);
    guarded.send(&ToGuard::End {
        kill_at,
        term_tree: false,
    });
    pass(&mut guarded, libc::SIGTERM);
    std::fs::write(guarded.path("go"), "").unwrap();
    guarded.expect_exited(Status::Exited(8));
    guarded.expect_gone();
}

fn each_order_to_end_is_answered() {
    let mut guarded = Guarded::running("trap '' TERM; echo > $D/ready; while :; do sleep 1; done");
    guarded.line("ready");
    let end = ToGuard::End {
        kill_at: guarded.after(3_600_000),
        term_tree: true,
    };
    for order in [end, ToGuard::Kill] {
        guarded.send(&order);
        let answer = until("an answer", || guarded.handle.recv().unwrap());
        assert_eq!(answer, Received::Message(FromGuard::Ending));
    }
    guarded.expect_exited(Status::Signalled(libc::SIGKILL));
    guarded.expect_gone();
}

fn a_later_end_only_shortens() {
    let mut guarded = Guarded::running("trap '' TERM; echo > $D/ready; while :; do sleep 1; done");
    guarded.line("ready");
    let near = guarded.after(100);
    let far = guarded.after(3_600_000);
    for kill_at in [far, near, far] {
        guarded.send(&ToGuard::End {
            kill_at,
            term_tree: false,
        });
    }
    guarded.expect_exited(Status::Signalled(libc::SIGKILL));
    assert!(guarded.clock.now() >= near);
    guarded.expect_gone();
}
