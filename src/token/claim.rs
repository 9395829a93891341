//! What a session asks for, and what it knows when it asks.

use std::time::Duration;

use super::incarnation::Memory;
use super::mutant::{Mutant, is_mutant};
use super::names::{ClientId, GroupName, SessionId};
use super::row::Row;
use super::time::StoreTime;
use super::timing::Timing;

/// The claimant of a group's token, and its terms.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claim {
    pub group: GroupName,
    /// The node's id.
    pub client: ClientId,
    pub session: SessionId,
    /// The configured primary, to be recorded when the group is first seen.
    pub expected: Option<ClientId>,
    /// The expected client takes the token back when it is idle.
    pub failback: bool,
    /// The session that this process runs inside of, proven by ancestry.
    pub nested_in: Option<SessionId>,
    /// The durations of the run.
    pub timing: Timing,
    /// What is recorded about the run; no decision about this claim uses it.
    pub about: About,
}

/// What is recorded about a run; no decision about its claim uses it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct About {
    pub host: Option<String>,
    /// The supervisor's pid on that host.
    pub pid: Option<i32>,
    /// The file whose locks prove that the run is alive.
    pub lock_file: Option<String>,
    /// The user's name for the run.
    pub label: Option<String>,
    /// The program's name.
    pub program: String,
    /// The key of `--once`.
    pub once_key: Option<String>,
    /// After a failed run the token prefers no client, and this one waits the head start.
    pub move_on_failure: bool,
}

/// One look at a group: the row, and what the reader knows besides.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// The row; `None` if the group has never been seen.
    pub row: Option<&'a Row>,
    /// The store's time when it read the row.
    pub now: &'a StoreTime,
    /// What the store may have forgotten.
    pub memory: &'a Memory,
    /// This session's position in the queue.
    pub position: QueuePosition,
    /// What this host can prove about the run in the row.
    pub evidence: &'a Evidence,
    /// How long the row's version has stood unchanged, at least, on the reader's own clock.
    pub unchanged_for: Duration,
    /// The session in the row has written while this session watched: however old the stamp is, the
    /// holder was alive when the version last changed.
    pub heard: bool,
}

/// A session's position in the queue for a token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct QueuePosition {
    /// How many waiters come before.
    pub ahead: usize,
    /// True if this session itself is a waiter.
    pub waiting: bool,
}

impl QueuePosition {
    /// True if this session is a waiter and none comes before it.
    pub const fn is_first(self) -> bool {
        self.waiting && self.ahead == 0
    }
}

/// What one host can prove about a run, by the locks in the file that the row names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum Evidence {
    #[default]
    None,
    /// Nothing of the run is alive.
    Dead,
    /// These processes of it are alive.
    Alive(Vec<String>),
}

impl Evidence {
    /// What two locks prove: the supervisor's own, and the one that the guard
    /// holds and every process of the job inherits.
    pub fn of_locks(run_lock_held: bool, job_lock_held: bool, holders: Vec<String>) -> Self {
        match (run_lock_held, job_lock_held) {
            (false, _) if is_mutant(Mutant::DeathOfSupervisorAlone) => Self::Dead,
            (_, true) => Self::Alive(holders),
            (false, false) => Self::Dead,
            // The supervisor is merely stopped and its job has ended. It delays no claimant once it
            // is silent; before that its death is not proven.
            (true, false) => Self::None,
        }
    }
}
