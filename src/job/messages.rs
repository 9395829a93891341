//! Everything that supervisor and guard say to each other, a packet of JSON each.

use serde::{Deserialize, Serialize};

use crate::moment::Moment;
use crate::sys::wait::Status;

/// Until when the job may run, on the clock that both processes share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// The whole tree gets TERM; no job is started from here on.
    pub term_at: Moment,
    /// The whole tree is killed. Not before `term_at`.
    pub kill_at: Moment,
}

/// What the supervisor says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToGuard {
    /// The token is being asked for: a process is made ready to become the job. The
    /// descriptor that comes with this packet is the job's lock. The guard
    /// keeps it open as long as it lives. Sent before `Start`, or not at all.
    Lock {
        /// Whether the job inherits the descriptor.
        inherit: bool,
    },
    /// Start the job. Heard once.
    Start {
        /// Until when it may run. `None`: there is no lease to guard (a nested run).
        deadline: Option<Deadline>,
        /// Variables to set in the job's environment: names and values.
        env: Vec<(String, String)>,
    },
    /// The job may run until a new deadline.
    Deadline {
        /// Comes back in [`FromGuard::Ack`].
        seq: u64,
        /// In place of the one before.
        deadline: Deadline,
    },
    /// Send the job's own process a signal, by its number, once: not if the signal
    /// was sent to the whole process group, so that the job has it already.
    Pass {
        /// The signal's number.
        signal: i32,
    },
    /// Begin to end the job, or end it sooner than was asked before.
    End {
        /// The whole tree is killed. A later moment than one asked before is not heard.
        kill_at: Moment,
        /// Whether the whole tree gets TERM now. The lease is lost then: nothing is
        /// left behind. Otherwise the job has got its signal by `Pass`.
        term_tree: bool,
    },
    /// Kill the whole tree now.
    Kill,
}

/// What the guard says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromGuard {
    /// The job's program runs.
    Started {
        /// The job's main process.
        pid: i32,
    },
    /// The job's program never ran. The guard's last word.
    NotStarted {
        /// How far it came.
        stage: Stage,
        /// The system's reason, an errno; 0 if it is none of the system's.
        errno: i32,
        /// The program, or the call, that failed.
        what: String,
    },
    /// A deadline was heard. It does not hold if the one before had passed.
    Ack {
        /// That of [`ToGuard::Deadline`].
        seq: u64,
    },
    /// `End` or `Kill` was heard.
    Ending,
    /// The deadline's `term_at` has passed without news, and the tree has got TERM.
    /// From here on no deadline is heard.
    Expired,
    /// The job's main process has ended.
    Exited {
        status: Status,
        /// The guard had begun to end the whole tree before: by order, by deadline,
        /// or because the supervisor is gone. Otherwise it ended by itself, or by a
        /// signal that was passed on.
        forced: bool,
    },
    /// The job's main process left others behind, and they are being ended.
    Leftovers {
        /// How many can be seen. 0: there are some, but /proc does not show them.
        count: usize,
        /// The names of the first of them.
        names: Vec<String>,
    },
    /// These processes were killed and are still there. Said at each change; empty
    /// once the last has gone after all.
    Survivors {
        /// The first of them.
        processes: Vec<Survivor>,
    },
    /// Nothing of the job is left, or what is left was to be left. The guard's last word.
    Gone,
}

/// How far the start of a job came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Nothing was tried: the deadline's `term_at` had passed.
    TooLate,
    /// The system refused a process, or what it needs.
    Fork,
    /// The program could not be executed: not found if the errno is ENOENT.
    Exec,
}

/// A process that could not be killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    /// Its pid; 0 for those that can't be seen.
    pub pid: i32,
    /// Its name; empty for those that can't be seen.
    pub name: String,
    /// Why it lives.
    pub why: Unkillable,
}

/// Why a process could not be killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unkillable {
    /// It is another user's (after sudo, say).
    NotPermitted,
    /// It sleeps in the kernel and can't be disturbed (a hung file system, say).
    Uninterruptible,
    /// It was killed a while ago and has not ended yet.
    NotYetGone,
    /// There are such processes, but /proc does not show them.
    Unseen,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn messages_survive_the_way() {
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
