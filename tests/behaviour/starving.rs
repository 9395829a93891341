//! The guard does its duty although its job takes the only processor that it has.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::fair_share::FairShare;
use crate::programs::unruly;
use crate::support::{Line, Run, Store, boot_ms, is_root, until};

/// A user of these jobs alone: what it may have at most is counted for each user.
pub(crate) const USER: &str = "54321";

/// What prlimit(1) grants a job that forks without end: more than one processor can fork before the guard reaps them, and
/// fewer than would leave the machine without a number for a process. Root's jobs have no such limit.
pub(crate) const MOST_PROCESSES: &str = "--nproc=3000:3000";

/// What a busy machine may add to the time that an end takes, in ms.
const PATIENCE: i64 = 2_000;

/// These tests have the processor one after the other: each of them takes all of it.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A processor that this process may use.
fn one_processor() -> String {
    let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let mut all = (0..CpuSet::count()).rev();
    let last = all.find(|cpu| allowed.is_set(*cpu).unwrap());
    last.unwrap().to_string()
}

/// A run on one processor in a session of its own, as cron starts it, with a job that lives
/// as long as the lock is held.
fn on_one_processor(store: &Store, words: &str) -> Line {
    let script = format!("exec 9>>lock; flock 9; echo \"begin node-a $$\" >> log; exec {words}",);
    let line = store.free_run("node-a").script(&script).with(&[
        "--heartbeat=2s",
        "--takeover-after=10s",
        "--kill-grace=300ms",
    ]);
    line.under(&["setsid", "taskset", "-c", &one_processor()])
}

/// An ordinary user's job that has so many loops make orphans.
fn littering(store: &Store, loops: u32) -> Line {
    fs::set_permissions(store.path(), Permissions::from_mode(0o1777)).unwrap();
    let copy = store.file("unruly");
    let done = Command::new("cp").arg(unruly()).arg(&copy).status();
    assert!(done.unwrap().success());
    let job = format!("prlimit {MOST_PROCESSES} {} litter {loops}", copy.display());
    let line = on_one_processor(store, &job);
    if is_root() {
        line.with_user(USER)
    } else {
        line
    }
}

/// The run with a lease that does not end meanwhile: nothing but the deadline of the test ends the job, however seldom the
/// supervisor has a turn beside it.
fn outliving(line: Line) -> Line {
    line.without(&["--heartbeat=2s", "--takeover-after=10s"])
        .with(&["--heartbeat=5s", "--takeover-after=5m"])
}

/// Waits until the token was renewed for so long.
fn until_renewed_for(store: &Store, run: &Run, ms: i64) {
    let last = || -> i64 { store.cell("stamped_tick") };
    let first = last();
    until("the heart beats", || {
        (last() >= first + ms).then_some(()).ok_or(run.stderr())
    });
}

/// What another process gets of the processor of these tests: the guard of a littering job is an ordinary user's, also
/// where the test is root. On an idle machine its session and the job's divide it.
fn fair_share() -> FairShare {
    FairShare::measure(&["taskset", "-c", &one_processor()], 2)
}

/// Waits until the job is gone, and gives how long that took, in ms.
fn until_gone(store: &Store, since: i64) -> i64 {
    store.until_job_gone();
    boot_ms() - since
}

#[test]
fn a_guard_that_reaps_without_end_keeps_its_deadlines() {
    let _turn = alone();
    let store = Store::new();
    let run = outliving(littering(&store, 100)).start();
    store.until_begun("node-a");
    until_renewed_for(&store, &run, 10_000);
    let share = fair_share();
    run.signal(Signal::SIGTERM);
    let asked = boot_ms();
    let took = until_gone(&store, asked);
    let most = 300 + share.allows(PATIENCE);
    assert!(took < most, "{took} ms after TERM, at most {most}");
    run.end().with_code(137);
}

#[test]
fn a_guard_that_reaps_without_end_ends_its_job_with_the_supervisor() {
    let _turn = alone();
    for how in [Signal::SIGKILL, Signal::SIGSTOP] {
        let store = Store::new();
        let run = littering(&store, 50).start();
        store.until_begun("node-a");
        until_renewed_for(&store, &run, 2_000);
        let share = fair_share();
        run.signal(how);
        let took = until_gone(&store, boot_ms());
        // A stopped supervisor differs from a live one by its lease alone.
        let lease = if how == Signal::SIGSTOP { 8_700 } else { 0 };
        let most = lease + 300 + share.allows(PATIENCE);
        assert!(took < most, "{how}: {took} ms, at most {most}");
        if how == Signal::SIGSTOP {
            run.signal(Signal::SIGCONT);
            run.end().with_code(76);
        }
    }
}

#[test]
fn a_guard_that_reaps_without_end_keeps_the_time_limit() {
    let _turn = alone();
    let store = Store::new();
    let run = outliving(littering(&store, 50))
        .with(&["--timeout=3s"])
        .start();
    store.until_begun("node-a");
    let share = fair_share();
    let took = until_gone(&store, boot_ms());
    let most = 3_000 + 300 + share.allows(PATIENCE);
    assert!(took < most, "{took} ms, at most {most}");
    run.end().with_code(124);
}

#[test]
fn needs_root_a_job_in_real_time_does_not_starve_the_guard() {
    let _turn = alone();
    assert!(
        is_root(),
        "this test needs root: its job asks for real time (tests/run-all leaves it out for others)"
    );
    let store = Store::new();
    let spin = "chrt -f 50 sh -c 'while :; do :; done'";
    let run = on_one_processor(&store, spin).start();
    store.until_begun("node-a");
    until_renewed_for(&store, &run, 2_000);
    run.signal(Signal::SIGKILL);
    let took = until_gone(&store, boot_ms());
    assert!(took < 300 + PATIENCE, "{took} ms after the supervisor");
}
