//! The events, actions and notes that the parts of a run exchange.

use std::time::Duration;

use super::ending::{Ending, NotStarted, Why};
use crate::job::{Deadline, Survivor};
use crate::moment::Moment;
use crate::store::Request;
use crate::store::{Reading, StoreError};
use crate::sys::wait::Status;
use crate::token::{
    Clause, ClientId, Doubt, Evidence, Fence, GrantKind, Incarnation, OnceMark, Recorded, Refusal,
    Row, SessionId, StoreTime, Swapped, Verdict,
};

/// An event of a run.
#[derive(Debug, Clone)]
pub enum Event {
    /// Time passed.
    Tick,
    /// The answer to [`Request::Read`] or [`Request::Join`], and what this host can prove about the run in it.
    Looked(Result<(Box<Reading>, Evidence), StoreError>),
    /// The answer to [`Request::Leave`].
    Left(Result<(), StoreError>),
    /// The notifier has signalled: the token that is waited for may be free.
    Notified,
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
    /// The job's own process has ended. Other processes of its tree may be alive.
    JobExited {
        status: Status,
        /// The guard had begun to end the tree before that, by order or by deadline.
        forced: bool,
    },
    /// No process of the job is left, or the remaining ones are left alone by order.
    TreeGone,
    /// The guard has answered: it is neither stopped nor hung.
    GuardAnswered,
    /// The guard is gone and has not reported the end of the tree.
    GuardGone,
    /// tokenrun received a signal.
    Signal {
        signal: i32,
        /// True if it is a stop signal: TERM, INT, HUP or QUIT.
        stop: bool,
    },
}

/// An action that the machine wants.
#[derive(Debug, Clone)]
pub enum Action {
    /// Send a request to the store. One request is out at a time.
    Send(Request),
    /// Take the locks that prove that the run is alive, before the row names their file.
    TakeLocks,
    /// Have the guard start the job.
    StartJob {
        /// When the job must be gone; `None` under an outer session's lease.
        deadline: Option<Deadline>,
        /// What the job learns of its grant.
        granted: Granted,
    },
    /// Give the guard the new deadline.
    Extend(Deadline),
    /// Pass a signal on to the job's own process, unless it has received it already.
    Pass(i32),
    /// End the job's tree.
    End {
        /// TERM to every process of the tree now; otherwise its own process has received a stop
        /// signal already.
        term_tree: bool,
        /// KILL to every process of the tree.
        kill_at: Moment,
    },
    /// The guard does not answer: it may be stopped, so send it CONT.
    ContinueGuard,
    /// The guard is gone or counts as gone: end it and the tree from here, then report that it is
    /// gone.
    EndWithoutGuard,
    /// Report a note to people.
    Say(Note),
}

/// The guard's news of the job's processes, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuardNews {
    /// The job left these processes behind, and they are being ended.
    Leftovers {
        /// How many; 0 if unknown.
        count: usize,
        /// /proc shows them, so they can be ended.
        seen: bool,
        /// The names of some.
        names: Vec<String>,
    },
    /// These processes could not be killed; empty once they are gone after all.
    Survivors(Vec<Survivor>),
}

/// The grant, as the job learns of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// The session that holds the token.
    pub session: SessionId,
    /// The fencing token.
    pub fence: Fence,
    /// How the client got the token; `None` under an outer session's lease.
    pub kind: Option<GrantKind>,
    /// The client that the token belonged to before, if another.
    pub previous_client: Option<ClientId>,
}

/// What people may want to know. The wording is decided elsewhere.
#[derive(Debug, Clone)]
pub enum Note {
    /// A look at the group and the rule's decision. For people who want every step.
    Decided {
        row: Option<Box<Row>>,
        /// The store's time.
        now: StoreTime,
        clause: Clause,
        verdict: Verdict,
    },
    /// Waiting before the next look (an observation or a head start).
    Staying {
        row: Box<Row>,
        /// The store's time.
        now: StoreTime,
        clause: Clause,
        /// True if an unknown age is observed; otherwise it is a head start.
        observing: bool,
        wait: Duration,
    },
    /// The store is observed before any grant: it may have forgotten one. Sent once for each
    /// incarnation.
    ObservingStore {
        /// The store's incarnation; `None`: the store does not report one.
        incarnation: Option<Incarnation>,
        /// Why it may have forgotten a grant.
        doubt: Doubt,
        /// The store's time.
        now: StoreTime,
        /// How much longer it is observed.
        wait: Duration,
    },
    /// Refused for now: in the queue until that changes. Sent after every look.
    Queued {
        row: Option<Box<Row>>,
        /// The store's time.
        now: StoreTime,
        why: Refusal,
        /// How many waiters come before.
        ahead: usize,
        /// How much longer the session waits, at most.
        left: Option<Duration>,
        /// The wait has just begun, or the store answers again.
        newly: bool,
    },
    /// The store is unusable, and the session waits for it.
    StoreAway { error: StoreError },
    /// The wait is over: the session has the token.
    Waited { waited: Duration },
    /// No locks could be taken: nothing will prove the death of this run.
    NoLocks { why: String },
    /// The session has the token.
    Acquired {
        granted: Granted,
        /// The session that was running and lost the token.
        vanished: Option<SessionId>,
        /// That session was provably dead; otherwise silent.
        proven: bool,
    },
    /// /proc is missing or shows another pid namespace, so that a part of the job can't be found.
    /// Sent before there is a job.
    Blind,
    /// The job runs.
    Started,
    /// A heartbeat was written.
    Renewed {
        /// How long the lease can be trusted, from now.
        trusted_for: Duration,
    },
    /// Another client wrote the row, and this session's swap is still in it.
    Adopted,
    /// The store is unusable; the job goes on.
    TroubleBegan {
        error: StoreError,
        /// How long the job may go on without it.
        job_ends_in: Option<Duration>,
    },
    /// The store is usable again.
    TroubleEnded,
    /// Several servers of the store accept writes, so it is two stores.
    Split {
        /// Those servers, the one in use first.
        primaries: Vec<String>,
    },
    /// The job is being ended.
    Stopping {
        why: Why,
        /// When the job is killed, from now.
        kill_in: Duration,
    },
    /// The job ended after the token had been lost.
    LostAfterEnd,
    /// The run is over, and that could not be recorded.
    NotRecorded {
        /// The store's last error.
        error: Option<StoreError>,
        /// The job succeeded, and that would have made a key of `--once` done.
        once: bool,
    },
    /// What the job printed may not be stored.
    OutputNotKept { error: StoreError },
    /// The run is over.
    Ended(Ending),
}
