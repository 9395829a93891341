//! Waiting for children, without blocking unless stated.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsFd as _;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};

use super::poll::wait_readable;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Status {
    /// It exited with this code: 0 to 255.
    Exited(i32),
    /// This signal, by its number, killed it.
    Signalled(i32),
}

impl Status {
    /// Decodes the status of waitpid(2). `None` for a child that has not ended but stopped or
    /// continued.
    pub fn from_raw(raw: i32) -> Option<Self> {
        if libc::WIFEXITED(raw) {
            Some(Self::Exited(libc::WEXITSTATUS(raw)))
        } else if libc::WIFSIGNALED(raw) {
            // Not nix's WaitStatus: it treats a real-time signal as an error, after the child has
            // been reaped.
            Some(Self::Signalled(libc::WTERMSIG(raw)))
        } else {
            None
        }
    }
}

/// The result of a wait without blocking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// A child has ended, and this call has reaped it.
    Ended { pid: i32, status: Status },
    /// There are matching children, and none has ended.
    Running,
    /// There is no matching child.
    NoChild,
}

/// Reaps the child `pid` if it has ended.
pub fn try_wait(pid: i32) -> io::Result<Waited> {
    if pid <= 0 {
        return Ok(Waited::NoChild);
    }
    wait(pid, libc::WNOHANG)
}

/// Reaps any child that has ended.
fn try_wait_any() -> io::Result<Waited> {
    wait(-1, libc::WNOHANG)
}

/// Waits until the child `pid` has ended, and reaps it.
///
/// # Errors
/// ECHILD if there is no such child.
pub fn wait_for(pid: i32) -> io::Result<Status> {
    loop {
        match wait(pid.max(1), 0)? {
            Waited::Ended { status, .. } => return Ok(status),
            Waited::Running => {}
            Waited::NoChild => return Err(Errno::ECHILD.into()),
        }
    }
}

/// The first pause between two checks of a child, doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// True if the child `pid` ends within this time; reaps it. A child that is reaped already has
/// ended.
pub fn ends_within(pid: i32, limit: Duration) -> bool {
    let started = Instant::now();
    let mut pause = FIRST_PAUSE;
    // It stays a child until it is reaped here, so that its number is no other's.
    let number = Pid::from_raw(pid.max(0));
    let notifier = number.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    loop {
        let left = limit.saturating_sub(started.elapsed());
        match (try_wait(pid), &notifier) {
            (Ok(Waited::Running), _) if left.is_zero() => return false,
            (Ok(Waited::Running), Some(notifier)) => {
                // Whatever this returns, the child is asked next.
                let _ = wait_readable(notifier.as_fd(), Some(left));
            }
            // The kernel or a sandbox has no pidfds.
            (Ok(Waited::Running), None) => {
                thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            (Ok(Waited::Ended { .. } | Waited::NoChild) | Err(_), _) => return true,
        }
    }
}

/// Which children are left after some were reaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Left {
    /// None. For a subreaper: no descendant either.
    Nothing,
    /// Only live ones.
    Living,
    /// Ended ones may be left.
    Unknown,
}

/// Reaps ended children, at most `most`, and passes each to `on`: others may end as fast as they
/// are reaped, without end.
pub fn reap(most: usize, mut on: impl FnMut(i32, Status)) -> io::Result<Left> {
    for _ in 0..most {
        match try_wait_any()? {
            Waited::Ended { pid, status } => on(pid, status),
            Waited::Running => return Ok(Left::Living),
            Waited::NoChild => return Ok(Left::Nothing),
        }
    }
    Ok(Left::Unknown)
}

/// True if the child `pid` has not ended. Reaps nothing. `None`: it is no child, or the kernel does not
/// say.
pub fn is_running(pid: i32) -> Option<bool> {
    let id = libc::id_t::try_from(pid).ok()?;
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    let found = look(libc::P_PID, id, flags).ok()?;
    Some(found.is_none())
}

/// The signal that has stopped the child `pid` since the last call, by its number.
///
/// # Errors
/// ECHILD if there is no such child.
pub fn newly_stopped_by(pid: i32) -> io::Result<Option<i32>> {
    let id = libc::id_t::try_from(pid).map_err(|_| Errno::ECHILD)?;
    let found = look(libc::P_PID, id, libc::WSTOPPED | libc::WNOHANG)?;
    // SAFETY: waitid(2) returned it for a child, so that it has a status.
    Ok(found.map(|info| unsafe { info.si_status() }))
}

/// waitid(2). `None` without a matching event.
fn look(kind: libc::idtype_t, id: libc::id_t, flags: i32) -> io::Result<Option<libc::siginfo_t>> {
    // SAFETY: all zeroes is a valid siginfo_t.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: waitid(2) writes to a place that is ours; nothing else is a pointer.
    Errno::result(unsafe { libc::waitid(kind, id, &mut info, flags) })?;
    Ok((info.si_signo != 0).then_some(info))
}

/// True if this process has any child, ended or not. Reaps nothing.
pub fn has_children() -> io::Result<bool> {
    match look_for_any() {
        Ok(_) => Ok(true),
        Err(err) if err.raw_os_error() == Some(libc::ECHILD) => Ok(false),
        Err(err) => Err(err),
    }
}

/// True if this process has children none of which has ended. Reaps nothing.
pub fn has_only_living_children() -> bool {
    look_for_any().is_ok_and(|found| found.is_none())
}

/// A child that has ended, if there is one.
fn look_for_any() -> io::Result<Option<libc::siginfo_t>> {
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    look(libc::P_ALL, 0, flags)
}

fn wait(pid: i32, flags: i32) -> io::Result<Waited> {
    loop {
        let mut raw = 0;
        // SAFETY: waitpid(2) writes one integer to a place that is ours.
        let done = unsafe { libc::waitpid(pid, &mut raw, flags) };
        match Errno::result(done) {
            Ok(0) => return Ok(Waited::Running),
            Ok(pid) => {
                if let Some(status) = Status::from_raw(raw) {
                    return Ok(Waited::Ended { pid, status });
                }
            }
            Err(Errno::ECHILD) => return Ok(Waited::NoChild),
            Err(Errno::EINTR) => {}
            Err(err) => return Err(err.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_statuses_are_understood() {
        assert_eq!(Status::from_raw(7 << 8), Some(Status::Exited(7)));
        assert_eq!(
            Status::from_raw(libc::SIGKILL),
            Some(Status::Signalled(libc::SIGKILL))
        );
        let with_core = libc::SIGQUIT | 0x80;
        assert_eq!(
            Status::from_raw(with_core),
            Some(Status::Signalled(libc::SIGQUIT))
        );
        assert_eq!(Status::from_raw(40), Some(Status::Signalled(40)));
        let stopped = (libc::SIGSTOP << 8) | 0x7f;
        assert_eq!(Status::from_raw(stopped), None);
    }

    #[test]
    fn children_are_never_waited_for_by_group() {
        assert_eq!(try_wait(0).unwrap(), Waited::NoChild);
        assert_eq!(try_wait(-1).unwrap(), Waited::NoChild);
        assert!(wait_for(1).is_err());
    }
}
