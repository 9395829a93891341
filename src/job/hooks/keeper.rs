//! The keeper's process: starts the hook's shell, and ends when no process of the hook is left.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{HookEnd, OUTPUT_FILE, Order};
use crate::job::killing::Killing;
use crate::job::tree::Tree;
use crate::moment::Moment;
use crate::sys::clock::LocalClock;
use crate::sys::fds::close_all_except;
use crate::sys::poll::Sources;
use crate::sys::process::{become_subreaper, leave_session, pid, set_name};
use crate::sys::signals::{Inherited, SignalFd, asks_for_end};
use crate::sys::wait::{Left, Status, reap};

/// The keeper's name in process listings.
const NAME: &std::ffi::CStr = c"hook-keeper";

/// How many ended processes are reaped before the keeper looks at the time again.
const BATCH: usize = 64;

/// How long killed processes may take to end before the keeper leaves them: one that belongs to
/// another user by now can't be killed.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest sleep, for a clock that the poll does not follow.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Does a keeper's whole work: stdin is the hook's, stdout is the socket of its starter, stderr is
/// the hook's stdout and stderr.
///
/// # Errors
/// What the keeper needs is refused by the operating system; the starter gets the reason.
pub fn keep(order: &Order, inherited: &Inherited) -> io::Result<()> {
    // A parent's lock in a descriptor without a name must not outlast tokenrun in a hook.
    close_all_except(&[]);
    let mut link = UnixStream::from(io::stdout().as_fd().try_clone_to_owned()?);
    let end = run_hook(order, inherited, &link).unwrap_or_else(|error| {
        // A hook without its keeper's duties is not begun.
        HookEnd::NotStarted(error.to_string())
    });
    let text = serde_json::to_vec(&end)?;
    // It finds room in the socket at once. A starter that is gone does not read it.
    let _ = link.write_all(&text);
    Ok(())
}

fn run_hook(order: &Order, inherited: &Inherited, link: &UnixStream) -> io::Result<HookEnd> {
    leave_session();
    inherited.block()?;
    become_subreaper()?;
    // For people only.
    let _ = set_name(NAME);
    link.set_nonblocking(true)?;
    let clock = LocalClock::start();
    let signals = SignalFd::new(inherited)?;
    let shell = start(order, inherited)?;
    let limit = Duration::from_millis(order.limit_ms);
    Keeper {
        clock,
        signals,
        link: Some(link),
        shell: Some(shell),
        status: None,
        limit: clock.now().plus(limit),
        ending: None,
        killing: Killing::default(),
    }
    .until_gone()
}

/// Starts the shell, and returns its pid. Its output goes to stderr: stdout belongs to the job.
fn start(order: &Order, inherited: &Inherited) -> io::Result<i32> {
    let output = io::stderr().as_fd().try_clone_to_owned()?;
    let mut shell = Command::new("/bin/sh");
    inherited.file_size().hand_down(&mut shell);
    let child = shell
        .args(["-c", &order.command])
        .env(OUTPUT_FILE, format!("/proc/{}/fd/0", pid()))
        .stdout(Stdio::from(output))
        .spawn()?;
    Ok(i32::try_from(child.id()).unwrap_or(i32::MAX))
}

/// Why and since when the hook is being ended.
#[derive(Debug)]
struct EndingHook {
    why: HookEnd,
    since: Moment,
}

/// What the keeper polls.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Source {
    Signals,
    Link,
}

struct Keeper<'a> {
    clock: LocalClock,
    signals: SignalFd,
    /// The starter's socket; `None` once the starter is gone.
    link: Option<&'a UnixStream>,
    /// The shell's pid until it is reaped.
    shell: Option<i32>,
    status: Option<Status>,
    /// When the hook is killed.
    limit: Moment,
    ending: Option<EndingHook>,
    killing: Killing,
}

impl Keeper<'_> {
    /// Waits until no process of the hook is left, and ends them at the limit or by order.
    fn until_gone(mut self) -> io::Result<HookEnd> {
        loop {
            match self.reap()? {
                Left::Nothing => return Ok(self.end()),
                Left::Unknown => {}
                Left::Living if self.gives_up() => return Ok(HookEnd::Unkillable),
                Left::Living => self.sleep()?,
            }
            if self.ending.is_none() {
                let why = self.why_to_end();
                let since = self.clock.now();
                self.ending = why.map(|why| EndingHook { why, since });
            }
            if self.ending.is_some() {
                let tree = Tree::below_this_process(pid(), self.shell);
                // The survivors are left alone in the end.
                let _ = self.killing.run(|| self.clock.now(), &tree);
            }
        }
    }

    fn reap(&mut self) -> io::Result<Left> {
        let (shell, mut status) = (self.shell, self.status);
        let left = reap(BATCH, |pid, ended| {
            if shell == Some(pid) {
                status = Some(ended);
            }
        })?;
        if status.is_some() {
            self.shell = None;
        }
        self.status = status;
        Ok(left)
    }

    fn why_to_end(&mut self) -> Option<HookEnd> {
        let mut stopped = self.is_ordered_to_end();
        while let Some(received) = self.signals.read() {
            stopped |= asks_for_end(received.signal);
        }
        if stopped {
            return Some(HookEnd::Stopped);
        }
        (self.clock.now() >= self.limit).then_some(HookEnd::TimedOut)
    }

    /// True if the starter has sent its order, a byte.
    fn is_ordered_to_end(&mut self) -> bool {
        let Some(mut link) = self.link else {
            return false;
        };
        match link.read(&mut [0]) {
            Ok(0) => {
                self.link = None;
                false
            }
            Ok(_) => true,
            // Nothing yet; or the starter is gone, which the next read shows.
            Err(_) => false,
        }
    }

    fn gives_up(&self) -> bool {
        let now = self.clock.now();
        let since = self.ending.as_ref().map(|ending| ending.since);
        since.is_some_and(|since| now.since(since) >= PATIENCE)
    }

    fn end(self) -> HookEnd {
        match (self.ending, self.status) {
            (Some(ending), _) => ending.why,
            (None, Some(status)) => HookEnd::Ended(status),
            // The shell is a child of this process, so that this can't happen.
            (None, None) => HookEnd::Lost,
        }
    }

    /// Sleeps until a process has ended, an order or a signal has come, or something is due.
    fn sleep(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        let due = match &self.ending {
            Some(_) => self.killing.next().unwrap_or(now),
            None => self.limit,
        };
        let link = self.link.filter(|_| self.ending.is_none());
        let ready = Sources::new()
            .and(Source::Signals, self.signals.as_fd())
            .and(Source::Link, link.map(|link| link.as_fd()))
            .wait(Some(due.since(now).min(LONGEST_SLEEP)))?;
        if ready.has(&Source::Signals) && self.ending.is_some() {
            while self.signals.read().is_some() {}
        }
        Ok(())
    }
}
