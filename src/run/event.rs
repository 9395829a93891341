//! Everything that the parts of a run say to each other.

use std::time::Duration;

use super::ending::{Ending, NotStarted, Why};
use crate::job::messages::{Deadline, Survivor};
use crate::moment::Moment;
use crate::store::Request;
use crate::store::{Reading, StoreError};
use crate::sys::wait::Status;
use crate::token::{
    Clause, ClientId, Doubt, Evidence, Fence, GrantKind, Incarnation, OnceMark, Recorded, Refusal,
    Row, SessionId, StoreTime, Swapped, Verdict,
};

/// What happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// Time passed.
    Tick,
    /// The answer to [`Request::Read`] or [`Request::Join`], and what this host can prove about the run in it.
    Looked(Result<(Box<Reading>, Evidence), StoreError>),
    /// The answer to [`Request::Leave`].
    Left(Result<(), StoreError>),
    /// The token that is waited for may have become free.
    Rung,
    /// The answer to [`Action::TakeLocks`]: the file's name, or why there is none.
    LocksTaken(Result<String, String>),
    /// The answer to [`Request::Swap`] or [`Request::Note`].
    Swapped(Result<Swapped, StoreError>),
    /// The answer to [`Request::Once`].
    OnceLooked(Result<Option<Box<OnceMark>>, StoreError>),
    /// The answer to [`Request::Record`].
    Recorded(Result<Recorded, StoreError>),
    /// The guard has started the job.
    JobStarted,
    /// The guard could not start the job.
    JobNotStarted(NotStarted),
    /// The job's own process has ended. Others of its tree may be alive.
    JobExited {
        status: Status,
        /// The guard had begun to end the tree before that, by order or by deadline.
        forced: bool,
    },
    /// No process of the job is left, or they were told to be left alone.
    TreeGone,
    /// The guard has answered: it is neither stopped nor hung.
    GuardAnswered,
    /// The guard is gone without having said that the tree is.
    GuardGone,
    /// tokenrun received a signal.
    Signal {
        signal: i32,
        /// Whether it asks for the end: TERM, INT, HUP or QUIT.
        stop: bool,
    },
}

/// What is to be done.
#[derive(Debug, Clone)]
pub enum Action {
    /// Ask the store. One request is out at a time.
    Send(Request),
    /// Take the locks that prove that the run lives, before the row names their file.
    TakeLocks,
    /// Have the guard start the job.
    StartJob {
        /// When it must be gone; `None` under an outer session's lease.
        deadline: Option<Deadline>,
        /// What the job may know.
        granted: Granted,
    },
    /// Tell the guard the new deadline.
    Extend(Deadline),
    /// Pass a signal on to the job's own process, unless it has received it already.
    Pass(i32),
    /// End the job's tree.
    End {
        /// TERM to every process of the tree now; else its own process was told already.
        term_tree: bool,
        /// KILL to every process of the tree.
        kill_at: Moment,
    },
    /// The guard does not answer: it may have been stopped, let it continue.
    ContinueGuard,
    /// The guard is gone, or as good as gone: end it and the tree from here, then report that it is gone.
    EndWithoutGuard,
    /// Tell people.
    Say(Note),
}

/// What the guard says of the job's processes, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuardNews {
    /// The job left these behind, and they are being ended.
    Leftovers {
        /// How many; 0 if that can't be seen.
        count: usize,
        /// The names of some.
        names: Vec<String>,
    },
    /// These could not be killed; empty once they are gone after all.
    Survivors(Vec<Survivor>),
}

/// The grant, as the job may know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// The session that holds the token.
    pub session: SessionId,
    /// The fencing token.
    pub fence: Fence,
    /// How the client came by the token; `None` under an outer session's lease.
    pub kind: Option<GrantKind>,
    /// Whose it was before, if another's.
    pub previous_client: Option<ClientId>,
}

/// What people may want to know. What each becomes in words is not decided here.
#[derive(Debug, Clone)]
pub enum Note {
    /// A look at the group, and what the rule said. For those who want every step.
    Decided {
        /// The row that was seen.
        row: Option<Box<Row>>,
        /// The store's time.
        now: StoreTime,
        /// The clause that decided.
        clause: Clause,
        /// What it said.
        verdict: Verdict,
    },
    /// Waiting before the next look (an observation or a head start).
    Staying {
        /// The row that was seen.
        row: Box<Row>,
        /// The store's time.
        now: StoreTime,
        /// The clause that decided.
        clause: Clause,
        /// Whether it is an age that can't be told; else a head start.
        observing: bool,
        /// For how long.
        wait: Duration,
    },
    /// Watching the store before anything is granted: it may have forgotten a grant. Said once for
    /// each incarnation.
    ObservingStore {
        /// Which incarnation it is; `None`: it does not say.
        incarnation: Option<Incarnation>,
        /// Why it may have.
        doubt: Doubt,
        /// The store's time.
        now: StoreTime,
        /// For how much longer.
        wait: Duration,
    },
    /// Refused for now: in the queue until that changes. Told after every look.
    Queued {
        /// The row that was seen.
        row: Option<Box<Row>>,
        /// The store's time.
        now: StoreTime,
        /// Why not now.
        why: Refusal,
        /// How many have come before and wait too.
        ahead: usize,
        /// How much longer it will be waited, at most.
        left: Option<Duration>,
        /// It has just begun.
        newly: bool,
    },
    /// The store can't be used, and is waited for.
    StoreAway {
        /// What it said.
        error: StoreError,
    },
    /// The wait is over: the token is ours.
    Waited {
        /// How long it was.
        waited: Duration,
    },
    /// No locks could be taken: that this run is dead will be proven by nothing.
    NoLocks { why: String },
    /// The token is ours.
    Acquired {
        granted: Granted,
        /// The session that was running when it was taken over.
        vanished: Option<SessionId>,
        /// It was provably dead; else silent.
        proven: bool,
    },
    /// /proc is missing or shows another pid namespace, so that a part of the job can't
    /// be found. Said before there is one.
    Blind,
    /// The job runs.
    Started,
    /// A heartbeat was written.
    Renewed {
        /// Until when the lease can be trusted, from now.
        trusted_for: Duration,
    },
    /// Another wrote the row, and this session's swap is in it still.
    Adopted,
    /// The store can't be used; the job goes on.
    TroubleBegan {
        /// What it said.
        error: StoreError,
        /// How long the job may go on without it.
        job_ends_in: Option<Duration>,
    },
    /// The store can be used again.
    TroubleEnded,
    /// Each of these servers of the store can be written to, so it is two stores.
    Split {
        /// The one in use first.
        primaries: Vec<String>,
    },
    /// The job is being ended.
    Stopping {
        why: Why,
        /// When it is killed, from now.
        kill_in: Duration,
    },
    /// The job ended while the token was already another's.
    LostAfterEnd,
    /// The run is over, and that could not be written down.
    NotRecorded {
        /// What the store said last.
        error: Option<StoreError>,
        /// The job succeeded, and with that a key of `--once` would be done.
        once: bool,
    },
    /// The run is over.
    Ended(Ending),
}
