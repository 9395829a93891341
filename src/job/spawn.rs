//! Starting the job's program.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use serde::{Deserialize, Serialize};

use crate::sys::errno::Errno;
use crate::sys::exec::Program;
use crate::sys::fds::hand_down;
use crate::sys::pipe::print_to;
use crate::sys::poll::wait_readable;
use crate::sys::process::{Forked, die_with_parent, exit_now, fork, parent_pid, pid, signal_child};
use crate::sys::signals::{Inherited, SIGCONT, SIGKILL, discard_pending};
use crate::sys::socket::{Packet, Packets};
use crate::sys::wait::{newly_stopped_by, wait_for};

/// The exit code of a process that could not execute its program. No one reads it.
const NOT_EXECUTED: i32 = 127;

/// A child of this process that is ready to become the job: all slow work is done while the token
/// is still being granted. When dropped, the child is killed and reaped, and nothing was started.
#[derive(Debug)]
pub(super) struct Ready {
    pid: i32,
    /// `None` once the go-ahead was sent.
    socket: Option<Packets>,
}

/// The descriptors that a job is given, besides those of this process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handed<'a> {
    /// The job's lock, which it keeps open.
    pub(super) lock: Option<BorrowedFd<'a>>,
    /// What becomes its stdout and stderr.
    pub(super) output: Option<BorrowedFd<'a>>,
}

impl Handed<'_> {
    /// Hands them to the program that this process executes next.
    fn hand_over(self) -> io::Result<()> {
        self.lock.map_or(Ok(()), hand_down)?;
        self.output.map_or(Ok(()), print_to)
    }
}

/// A child that has the order to execute its program.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) pid: i32,
    /// What becomes of the exec.
    pub(super) report: ExecReport,
}

/// The progress of a child's exec, reported through a socket that the exec closes. It is polled,
/// never waited for: an exec on a file system that hangs must not delay the guard.
#[derive(Debug)]
pub(super) struct ExecReport {
    socket: Packets,
    /// The signals that were sent to the child and that its program will not see.
    discarded: Vec<i32>,
}

/// A report of the child.
#[derive(Debug, Serialize, Deserialize)]
enum Said {
    /// The child discarded these signals before its program could see them.
    Discarded(Vec<i32>),
    /// The child can't execute the program, for this errno, and leaves.
    Failed(i32),
}

/// The state of an exec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exec {
    /// Nothing yet.
    Pending,
    /// The program runs, or the child was killed before.
    Done,
    /// It failed, with this errno, and the child is leaving.
    Failed(i32),
}

impl Ready {
    /// Forks the child, which waits for [`Ready::go`]. It has what is `handed` to it, and is
    /// killed when this process ends.
    ///
    /// # Errors
    /// The system cannot create a socket or a process.
    pub(super) fn fork(
        argv: &[OsString],
        inherited: &Inherited,
        handed: Handed<'_>,
    ) -> io::Result<Self> {
        let (socket, childs_end) = Packets::pair()?;
        // Before the fork: the kernel would have to copy every page that the child writes after it.
        // Errors in the program are reported at the go-ahead.
        let prepared = Program::new(argv);
        let guard = pid();
        match fork()? {
            Forked::Parent { child } => Ok(Self {
                pid: child,
                socket: Some(socket),
            }),
            Forked::Child => {
                drop(socket);
                let errno = become_program(&childs_end, prepared, inherited, handed, guard);
                say(&childs_end, &Said::Failed(errno));
                exit_now(NOT_EXECUTED)
            }
        }
    }

    /// Has the child execute the program, with these variables besides those of this
    /// process.
    ///
    /// # Errors
    /// The variables can't be sent: the child is killed.
    pub(super) fn go(mut self, env: &[(String, String)]) -> io::Result<Started> {
        let Some(socket) = self.socket.as_ref() else {
            return Err(Errno::EINVAL.into());
        };
        // The child may have been stopped unnoticed while it waited. Checked before the go-ahead: a
        // stop after it is the job's own.
        if let Ok(Some(_)) = newly_stopped_by(self.pid) {
            let _ = signal_child(self.pid, SIGCONT);
        }
        socket.send(&serde_json::to_vec(env)?, None)?;
        match self.socket.take() {
            Some(socket) => Ok(Started {
                pid: self.pid,
                report: ExecReport::new(socket),
            }),
            None => Err(Errno::EINVAL.into()),
        }
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        if self.socket.is_some() {
            // The child waits and has nothing to clean up. It is gone when this process is gone: an
            // outer run must not find it among the processes that its job left behind.
            let _ = signal_child(self.pid, SIGKILL);
            let _ = wait_for(self.pid);
        }
    }
}

/// Executes the program. Returns only on failure, with the errno.
fn become_program(
    socket: &Packets,
    prepared: io::Result<Program>,
    inherited: &Inherited,
    handed: Handed<'_>,
    guard: i32,
) -> i32 {
    if let Err(err) = die_with_parent().and_then(|()| handed.hand_over()) {
        return errno_of(&err);
    }
    if parent_pid() != guard {
        // The guard ended before the report could be sent.
        exit_now(NOT_EXECUTED)
    }
    let program = match wait_for_word(socket).and_then(|env| prepared?.with(&env)) {
        Ok(program) => program,
        Err(err) => return errno_of(&err),
    };
    // Signals that were sent to the group before the job existed are not for the job.
    let discarded = discard_pending();
    if !discarded.is_empty() {
        say(socket, &Said::Discarded(discarded));
    }
    inherited.restore();
    errno_of(&program.exec())
}

/// Waits for the go-ahead and its variables. Leaves if the guard ends.
fn wait_for_word(socket: &Packets) -> io::Result<Vec<(String, String)>> {
    loop {
        match socket.receive()? {
            Packet::Data(env, _) => return Ok(serde_json::from_slice(&env)?),
            Packet::Closed => exit_now(NOT_EXECUTED),
            Packet::Nothing => wait_readable(socket.as_fd(), None)?,
        }
    }
}

fn say(socket: &Packets, said: &Said) {
    // A few bytes always fit; without a reader they do not matter.
    if let Ok(packet) = serde_json::to_vec(said) {
        let _ = socket.send(&packet, None);
    }
}

/// The errno in a system error.
pub(super) fn errno_of(err: &io::Error) -> i32 {
    Errno::of(err).unwrap_or(Errno::EINVAL).raw()
}

impl ExecReport {
    const fn new(socket: Packets) -> Self {
        Self {
            socket,
            discarded: Vec::new(),
        }
    }

    /// The state as known now.
    pub(super) fn look(&mut self) -> Exec {
        loop {
            match self.socket.receive() {
                Ok(Packet::Data(packet, _)) => match serde_json::from_slice(&packet) {
                    Ok(Said::Discarded(signals)) => self.discarded = signals,
                    Ok(Said::Failed(errno)) => return Exec::Failed(errno),
                    // Both ends are the same program, so this can't happen.
                    Err(_) => return Exec::Failed(Errno::EINVAL.raw()),
                },
                Ok(Packet::Nothing) => return Exec::Pending,
                Ok(Packet::Closed) | Err(_) => return Exec::Done,
            }
        }
    }

    /// The signals that were sent to the child and that its program will not see. Complete once the
    /// exec is done.
    pub(super) fn discarded(&self) -> &[i32] {
        &self.discarded
    }
}

impl AsFd for ExecReport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_read_without_waiting() {
        let (waiting, child) = Packets::pair().unwrap();
        let mut waiting = ExecReport::new(waiting);
        assert_eq!(waiting.look(), Exec::Pending);
        say(&child, &Said::Discarded(vec![15]));
        assert_eq!(waiting.look(), Exec::Pending);
        drop(child);
        assert_eq!(waiting.look(), Exec::Done);
        assert_eq!(waiting.discarded(), [15]);
        let (failing, child) = Packets::pair().unwrap();
        let mut failing = ExecReport::new(failing);
        say(&child, &Said::Failed(2));
        drop(child);
        assert_eq!(failing.look(), Exec::Failed(2));
    }
}
