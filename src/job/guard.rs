//! The guard's process, from its fork to the job's start.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use super::GUARD_NAME;
use super::deadlines::Deadlines;
use super::link::Wakeups;
use super::link::{Heard, Link};
use super::protocol::GuardSettings;
use super::protocol::{Deadline, FromGuard, Stage, ToGuard};
use super::running::Running;
use super::spawn::{Handed, Ready, errno_of};
use crate::moment::Moment;
use crate::sys::errno::Errno;
use crate::sys::events::Timer;
use crate::sys::fds::{close_all_except, silence_standard};
use crate::sys::limits::run_first;
use crate::sys::poll::wait_readable;
use crate::sys::process::{become_subreaper, set_name};
use crate::sys::signals::{SignalFd, block_all};
use crate::sys::socket::Packets;

/// The job's lock, from the supervisor.
#[derive(Debug)]
struct Lock {
    fd: OwnedFd,
    inherit: bool,
}

impl Lock {
    /// The descriptor that the job inherits, if it inherits any.
    fn inherited(&self) -> Option<BorrowedFd<'_>> {
        self.inherit.then(|| self.fd.as_fd())
    }
}

/// The parts of a job's start.
#[derive(Debug)]
struct Start {
    deadline: Option<Deadline>,
    env: Vec<(String, String)>,
    lock: Option<Lock>,
    ready: Option<Ready>,
}

/// Does a guard's whole work, in its own process.
///
/// # Errors
/// A failure that should never happen. A running job has been killed, as far as one try can; the
/// supervisor does the rest.
pub(super) fn run(socket: Packets, settings: &GuardSettings) -> io::Result<()> {
    let mut link = Link::new(socket);
    let wakeups = match set_up(settings) {
        Ok(wakeups) => wakeups,
        Err(err) => {
            link.say(&not_started(Stage::Fork, &err, "guard"));
            return Err(err);
        }
    };
    let Some(start) = wait_for_start(&mut link, &wakeups, settings)? else {
        return Ok(());
    };
    start_job(link, &wakeups, settings, start)
}

fn set_up(settings: &GuardSettings) -> io::Result<Wakeups> {
    block_all()?;
    become_subreaper()?;
    set_name(GUARD_NAME)?;
    Ok(Wakeups {
        signals: SignalFd::with_stops(&settings.inherited)?,
        timer: Timer::new()?,
    })
}

/// The clock is read at least this often while a start is expected: a wait does not count the time in
/// which the machine is suspended.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Waits for the order to start; `None` if no job is wanted any more, or if the order is late.
fn wait_for_start(
    link: &mut Link,
    wakeups: &Wakeups,
    settings: &GuardSettings,
) -> io::Result<Option<Start>> {
    let mut lock = None;
    let mut ready = None;
    let mut start_by: Option<Moment> = None;
    loop {
        match link.hear() {
            Heard::Message(ToGuard::StartBy { at }, _) => start_by = at,
            Heard::Message(ToGuard::Lock { inherit }, Some(fd)) => {
                let lock = lock.insert(Lock { fd, inherit });
                // The token is being requested. If the system cannot create a process now, the
                // guard tries again at the start.
                ready = get_ready(wakeups, settings, Some(lock)).ok();
            }
            // Lost on its way, for want of descriptors. Without the lock a live job would count as
            // dead.
            Heard::Message(ToGuard::Lock { .. }, None) => {
                link.say(&not_started(Stage::Fork, &Errno::EMFILE.into(), "lock"));
                return Ok(None);
            }
            Heard::Message(ToGuard::Start { deadline, env }, _) => {
                return Ok(Some(Start {
                    deadline,
                    env,
                    lock,
                    ready,
                }));
            }
            // Start brings the deadline that counts, and there is no job to pass a signal on to.
            Heard::Message(ToGuard::Deadline { .. } | ToGuard::Pass { .. }, _) => {}
            Heard::Message(ToGuard::End { .. } | ToGuard::Kill, _) => {
                link.say(&FromGuard::Gone);
                return Ok(None);
            }
            Heard::Gone => return Ok(None),
            Heard::Nothing => {
                let left = start_by.map(|at| at.since(settings.clock.now()));
                if left.is_some_and(|left| left.is_zero()) {
                    link.say(&too_late());
                    return Ok(None);
                }
                wait_readable(link.as_fd(), left.map(|left| left.min(LONGEST_WAIT)))?;
            }
        }
    }
}

fn get_ready(
    wakeups: &Wakeups,
    settings: &GuardSettings,
    lock: Option<&Lock>,
) -> io::Result<Ready> {
    // A signal that was sent to the group before this process existed has not reached it.
    while wakeups.signals.read().is_some() {}
    let handed = Handed {
        lock: lock.and_then(Lock::inherited),
        output: settings.output.as_ref().map(AsFd::as_fd),
    };
    Ready::fork(&settings.argv, &settings.inherited, handed)
}

fn start_job(
    link: Link,
    wakeups: &Wakeups,
    settings: &GuardSettings,
    start: Start,
) -> io::Result<()> {
    let is_late = |deadline: Deadline| deadline.term_at <= settings.clock.now();
    if start.deadline.is_some_and(is_late) {
        link.say(&too_late());
        return Ok(());
    }
    // The waiting process, if it exists, discards the signals that were sent to the group until
    // now.
    while wakeups.signals.read().is_some() {}
    let fresh = || get_ready(wakeups, settings, start.lock.as_ref())?.go(&start.env);
    // A process that was killed while it waited has started nothing.
    let started = match start.ready.map(|ready| ready.go(&start.env)) {
        Some(Ok(started)) => Ok(started),
        Some(Err(_)) | None => fresh(),
    };
    let started = match started {
        Ok(started) => started,
        Err(err) => {
            link.say(&not_started(Stage::Fork, &err, "fork"));
            return Ok(());
        }
    };
    // Only now: until here the job would have inherited the priority.
    run_first();
    silence_standard();
    let ours = [
        link.as_fd(),
        wakeups.signals.as_fd(),
        wakeups.timer.as_fd(),
        started.report.as_fd(),
    ];
    let lock = start.lock.as_ref().map(|lock| lock.fd.as_fd());
    close_all_except(&ours.into_iter().chain(lock).collect::<Vec<_>>());

    let deadlines = Deadlines::new(start.deadline);
    Running::new(link, wakeups, settings, deadlines, started).watch_over()
}

const fn too_late() -> FromGuard {
    FromGuard::NotStarted {
        stage: Stage::TooLate,
        errno: 0,
        what: String::new(),
    }
}

fn not_started(stage: Stage, err: &io::Error, what: &str) -> FromGuard {
    FromGuard::NotStarted {
        stage,
        errno: errno_of(err),
        what: what.to_owned(),
    }
}
