//! Runs tests in sequence in the only thread, in libtest's style, and gives them a
//! supervisor's side to play with.

use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokenrun::job::{
    Deadline, FromGuard, GuardHandle, GuardSettings, Leftovers, Received, Stage, Survivor, ToGuard,
    Unkillable,
};
use tokenrun::moment::Moment;
use tokenrun::sys::clock::LocalClock;
use tokenrun::sys::procfs::{self, Process};
use tokenrun::sys::signals::{Inherited, SignalFd};
use tokenrun::sys::wait::{Left, Status, Waited, reap, try_wait};

/// A test and the name that it is chosen by.
pub(crate) type Test = (&'static str, fn());

/// What no event may take longer than.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

static GIVEN: OnceLock<(Inherited, Vec<String>)> = OnceLock::new();

fn given() -> &'static (Inherited, Vec<String>) {
    GIVEN.get_or_init(|| {
        let lines = signal_lines(tokenrun::sys::process::pid());
        (Inherited::take().unwrap(), lines)
    })
}

/// The signals that this test was given.
pub(crate) fn inherited() -> Inherited {
    given().0
}

/// What [`signal_lines`] said of this test before anything was changed.
pub(crate) fn given_signal_lines() -> &'static [String] {
    &given().1
}

/// What /proc says of the signals that a process blocks and ignores.
pub(crate) fn signal_lines(pid: i32) -> Vec<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let is_wanted = |line: &&str| line.starts_with("SigBlk:") || line.starts_with("SigIgn:");
    status
        .lines()
        .filter(is_wanted)
        .map(str::to_owned)
        .collect()
}

/// Runs those tests whose name contains one of the arguments, or all; ends the
/// process with 101 if one fails.
pub(crate) fn run(groups: &[&[Test]]) {
    inherited();
    let clock = LocalClock::start();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let all = groups.iter().copied().flatten();
    if args.iter().any(|arg| arg == "--list") {
        all.for_each(|(name, _)| println!("{name}: test"));
        return;
    }
    let filters = filters(&args);
    let is_chosen =
        |name: &str| filters.is_empty() || filters.iter().any(|f| name.contains(f.as_str()));
    let (mut passed, mut failed, mut left_out) = (0, 0, 0);
    for (name, test) in all {
        if !is_chosen(name) {
            left_out += 1;
            continue;
        }
        let is_good = passes(name, *test);
        *if is_good { &mut passed } else { &mut failed } += 1;
        let word = if is_good { "ok" } else { "FAILED" };
        println!("test {name} ... {word}");
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {word}. {passed} passed; {failed} failed; 0 ignored; 0 measured; \
         {left_out} filtered out; finished in {:.2}s\n",
        clock.now().0.as_secs_f64()
    );
    if failed > 0 {
        std::process::exit(101);
    }
}

/// What a test ends with in which a killed process was not gone a second later.
struct Late;

/// True if a test passes. One that is late is tried again until it was in time more often than late: on a busy machine a
/// killed process may get no turn to end, and a guard that kills too late is late each time.
fn passes(name: &str, test: fn()) -> bool {
    let (mut in_time, mut late) = (0, 0);
    for _ in 0..9 {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            test();
            assert_no_process_is_left();
        }));
        match outcome {
            Ok(()) => in_time += 1,
            Err(what) => {
                end_all_processes();
                if !what.is::<Late>() {
                    return false;
                }
                late += 1;
                println!("{name}: a killed process was not gone a second later");
            }
        }
        if in_time > late {
            return true;
        }
    }
    false
}

/// The arguments that are parts of names; libtest's options mean nothing here.
fn filters(args: &[String]) -> Vec<&String> {
    const WITH_VALUE: [&str; 5] = ["--test-threads", "--skip", "--format", "--color", "-Z"];
    let mut is_value = false;
    let mut filters = Vec::new();
    for arg in args {
        if !is_value && !arg.starts_with('-') {
            filters.push(arg);
        }
        is_value = WITH_VALUE.contains(&arg.as_str());
    }
    filters
}

/// How a child ends, which is soon.
#[track_caller]
pub(crate) fn status_of(pid: i32) -> Status {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        match try_wait(pid).unwrap() {
            Waited::Ended { status, .. } => return status,
            Waited::Running => std::thread::sleep(Duration::from_millis(1)),
            Waited::NoChild => panic!("{pid} is no child"),
        }
    }
    panic!("{pid} does not end");
}

/// A guard with a job, and this process as its supervisor.
pub(crate) struct Guarded {
    pub(crate) handle: GuardHandle,
    pub(crate) clock: LocalClock,
    pub(crate) folder: tempfile::TempDir,
}

/// A shell that runs `script`, which finds its own folder in $D.
pub(crate) fn shell(script: &str) -> Vec<OsString> {
    ["sh", "-c", script].map(OsString::from).to_vec()
}

impl Guarded {
    /// Forks a guard; its grace is `grace_ms`.
    pub(crate) fn fork(argv: Vec<OsString>, leftovers: Leftovers, grace_ms: u64) -> Self {
        let clock = LocalClock::start();
        let settings = GuardSettings {
            argv,
            output: None,
            leftovers,
            kill_grace: Duration::from_millis(grace_ms),
            inherited: inherited(),
            clock,
        };
        Self {
            handle: GuardHandle::fork(settings).unwrap(),
            clock,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// A shell under a guard, started without a lease, with a grace that never ends.
    pub(crate) fn running(script: &str) -> Self {
        let mut guarded = Self::fork(shell(script), Leftovers::Kill, 3_600_000);
        guarded.start(None);
        guarded.expect_started();
        guarded
    }

    /// The moment `ms` milliseconds from now.
    pub(crate) fn after(&self, ms: u64) -> Moment {
        self.clock.now().plus(Duration::from_millis(ms))
    }

    /// A deadline with its TERM and its KILL so many milliseconds from now.
    pub(crate) fn deadline(&self, term_ms: u64, kill_ms: u64) -> Deadline {
        Deadline {
            term_at: self.after(term_ms),
            kill_at: self.after(kill_ms),
        }
    }

    pub(crate) fn send(&mut self, message: &ToGuard) {
        self.handle.send(message).unwrap();
    }

    /// Starts the job.
    pub(crate) fn start(&mut self, deadline: Option<Deadline>) {
        let folder = self.folder.path().to_str().unwrap().to_owned();
        let env = vec![("D".to_owned(), folder)];
        self.send(&ToGuard::Start { deadline, env });
    }

    /// Waits for the next thing that the guard says, but that it has heard of an end.
    pub(crate) fn next(&mut self) -> Received {
        loop {
            match self.handle.recv().unwrap() {
                Some(Received::Message(FromGuard::Ending)) => continue,
                Some(received) => return received,
                None => {}
            }
            wait_readable(self.handle.fd());
        }
    }

    /// Waits until the guard says something, or until this moment.
    pub(crate) fn wait_until(&self, moment: Moment) {
        let left = moment.since(self.clock.now());
        tokenrun::sys::poll::wait_readable(self.handle.fd(), Some(left)).unwrap();
    }

    /// Waits for the next thing as well, and ends the test as late at news of killed processes that are not gone yet.
    fn next_in_time(&mut self) -> Received {
        let next = self.next();
        if let Received::Message(FromGuard::Survivors { processes }) = &next {
            let is_late = |it: &Survivor| it.why == Unkillable::NotYetGone;
            if !processes.is_empty() && processes.iter().all(is_late) {
                resume_unwind(Box::new(Late));
            }
        }
        next
    }

    pub(crate) fn expect(&mut self, message: FromGuard) {
        assert_eq!(self.next_in_time(), Received::Message(message));
    }

    pub(crate) fn expect_too_late(&mut self) {
        self.expect(FromGuard::NotStarted {
            stage: Stage::TooLate,
            errno: 0,
            what: String::new(),
        });
    }

    pub(crate) fn expect_started(&mut self) -> i32 {
        match self.next_in_time() {
            Received::Message(FromGuard::Started { pid }) => pid,
            other => panic!("not started: {other:?}"),
        }
    }

    /// Waits for the names of those that were left behind.
    pub(crate) fn expect_leftovers(&mut self) -> Vec<String> {
        match self.next_in_time() {
            Received::Message(FromGuard::Leftovers { count, names, .. }) => {
                assert_eq!(count, names.len());
                names
            }
            other => panic!("no leftovers: {other:?}"),
        }
    }

    pub(crate) fn expect_exited(&mut self, status: Status) {
        match self.next_in_time() {
            Received::Message(FromGuard::Exited { status: actual, .. }) => {
                assert_eq!(actual, status);
            }
            other => panic!("not exited: {other:?}"),
        }
    }

    /// Waits for the guard's last word and its end.
    pub(crate) fn expect_gone(&mut self) {
        self.expect(FromGuard::Gone);
        self.expect_guard_ended();
    }

    /// Waits for the guard's end, which must be in order.
    pub(crate) fn expect_guard_ended(&mut self) {
        assert_eq!(self.next(), Received::Closed);
        let handle = &mut self.handle;
        let status = until("the guard ends", || handle.try_wait().unwrap());
        assert_eq!(status, Status::Exited(0));
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// Waits until the job has written a line to a file, and gives it.
    pub(crate) fn line(&self, file: &str) -> String {
        line(&self.path(file))
    }

    /// Waits until the job has written a pid to a file.
    pub(crate) fn pid(&self, file: &str) -> i32 {
        self.line(file).trim().parse().unwrap()
    }
}

/// Waits until a file ends with a whole line, and gives its text.
pub(crate) fn line(path: &Path) -> String {
    until(&format!("a line in {}", path.display()), || {
        let text = std::fs::read_to_string(path).ok()?;
        text.ends_with('\n').then_some(text)
    })
}

/// Asks again and again until there is an answer.
pub(crate) fn until<R>(what: &str, mut ask: impl FnMut() -> Option<R>) -> R {
    let clock = LocalClock::start();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(clock.now().0 < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The process, if it lives.
pub(crate) fn alive(pid: i32) -> Option<Process> {
    procfs::process(pid).filter(Process::is_alive)
}

/// Waits until a process has ended, reaped or not.
pub(crate) fn until_dead(pid: i32) {
    until(&format!("{pid} ends"), || {
        alive(pid).is_none().then_some(())
    });
}

/// Waits until a process is stopped.
pub(crate) fn until_stopped(pid: i32) {
    until(&format!("{pid} stops"), || {
        alive(pid).filter(|process| process.state == 'T').map(drop)
    });
}

/// A descriptor for the signals of this process.
pub(crate) fn own_signals() -> SignalFd {
    SignalFd::new(&inherited()).unwrap()
}

fn wait_readable(fd: BorrowedFd<'_>) {
    let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
    let timeout = PollTimeout::try_from(PATIENCE).unwrap();
    assert_ne!(poll(&mut fds, timeout), Ok(0), "the guard says nothing");
}

fn children() -> Vec<Process> {
    let own = tokenrun::sys::process::pid();
    let mut all = procfs::processes().unwrap();
    all.retain(|process| process.parent == own);
    all
}

fn assert_no_process_is_left() {
    let left = reap(usize::MAX, |_, _| {}).unwrap();
    assert_eq!(left, Left::Nothing, "left behind: {:?}", children());
}

/// Ends the leftovers of a failed test; only this process's own descendants.
fn end_all_processes() {
    until("everybody is gone", || {
        for child in children() {
            let _ = tokenrun::sys::process::signal_child(child.pid, nix::libc::SIGKILL);
        }
        (reap(usize::MAX, |_, _| {}).unwrap() == Left::Nothing).then_some(())
    });
}
