//! The supervisor's side: a guard, as a value.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::adopted::Adopted;
use super::guard;
use super::killing::Killing;
use super::messages::{FromGuard, Survivor, ToGuard};
use super::reaping::Reaping;
use super::settings::GuardSettings;
use super::tree::Tree;
use crate::moment::Moment;
use crate::sys::clock::LocalClock;
use crate::sys::errno::Errno;
use crate::sys::process::{self, Forked, become_subreaper, exit_now, fork, signal_child};
use crate::sys::socket::{Packet, Packets};
use crate::sys::wait::{self, Status, Waited};

/// A guard's process. Dropped, it takes the supervisor for gone and ends its job.
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

/// What came from the guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    Message(FromGuard),
    /// The guard is gone; said again each time. If `Gone` or `NotStarted` did not
    /// come before, it was killed: see [`GuardHandle::end_tree_without_guard`].
    Closed,
}

/// How far the end of a job without a guard has come.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum TreeEnd {
    /// Nothing of it is left, nor of the guard.
    Gone,
    /// There is somebody left: to be called again at `again_at`, or at a SIGCHLD.
    Ending {
        again_at: Moment,
        /// Those that could not be killed, if they are others than said last.
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
    /// The system refused a process (EAGAIN, ENOMEM) or descriptors (EMFILE, ENFILE).
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
                // Or the guard would never hear that the supervisor is gone.
                drop(socket);
                let work = AssertUnwindSafe(|| guard::run(guards_end, &settings));
                // Under no circumstances may a guard return into its supervisor's code.
                exit_now(match catch_unwind(work) {
                    Ok(Ok(())) => 0,
                    Ok(Err(_)) => 71,
                    Err(_) => 70,
                })
            }
        }
    }

    /// What to poll for messages.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The guard's pid.
    #[must_use]
    pub const fn pid(&self) -> i32 {
        self.pid
    }

    /// Sends a message, without ever waiting.
    ///
    /// # Errors
    /// `WouldBlock` if the guard has not read what was sent before (it does not
    /// answer), `BrokenPipe` if it is gone; EMSGSIZE for an environment of more than
    /// some 200 KiB.
    pub fn send(&mut self, message: &ToGuard) -> io::Result<()> {
        self.socket.send(&serde_json::to_vec(message)?, None)
    }

    /// Hands the job's lock over to the guard, which holds it as long as it lives;
    /// the job inherits it if `inherit`. To be sent before `Start`.
    ///
    /// # Errors
    /// As [`GuardHandle::send`].
    pub fn send_lock(&mut self, lock: BorrowedFd<'_>, inherit: bool) -> io::Result<()> {
        let message = serde_json::to_vec(&ToGuard::Lock { inherit })?;
        self.socket.send(&message, Some(lock))
    }

    /// The next message; `None` if there is none now.
    ///
    /// # Errors
    /// The system is out of memory, or a packet is no message.
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
            // The guard has reaped it: its pid may become another's.
            FromGuard::Exited { .. } => self.job = None,
            FromGuard::NotStarted { .. }
            | FromGuard::Ack { .. }
            | FromGuard::Ending
            | FromGuard::Expired
            | FromGuard::Leftovers { .. }
            | FromGuard::Survivors { .. }
            | FromGuard::Gone => {}
        }
    }

    /// How the guard ended; `None` if it has not. Reaps it; asked again, it gives
    /// the same answer.
    ///
    /// # Errors
    /// ECHILD if somebody else has reaped it.
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

    /// Reaps children of this process that have ended, those that it was given as a
    /// subreaper or as PID 1 too: a batch, if there are many, to be called again at
    /// [`Self::reap_at`]. Says whether there may be any child left.
    ///
    /// # Errors
    /// What waitpid(2) says; it has no reason to.
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

    /// When children that have ended are to be reaped.
    #[must_use]
    pub const fn reap_at(&self) -> Option<Moment> {
        self.reaping.next()
    }

    /// Notes which children of this process are not the job's. To be called now and
    /// then while the guard lives.
    pub fn note_strangers(&mut self) {
        if self.status.is_none() {
            self.adopted.look_again(self.pid);
        }
    }

    /// Notes a child of this process, forked after the guard, that is not the job's.
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

    /// Sends the guard itself a signal by its number: CONT for one that was
    /// stopped, KILL for one that does not answer. Nothing happens if it has ended.
    ///
    /// # Errors
    /// What kill(2) says; it has no reason to.
    pub fn signal_guard(&self, signal: i32) -> io::Result<()> {
        match self.status {
            Some(_) => Ok(()),
            None => signal_child(self.pid, signal),
        }
    }

    /// Kills what is left of the guard and its job: for when the guard was killed,
    /// or does not answer. Then reaps what has ended. Does not wait: to be called again
    /// until it says that everything is gone.
    ///
    /// # Errors
    /// What waitpid(2) says; it has no reason to.
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

    /// Whether all that is left belongs to others, as far as that can be seen.
    fn has_left_strangers_only(&self) -> io::Result<bool> {
        if self.adopted.is_everyone() || self.status.is_none() {
            return Ok(false);
        }
        let known_child = self.known_child()?;
        let belongs = |child: &_| self.adopted.belongs(child);
        let tree = Tree::new(process::pid(), known_child, false, &belongs);
        Ok(tree.is_empty().unwrap_or(known_child.is_none()))
    }

    /// A child of this process whose pid is its own: the guard while it was not reaped,
    /// or the job's main process once it was adopted.
    fn known_child(&self) -> io::Result<Option<i32>> {
        Ok(match (self.status, self.job) {
            (None, _) => Some(self.pid),
            (Some(_), Some(job)) => matches!(wait::try_wait(job)?, Waited::Running).then_some(job),
            (Some(_), None) => None,
        })
    }
}
