//! What the guard costs, and how soon after a deadline the last of a job is dead.
//!
//! `cargo bench --bench guard` prints both, `-- added` or `-- late` one. The second is measured while twice as many
//! processes as there are processors spin; run it as root and as an ordinary user,
//! because a guard that may asks to be run first.

#![allow(clippy::expect_used, clippy::panic)]

use std::ffi::OsString;
use std::io::{PipeReader, Read, pipe};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokenrun::job::{
    Deadline, FromGuard, GuardHandle, GuardSettings, Leftovers, Received, ToGuard,
};
use tokenrun::sys::clock::LocalClock;
use tokenrun::sys::exec::Program;
use tokenrun::sys::fds::keep_on_exec;
use tokenrun::sys::process::{Forked, die_with_parent, exit_now, fork, signal_child};
use tokenrun::sys::signals::Inherited;
use tokenrun::sys::wait::{Status, wait_for};

#[path = "../tests/support/programs.rs"]
mod programs;

/// Interleaved pairs; the first tenth is not counted.
const PAIRS: usize = 1_000;

/// Deadlines that pass.
const TRIALS: usize = 200;

/// Processes of each job that a deadline ends.
const TREE: usize = 50;

/// The least margin between a deadline and another's takeover.
const MARGIN: Duration = Duration::from_secs(1);

fn main() {
    let inherited = Inherited::take().expect("signals can be taken");
    let words = std::env::args().skip(1);
    let names: Vec<String> = words.filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |name| names.is_empty() || names.iter().any(|word| word == name);
    if is_wanted("added") {
        added(inherited);
    }
    if is_wanted("late") {
        late(inherited);
    }
}

/// A run of `true` with a guard and without.
fn added(inherited: Inherited) {
    let argv = [OsString::from("true")];
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS + PAIRS / 10 {
        let times = [
            timed(|| guarded(&argv, inherited)),
            timed(|| plain(&argv, inherited)),
        ];
        if pair >= PAIRS / 10 {
            with.push(times[0]);
            without.push(times[1]);
        }
    }
    let (with, without) = (median(with), median(without));
    println!("a run of `true`, medians of {PAIRS} interleaved pairs\n");
    println!("| with a guard | without | added | bound |\n|---|---|---|---|");
    println!(
        "| {:.2} ms | {:.2} ms | {:.2} ms | 0.3 ms |\n",
        ms(with),
        ms(without),
        ms(with) - ms(without)
    );
}

fn plain(argv: &[OsString], inherited: Inherited) {
    let program = Program::new(argv).expect("a program");
    let status = match fork().expect("a process") {
        Forked::Parent { child } => wait_for(child).expect("a child"),
        Forked::Child => {
            inherited.restore();
            let _ = program.exec();
            exit_now(127)
        }
    };
    assert_eq!(status, Status::Exited(0));
}

fn guarded(argv: &[OsString], inherited: Inherited) {
    let mut handle = fork_guard(argv.to_vec(), inherited, LocalClock::start());
    start(&mut handle, None);
    until_gone(&mut handle);
}

fn fork_guard(argv: Vec<OsString>, inherited: Inherited, clock: LocalClock) -> GuardHandle {
    let settings = GuardSettings {
        argv,
        output: None,
        leftovers: Leftovers::Kill,
        kill_grace: Duration::from_secs(10),
        inherited,
        clock,
    };
    GuardHandle::fork(settings).expect("a guard")
}

fn start(handle: &mut GuardHandle, deadline: Option<Deadline>) {
    let env = Vec::new();
    let sent = handle.send(&ToGuard::Start { deadline, env });
    sent.expect("the guard hears");
}

/// Waits until the guard has said its last word, and has ended.
fn until_gone(handle: &mut GuardHandle) {
    let mut is_gone = false;
    loop {
        match handle.recv().expect("the guard is heard") {
            Some(Received::Closed) => break,
            Some(Received::Message(message)) => is_gone |= message == FromGuard::Gone,
            None => wait_readable(handle.fd()),
        }
    }
    assert!(is_gone, "the guard ended before its job");
    let status = wait_for(handle.pid()).expect("a guard");
    assert_eq!(status, Status::Exited(0));
}

fn wait_readable(fd: BorrowedFd<'_>) {
    let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
    let _ = poll(&mut fds, PollTimeout::NONE);
}

/// From the deadline's KILL to the death of the last of a tree that ignores TERM, on a
/// machine that is busy.
fn late(inherited: Inherited) {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let spinners: Vec<i32> = (0..2 * processors).map(|_| spin()).collect();
    let mut times: Vec<Duration> = (0..TRIALS).map(|_| one_deadline(inherited)).collect();
    for pid in spinners {
        signal_child(pid, nix::libc::SIGKILL).expect("a spinner");
        wait_for(pid).expect("a spinner");
    }
    times.sort();
    let worst = times.last().copied().unwrap_or_default();
    println!(
        "from the deadline to the death of the last of {TREE} processes, {TRIALS} times, while {} spin\n",
        2 * processors
    );
    println!("| median | 99 of 100 | worst | the least margin |\n|---|---|---|---|");
    println!(
        "| {:.1} ms | {:.1} ms | {:.1} ms | {:.0} ms |",
        ms(times[TRIALS / 2]),
        ms(times[TRIALS * 99 / 100]),
        ms(worst),
        ms(MARGIN)
    );
    assert!(worst < MARGIN / 2, "the margin is too small");
}

fn spin() -> i32 {
    match fork().expect("a process") {
        Forked::Parent { child } => child,
        Forked::Child => {
            let _ = die_with_parent();
            loop {
                std::hint::spin_loop();
            }
        }
    }
}

fn one_deadline(inherited: Inherited) -> Duration {
    let (mut read, write) = pipe().expect("a pipe");
    keep_on_exec(write.as_fd()).expect("a descriptor");
    let program = programs::unruly().display();
    let script = format!("exec {program} tree {TREE} >&{}", write.as_raw_fd());
    let clock = LocalClock::start();
    let argv = ["sh", "-c", &script].map(OsString::from).to_vec();
    let mut handle = fork_guard(argv, inherited, clock);
    drop(write);
    let at = |ms| clock.now().plus(Duration::from_millis(ms));
    start(
        &mut handle,
        Some(Deadline {
            term_at: at(3_600_000),
            kill_at: at(3_600_000),
        }),
    );
    read.read_exact(&mut [0]).expect("the whole tree is there");
    let deadline = Deadline {
        term_at: at(20),
        kill_at: at(50),
    };
    let news = ToGuard::Deadline { deadline };
    handle.send(&news).expect("the guard hears");
    let dead = when_closed(&mut read, clock);
    until_gone(&mut handle);
    assert!(dead >= deadline.kill_at, "it did not ignore TERM");
    dead.since(deadline.kill_at)
}

/// When the last process that has the other end has ended.
fn when_closed(read: &mut PipeReader, clock: LocalClock) -> tokenrun::moment::Moment {
    let rest = read.read(&mut [0]).expect("a pipe");
    assert_eq!(rest, 0);
    clock.now()
}

fn timed(run: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    run();
    begun.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
