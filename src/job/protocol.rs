//! The protocol between a run and its guard: the settings at the fork, messages to the guard, and answers. Each
//! message is a packet of JSON.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::moment::Moment;
use crate::sys::clock::LocalClock;
use crate::sys::signals::Inherited;
use crate::sys::wait::Status;

/// The deadlines of the job, on the clock that both processes share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// The whole tree gets TERM; from then on no job is started.
    pub term_at: Moment,
    /// The whole tree is killed. Not before `term_at`.
    pub kill_at: Moment,
}

/// A message of the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToGuard {
    /// The token is being requested: the guard makes a process ready to become the job. The
    /// descriptor of this packet is the job's lock. The guard keeps it open as long as it lives.
    /// Sent before `Start`, or not at all.
    Lock {
        /// True if the job inherits the descriptor.
        inherit: bool,
    },
    /// The token is being requested, and `Start` comes by this time or not at all: then the guard
    /// leaves, and the job's lock with it. So a supervisor that is stopped before it starts the job
    /// holds up no other run. `None`: nothing is being requested any more.
    StartBy { at: Option<Moment> },
    /// Start the job. Accepted once.
    Start {
        /// The job's deadlines. `None`: there is no lease to guard (a nested run).
        deadline: Option<Deadline>,
        /// Variables to set in the job's environment: names and values.
        env: Vec<(String, String)>,
    },
    /// The job may run until a new deadline.
    Deadline {
        /// Replaces the earlier deadline.
        deadline: Deadline,
    },
    /// Send the job's own process a signal by its number, once: not if the signal was sent to the
    /// whole process group, so that the job has it already.
    Pass {
        /// The signal's number.
        signal: i32,
    },
    /// Begin to end the job, or end it sooner than ordered before.
    End {
        /// The whole tree is killed. A later time than one ordered before is ignored.
        kill_at: Moment,
        /// True if the whole tree gets TERM now. The lease is lost then: nothing is left behind.
        /// Otherwise the job has got its signal by `Pass`.
        term_tree: bool,
    },
    /// Kill the whole tree now.
    Kill,
}

/// A message of the guard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromGuard {
    /// The job's program runs.
    Started {
        /// The job's main process.
        pid: i32,
    },
    /// The job's program never ran. The guard's last message.
    NotStarted {
        /// How far the start got.
        stage: Stage,
        /// The system's errno; 0 if the reason is not the system's.
        errno: i32,
        /// The program, or the system call, that failed.
        what: String,
    },
    /// The answer to a deadline. The new deadline does not hold if the one before had passed.
    Ack,
    /// The answer to `End` or `Kill`.
    Ending,
    /// The deadline's `term_at` has passed without a new one, and the tree has got TERM. From then
    /// on deadlines are ignored.
    Expired,
    /// The job's main process has ended.
    Exited {
        status: Status,
        /// True if the guard had begun to end the whole tree before: by order, by deadline, or
        /// because the supervisor is gone. Otherwise the process ended by itself, or by a signal
        /// that was passed on.
        forced: bool,
    },
    /// The job's main process left others behind, and they are being ended.
    Leftovers {
        /// How many are visible. 0: there are some, and no time to count them, or /proc shows none.
        count: usize,
        /// /proc shows them. Processes that it does not show cannot be ended.
        seen: bool,
        /// The names of the first of them.
        names: Vec<String>,
    },
    /// These processes were killed and still exist. Sent at each change; empty once the last one
    /// has gone after all.
    Survivors {
        /// The first of them.
        processes: Vec<Survivor>,
    },
    /// No process of the job is left, or the rest is left alone by order. The guard's last message.
    Gone,
}

/// How far the start of a job got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Not at all: the deadline's `term_at` had passed.
    TooLate,
    /// The system cannot create a process, or what it needs.
    Fork,
    /// The program could not be executed: not found if the errno is ENOENT.
    Exec,
}

/// A process that could not be killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    /// The pid; 0 if invisible.
    pub pid: i32,
    /// The name; empty if invisible.
    pub name: String,
    /// Why it is still alive.
    pub why: Unkillable,
}

/// Why a process could not be killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unkillable {
    /// It belongs to another user (after sudo, for example).
    NotPermitted,
    /// It sleeps in the kernel uninterruptibly (in a hung file system, for example).
    Uninterruptible,
    /// It was killed a while ago and has not ended yet.
    NotYetGone,
    /// There are such processes, but /proc does not show them.
    Unseen,
}

/// What happens to processes that a job leaves behind when it ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftovers {
    /// They are ended.
    Kill,
    /// They live on, unless the lease is lost.
    Leave,
}

/// The guard's settings, fixed at its fork.
#[derive(Debug)]
pub struct GuardSettings {
    /// The job: its program, then its arguments.
    pub argv: Vec<OsString>,
    /// What becomes the job's stdout and stderr; `None`: those of this process. Neither the
    /// supervisor nor, once the job runs, the guard keeps it open.
    pub output: Option<OwnedFd>,
    /// What happens to processes that the job leaves behind.
    pub leftovers: Leftovers,
    /// The time between TERM and KILL, where no deadline is nearer.
    pub kill_grace: Duration,
    /// The signal dispositions that the job gets back.
    pub inherited: Inherited,
    /// The clock of the deadlines.
    pub clock: LocalClock,
}

impl GuardSettings {
    /// The job's program, as messages call it.
    pub fn program(&self) -> String {
        let name = self.argv.first().map(|name| name.to_string_lossy());
        name.unwrap_or_default().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let deadline = Deadline {
            term_at: Moment(Duration::from_nanos(1)),
            kill_at: Moment(Duration::MAX),
        };
        let start = ToGuard::Start {
            deadline: Some(deadline),
            env: vec![("NAME".to_owned(), "a\n\"b\u{e4}".to_owned())],
        };
        let packet = serde_json::to_vec(&start).unwrap();
        assert_eq!(serde_json::from_slice::<ToGuard>(&packet).unwrap(), start);
        let exited = FromGuard::Exited {
            status: Status::Signalled(64),
            forced: true,
        };
        let packet = serde_json::to_vec(&exited).unwrap();
        assert_eq!(
            serde_json::from_slice::<FromGuard>(&packet).unwrap(),
            exited
        );
    }
}
