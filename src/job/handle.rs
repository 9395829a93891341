//! The supervisor's side of the guard.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::adopted::Adopted;
use super::batches::Reaping;
use super::guard;
use super::killing::Killing;
use super::protocol::GuardSettings;
use super::protocol::{FromGuard, Survivor, ToGuard};
use super::tree::Tree;
use crate::moment::Moment;
use crate::sys::clock::LocalClock;
use crate::sys::errno::Errno;
use crate::sys::process::{self, Forked, become_subreaper, exit_now, fork, signal_child};
use crate::sys::socket::{Packet, Packets};
use crate::sys::wait::{self, Status, Waited};

/// A guard's process. When the handle is dropped, the guard sees a lost supervisor and ends its
/// job.
#[derive(Debug)]
pub struct GuardHandle {
    socket: Packets,
    pid: i32,
    status: Option<Status>,
    job: Option<i32>,
    adopted: Adopted,
    killing: Killing,
    reaping: Reaping,
    clock: LocalClock,
}

/// A result of [`GuardHandle::recv`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    Message(FromGuard),
    /// The guard is gone; repeated each time. If neither `Gone` nor `NotStarted` came before, it
    /// was killed: see [`GuardHandle::end_tree_without_guard`].
    Closed,
}

/// The progress of ending a job without a guard.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum TreeEnd {
    /// Neither the job nor the guard is left.
    Gone,
    /// A process is left: call again at `again_at`, or at a SIGCHLD.
    Ending {
        again_at: Moment,
        /// The processes that could not be killed, if they differ from the last report.
        survivors: Option<Vec<Survivor>>,
    },
}

impl GuardHandle {
    /// Forks a guard, which waits for [`ToGuard::Start`]. Makes this process a
    /// subreaper: the job's processes become its children if the guard is killed.
    ///
    /// To be called while this process has a single thread, and after
    /// [`crate::sys::signals::Inherited::take`].
    ///
    /// # Errors
    /// The system cannot create a process (EAGAIN, ENOMEM) or descriptors (EMFILE, ENFILE).
    pub fn fork(settings: GuardSettings) -> io::Result<Self> {
        let adopted = Adopted::look()?;
        become_subreaper()?;
        let (socket, guards_end) = Packets::pair()?;
        match fork()? {
            Forked::Parent { child } => Ok(Self {
                socket,
                pid: child,
                status: None,
                job: None,
                adopted,
                killing: Killing::default(),
                reaping: Reaping::default(),
                clock: settings.clock,
            }),
            Forked::Child => {
                // With an open copy the guard would never see the end of the supervisor.
                drop(socket);
                let work = AssertUnwindSafe(|| guard::run(guards_end, &settings));
                // A guard must never return into its supervisor's code.
                exit_now(match catch_unwind(work) {
                    Ok(Ok(())) => 0,
                    Ok(Err(_)) => 71,
                    Err(_) => 70,
                })
            }
        }
    }

    /// The descriptor to poll for messages.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The guard's pid.
    pub const fn pid(&self) -> i32 {
        self.pid
    }

    /// Sends a message, without blocking.
    ///
    /// # Errors
    /// `WouldBlock` if the guard has not read earlier messages (it does not answer), `BrokenPipe`
    /// if it is gone; EMSGSIZE for an environment of more than some 200 KiB.
    pub fn send(&mut self, message: &ToGuard) -> io::Result<()> {
        self.socket.send(&serde_json::to_vec(message)?, None)
    }

    /// Hands the job's lock to the guard, which holds it as long as it lives; the job inherits it
    /// if `inherit`. To be sent before `Start`.
    pub fn send_lock(&mut self, lock: BorrowedFd<'_>, inherit: bool) -> io::Result<()> {
        let message = serde_json::to_vec(&ToGuard::Lock { inherit })?;
        self.socket.send(&message, Some(lock))
    }

    /// The next message; `None` if there is none now.
    ///
    /// # Errors
    /// The system is out of memory, or a packet is not a message.
    pub fn recv(&mut self) -> io::Result<Option<Received>> {
        Ok(match self.socket.receive()? {
            Packet::Nothing => None,
            Packet::Closed => Some(Received::Closed),
            Packet::Data(packet, _) => {
                let message = serde_json::from_slice(&packet)?;
                self.note(&message);
                Some(Received::Message(message))
            }
        })
    }

    fn note(&mut self, message: &FromGuard) {
        match message {
            FromGuard::Started { pid } => {
                self.job = Some(*pid);
            }
            // The guard has reaped it: another process may get the pid.
            FromGuard::Exited { .. } => self.job = None,
            FromGuard::NotStarted { .. }
            | FromGuard::Ack
            | FromGuard::Ending
            | FromGuard::Expired
            | FromGuard::Leftovers { .. }
            | FromGuard::Survivors { .. }
            | FromGuard::Gone => {}
        }
    }

    /// How the guard ended; `None` while it runs. Reaps the guard; later calls return the same
    /// answer.
    ///
    /// # Errors
    /// ECHILD if another caller has reaped it.
    pub fn try_wait(&mut self) -> io::Result<Option<Status>> {
        if self.status.is_none() {
            match wait::try_wait(self.pid)? {
                Waited::Ended { pid, status } => self.note_end(pid, status),
                Waited::Running => {}
                Waited::NoChild => return Err(Errno::ECHILD.into()),
            }
        }
        Ok(self.status)
    }

    /// Reaps ended children of this process, including those that it got as PID 1 or as a
    /// subreaper. If there are many, it reaps a batch: call again at [`Self::reap_at`]. Returns
    /// whether a child may be left.
    pub fn reap_orphans(&mut self) -> io::Result<bool> {
        let clock = self.clock;
        let mut reaping = std::mem::take(&mut self.reaping);
        let left = reaping.run(|| clock.now(), |pid, status| self.note_end(pid, status));
        self.reaping = reaping;
        left
    }

    /// A child of this process has ended.
    pub fn note_child_ended(&mut self) {
        self.reaping.note();
    }

    /// When ended children are to be reaped.
    pub const fn reap_at(&self) -> Option<Moment> {
        self.reaping.next()
    }

    /// Records which children of this process are not the job's. To be called regularly while the
    /// guard lives.
    pub fn note_strangers(&mut self) {
        if self.status.is_none() {
            self.adopted.look_again(self.pid);
        }
    }

    /// Records a child of this process, forked after the guard, that is not the job's.
    pub fn disown(&mut self, pid: i32) {
        self.adopted.disown(pid);
    }

    fn note_end(&mut self, pid: i32, status: Status) {
        if pid == self.pid && self.status.is_none() {
            self.status = Some(status);
        } else if Some(pid) == self.job {
            self.job = None;
        }
    }

    /// Sends the guard itself a signal by its number: CONT if it may be stopped, KILL if it does
    /// not answer. Does nothing if the guard has ended.
    pub fn signal_guard(&self, signal: i32) -> io::Result<()> {
        match self.status {
            Some(_) => Ok(()),
            None => signal_child(self.pid, signal),
        }
    }

    /// Kills the rest of the guard and its job: for a guard that was killed or does not answer.
    /// Then reaps ended processes. Does not block: to be called until everything is gone.
    pub fn end_tree_without_guard(&mut self) -> io::Result<TreeEnd> {
        let survivors = self.kill_tree()?;
        if !self.reap_orphans()? || self.has_left_strangers_only()? {
            return Ok(TreeEnd::Gone);
        }
        let again = [self.killing.next(), self.reaping.next()];
        let again_at = again.into_iter().flatten().min();
        Ok(TreeEnd::Ending {
            again_at: again_at.unwrap_or_else(|| self.clock.now()),
            survivors,
        })
    }

    fn kill_tree(&mut self) -> io::Result<Option<Vec<Survivor>>> {
        let known_child = self.known_child()?;
        let (adopted, clock) = (&self.adopted, self.clock);
        let belongs = |child: &_| adopted.belongs(child);
        let tree = Tree::new(process::pid(), known_child, adopted.is_everyone(), &belongs);
        Ok(self.killing.run(|| clock.now(), &tree))
    }

    /// True if every process that is left is a stranger, as far as that is visible.
    fn has_left_strangers_only(&self) -> io::Result<bool> {
        if self.adopted.is_everyone() || self.status.is_none() {
            return Ok(false);
        }
        let known_child = self.known_child()?;
        let belongs = |child: &_| self.adopted.belongs(child);
        let tree = Tree::new(process::pid(), known_child, false, &belongs);
        Ok(tree.is_empty().unwrap_or(known_child.is_none()))
    }

    /// A child of this process whose pid is certainly its own: the guard while it is not reaped, or
    /// the job's main process once it was adopted.
    fn known_child(&self) -> io::Result<Option<i32>> {
        Ok(match (self.status, self.job) {
            (None, _) => Some(self.pid),
            (Some(_), Some(job)) => matches!(wait::try_wait(job)?, Waited::Running).then_some(job),
            (Some(_), None) => None,
        })
    }
}

#[cfg(test)]
impl GuardHandle {
    /// The handle of a guard with this pid that a test plays, and the guard's side.
    pub(crate) fn played(pid: i32) -> (Self, Packets) {
        let (socket, guards_end) = Packets::pair().unwrap();
        let handle = Self {
            socket,
            pid,
            status: None,
            job: None,
            adopted: Adopted::look().unwrap(),
            killing: Killing::default(),
            reaping: Reaping::default(),
            clock: LocalClock::start(),
        };
        (handle, guards_end)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Child, Command};

    use super::*;
    use crate::sys::signals::{SIGKILL, SIGTERM};

    fn process() -> (Child, i32) {
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        (child, pid)
    }

    fn end(child: &mut Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn the_known_child_is_the_guard_and_then_the_job_while_each_lives() {
        let (mut guard, guards_pid) = process();
        let (mut job, jobs_pid) = process();
        let (mut handle, guards_end) = GuardHandle::played(guards_pid);
        assert_eq!(handle.known_child().unwrap(), Some(guards_pid));
        let started = FromGuard::Started { pid: jobs_pid };
        guards_end
            .send(&serde_json::to_vec(&started).unwrap(), None)
            .unwrap();
        assert_eq!(handle.recv().unwrap(), Some(Received::Message(started)));
        assert_eq!(handle.known_child().unwrap(), Some(guards_pid));
        end(&mut guard);
        handle.note_end(guards_pid, Status::Exited(0));
        assert_eq!(handle.known_child().unwrap(), Some(jobs_pid));
        let exited = FromGuard::Exited {
            status: Status::Exited(0),
            forced: false,
        };
        let mut reaped_by_guard = handle;
        reaped_by_guard.note(&exited);
        assert_eq!(reaped_by_guard.known_child().unwrap(), None);
        end(&mut job);
    }

    #[test]
    fn an_end_is_the_guards_the_jobs_or_a_strangers() {
        let (mut handle, _guards_end) = GuardHandle::played(7);
        handle.job = Some(8);
        handle.note_end(9, Status::Exited(9));
        assert_eq!((handle.status, handle.job), (None, Some(8)));
        handle.note_end(8, Status::Exited(8));
        assert_eq!((handle.status, handle.job), (None, None));
        handle.note_end(7, Status::Exited(3));
        assert_eq!(handle.status, Some(Status::Exited(3)));
        // Another process has got its pid: the job, for example.
        handle.job = Some(7);
        handle.note_end(7, Status::Exited(4));
        assert_eq!((handle.status, handle.job), (Some(Status::Exited(3)), None));
        assert_eq!(handle.try_wait().unwrap(), Some(Status::Exited(3)));
    }

    #[test]
    fn a_guard_that_has_ended_gets_no_signal() {
        let (mut other, its) = process();
        let (mut handle, _guards_end) = GuardHandle::played(its);
        handle.status = Some(Status::Exited(0));
        handle.signal_guard(SIGTERM).unwrap();
        handle.status = None;
        handle.signal_guard(SIGKILL).unwrap();
        assert_eq!(other.wait().unwrap().signal(), Some(SIGKILL));
    }
}
