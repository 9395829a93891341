//! Starting the job's program.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use crate::sys::exec::Program;
use crate::sys::fds::hand_down;
use crate::sys::process::{Forked, die_with_parent, exit_now, fork, parent_pid, pid};
use crate::sys::signals::Inherited;

/// What a process that could not execute its program leaves with. Nobody sees it.
const NOT_EXECUTED: i32 = 127;

/// How the exec of a child goes, told through a pipe that the exec closes. It is
/// asked about, never waited for: an exec on a file system that hangs must not
/// hold up the guard.
#[derive(Debug)]
pub(super) struct ExecReport {
    pipe: std::fs::File,
}

/// What is known of an exec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exec {
    /// Nothing yet.
    Pending,
    /// The program runs, or the child was killed before.
    Done,
    /// It failed, with this errno, and the child is leaving.
    Failed(i32),
}

/// Forks a child of this process that executes `program` with the signals of
/// `inherited`. The child keeps `lock` open. It is killed when this process ends.
///
/// # Errors
/// The system refused a pipe or a process.
pub(super) fn spawn(
    program: &Program,
    inherited: &Inherited,
    lock: Option<BorrowedFd<'_>>,
) -> io::Result<(i32, ExecReport)> {
    let (read, write) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
    let guard = pid();
    match fork()? {
        Forked::Parent { child } => Ok((child, ExecReport { pipe: read.into() })),
        Forked::Child => {
            let errno = become_program(program, inherited, lock, guard);
            report(write, errno);
            exit_now(NOT_EXECUTED)
        }
    }
}

/// Returns only if that failed, with the errno.
fn become_program(
    program: &Program,
    inherited: &Inherited,
    lock: Option<BorrowedFd<'_>>,
    guard: i32,
) -> i32 {
    if let Err(err) = die_with_parent().and_then(|()| lock.map_or(Ok(()), hand_down)) {
        return errno_of(&err);
    }
    if parent_pid() != guard {
        // It ended before its end could be told.
        exit_now(NOT_EXECUTED)
    }
    inherited.restore();
    errno_of(&program.exec())
}

fn report(pipe: OwnedFd, errno: i32) {
    // Four bytes always fit; if nobody reads them, nobody needs them.
    let _ = std::fs::File::from(pipe).write_all(&errno.to_ne_bytes());
}

/// The errno in an error of the system's.
pub(super) fn errno_of(err: &io::Error) -> i32 {
    err.raw_os_error().unwrap_or(Errno::EINVAL as i32)
}

impl ExecReport {
    /// What is known now.
    pub(super) fn look(&self) -> Exec {
        let mut errno = [0; 4];
        match (&self.pipe).read(&mut errno) {
            Ok(4) => Exec::Failed(i32::from_ne_bytes(errno)),
            Ok(_) => Exec::Done,
            Err(err) if err.kind() == io::ErrorKind::WouldBlock => Exec::Pending,
            Err(err) if err.kind() == io::ErrorKind::Interrupted => Exec::Pending,
            Err(_) => Exec::Done,
        }
    }
}

impl AsFd for ExecReport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_read_without_waiting() {
        let pipe = || {
            let (read, write) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).unwrap();
            (ExecReport { pipe: read.into() }, write)
        };
        let (waiting, write) = pipe();
        assert_eq!(waiting.look(), Exec::Pending);
        drop(write);
        assert_eq!(waiting.look(), Exec::Done);
        let (failing, write) = pipe();
        report(write, 2);
        assert_eq!(failing.look(), Exec::Failed(2));
    }
}
