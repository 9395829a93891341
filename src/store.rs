//! Stores: whatever can compare-and-swap a row and tell the time.
//!
//! A store decides nothing. The rule is in [`crate::token`]; a store carries a
//! swap out if the row's version is still the one that was read and the swap
//! has not expired, both judged in one transaction, and puts its own time into
//! the stamps that the swap names.

pub mod checkup;
pub mod filesystem;
pub mod history;
pub mod kv;
pub mod open;
pub mod postgres;
pub mod pruning;
pub mod sql;
pub mod sqlite;
pub mod url;
pub mod worker;

#[cfg(test)]
pub(crate) mod conformance;
#[cfg(test)]
pub(crate) mod model;

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use self::worker::{Answer, Request};
use crate::token::document;
use crate::token::{
    ActRecord, ClientId, Fence, GroupName, Memory, NoteSwap, OnceMark, Outcome, Place, Recorded,
    ResourceName, Row, RunRecord, SessionId, StoreTime, Swap, Swapped, Waiter,
};

/// What one read of a group gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The row; `None` if the group has never been seen.
    pub row: Option<Row>,
    /// The store's time at the read.
    pub now: StoreTime,
    /// Those in line, by arrival; some of them may be dead.
    pub line: Vec<Place>,
    /// What the store may have forgotten.
    pub memory: Memory,
}

/// A descriptor that becomes readable when the token may have become free. The store's
/// next call takes back what made it so.
#[derive(Debug, Clone)]
pub struct Bell(pub Arc<OwnedFd>);

/// Every group, at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The rows, by group.
    pub rows: Vec<Row>,
    /// Those that can't be read: they hide no others.
    pub unreadable: Vec<Unreadable>,
    /// The store's time.
    pub now: StoreTime,
    /// Everybody in line, by group; some of them may be dead.
    pub lines: Vec<(GroupName, Place)>,
}

impl Listing {
    /// How many wait for a group's token.
    #[must_use]
    pub fn waiters(&self, group: &GroupName) -> usize {
        let waits = |(of, place): &&(GroupName, Place)| of == group && place.is_alive(&self.now);
        self.lines.iter().filter(waits).count()
    }
}

/// A row that no tokenrun wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its group, as far as that can be read.
    pub group: String,
    /// What is wrong with it.
    pub error: StoreError,
}

/// Which runs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunQuery {
    /// Of this group only.
    pub group: Option<GroupName>,
    /// Of this client only.
    pub client: Option<ClientId>,
    /// That ended like this.
    pub outcome: Option<Outcome>,
    /// Started at this time or later, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// At most so many, the newest.
    pub limit: Option<u32>,
}

impl RunQuery {
    /// Whether a run is one of those that are asked for, but for the limit.
    #[must_use]
    pub fn wants(&self, run: &RunRecord) -> bool {
        self.group.as_ref().is_none_or(|group| *group == run.group)
            && self.client.as_ref().is_none_or(|it| *it == run.client)
            && self.outcome.is_none_or(|outcome| outcome == run.outcome)
            && self.since_ms.is_none_or(|since| run.started_at_ms >= since)
    }
}

/// How long what is over is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Runs, and acts of operators.
    pub history: Duration,
    /// Keys of `--once`.
    pub once: Duration,
}

/// How many runs, acts and keys are looked at in one go to see whether they are too old.
pub const PRUNE_BATCH: u32 = 200;

/// Which acts of operators to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActQuery {
    /// On this group only.
    pub group: Option<GroupName>,
    /// At this time or later, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// At most so many, the newest.
    pub limit: Option<u32>,
}

/// How a resource's mark answered a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advanced {
    /// The mark is this fence now.
    Stored,
    /// The mark is this higher one.
    Behind(Fence),
}

/// Looks whether a store has become two: of its servers one may be written to. It waits for
/// servers, so it is never asked on a thread that holds a deadline.
pub trait Lookout: Send + Sync {
    /// The servers that can be written to, the one in use first, if they are several; none if no
    /// other can be. `None` if that can't be told now, because one of them does not answer.
    fn primaries(&self) -> Option<Vec<String>>;
}

/// A database that holds tokens. Calls block, each for at most the time-out
/// that the store was opened with; they are made from one thread at a time.
pub trait Store: Send {
    /// The store's name in messages. It never holds a password.
    fn name(&self) -> &str;

    /// Carries a request out if that takes no waiting worth mentioning. `None`: it
    /// would have to wait, and nothing happened. A store across a network never can.
    fn at_once(&mut self, request: &Request) -> Option<Answer> {
        let _ = request;
        None
    }

    /// Reads a group's row together with the store's time.
    ///
    /// # Errors
    /// If the store can't be read.
    fn read(&mut self, group: &GroupName) -> Result<Reading, StoreError>;

    /// Puts a session at the end of the queue, or renews the sign of life of one that is in it,
    /// which keeps its place. Removes sessions without a sign of life for a minute. Then reads.
    /// After `expiry` it only reads: the sender of a late request may be dead.
    ///
    /// # Errors
    /// If the store can't be used. Whether the session is in line is not known then.
    fn join(
        &mut self,
        group: &GroupName,
        waiter: &Waiter,
        expiry: &StoreTime,
    ) -> Result<Reading, StoreError>;

    /// Puts a session out of the line, if it is in it.
    ///
    /// # Errors
    /// If the store can't be used.
    fn leave(&mut self, group: &GroupName, session: &SessionId) -> Result<(), StoreError>;

    /// What tells who is in line that the token may have become free: asked after each
    /// [`Self::join`]. `None`: nothing does, and looking now and then is all that helps.
    fn bell(&mut self) -> Option<Bell> {
        None
    }

    /// What sees that another server of this store's can be written to as well. `None`: there is
    /// no other.
    fn lookout(&self) -> Option<Arc<dyn Lookout>> {
        None
    }

    /// Writes a new row, and what the swap carries beside it, if the version is
    /// still the one that was read and the swap has not expired.
    ///
    /// # Errors
    /// If it is not known whether the swap happened, or will.
    fn swap(&mut self, swap: &Swap) -> Result<Swapped, StoreError>;

    /// Writes the note of the store's incarnation, if the last one is still the one that was read
    /// and the swap has not expired.
    ///
    /// # Errors
    /// If it is not known whether the note is written.
    fn note(&mut self, swap: &NoteSwap) -> Result<Swapped, StoreError>;

    /// Writes a run that is over, whatever has become of its token, and makes its key done in the
    /// same transaction ([`RunRecord::makes_key_done`]). The store sets the time of the end if the
    /// run has none. What its own session said replaces *unknown*; nothing replaces that.
    ///
    /// # Errors
    /// If it is not known whether the run is written.
    fn record(&mut self, run: &RunRecord) -> Result<Recorded, StoreError>;

    /// Lists every group.
    ///
    /// # Errors
    /// If the store can't be read.
    fn list(&mut self) -> Result<Listing, StoreError>;

    /// Lists runs that are over, the newest first: by fence within a group, by start across groups.
    ///
    /// # Errors
    /// If the store can't be read.
    fn runs(&mut self, query: &RunQuery) -> Result<Vec<RunRecord>, StoreError>;

    /// Lists acts of operators, the newest first.
    ///
    /// # Errors
    /// If the store can't be read.
    fn acts(&mut self, query: &ActQuery) -> Result<Vec<ActRecord>, StoreError>;

    /// The run that has made a key of `--once` done, if one has.
    ///
    /// # Errors
    /// If the store can't be read.
    fn once(&mut self, group: &GroupName, key: &str) -> Result<Option<OnceMark>, StoreError>;

    /// Lists the keys that are done, of one group or of all, the newest first.
    ///
    /// # Errors
    /// If the store can't be read.
    fn once_marks(&mut self, group: Option<&GroupName>) -> Result<Vec<OnceMark>, StoreError>;

    /// Sets a resource's mark, the highest fence that has used it, to this fence, unless it
    /// is higher already.
    ///
    /// # Errors
    /// If it is not known whether the mark is set.
    fn advance(&mut self, resource: &ResourceName, fence: Fence) -> Result<Advanced, StoreError>;

    /// Removes some of what is too old of a group's history and keys, by its own wall time and by
    /// the note of the pruning before ([`pruning`]): few rows at a time, so that nobody waits for
    /// it. The newest run and the newest success stay.
    ///
    /// # Errors
    /// If the store can't be written.
    fn prune(&mut self, group: &GroupName, retention: Retention) -> Result<(), StoreError>;
}

/// Why this program neither grants a token nor acts on it: its document needs a newer one. A holder
/// goes on, and carries the document as it is.
///
/// # Errors
/// If the document needs a newer program.
pub fn check_reader(row: &Row) -> Result<(), StoreError> {
    if !row.document.needs_newer_program() {
        return Ok(());
    }
    Err(StoreError::misconfigured(format!(
        "the token of group {:?} is for programs that know version {} of it or later, and this tokenrun knows {}",
        row.group.as_str(),
        row.document.reader,
        document::VERSION
    )).remedy("install a newer tokenrun"))
}

/// What kind of trouble a store is in; it decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// It can't be used now; later may be better. Whether what it was asked has happened, or
    /// will, is not known.
    Unavailable,
    /// It could not be asked, or it refuses for now. Nothing happened; later may be better.
    Refused,
    /// Others hold its locks. Nothing happened.
    Locked,
    /// A transaction of another program holds this very token. Nothing happened.
    Held,
    /// It is not the one any more that was opened: others may be using another in
    /// its place, and nothing excludes them.
    Gone,
    /// It refused permission.
    Denied,
    /// It is no store of ours, or not as it must be.
    Misconfigured,
}

/// The store could not be used. Losing a token is not that. It is shown in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreError {
    /// What kind of trouble it is.
    pub trouble: Trouble,
    /// What is wrong, and in which store.
    pub what: String,
    /// What to do, if that is known.
    pub remedy: Option<String>,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for StoreError {}

impl StoreError {
    /// The same, with what to do.
    #[must_use]
    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: Some(remedy.into()),
            ..self
        }
    }

    /// A store that gave no clear answer.
    pub fn unavailable(what: impl Into<String>) -> Self {
        Self::of(Trouble::Unavailable, what)
    }

    /// A store that was not asked, or refuses for now.
    pub fn refused(what: impl Into<String>) -> Self {
        Self::of(Trouble::Refused, what)
    }

    /// The same, where it is known that nothing has happened.
    #[must_use]
    pub fn without_effect(self) -> Self {
        match self.trouble {
            Trouble::Unavailable => Self {
                trouble: Trouble::Refused,
                ..self
            },
            _ => self,
        }
    }

    /// A store whose locks others hold.
    pub fn locked(what: impl Into<String>) -> Self {
        Self::of(Trouble::Locked, what)
    }

    /// A token that a transaction of another program holds.
    pub fn held(what: impl Into<String>) -> Self {
        Self::of(Trouble::Held, what)
    }

    /// A store that is not the one any more that was opened.
    pub fn gone(what: impl Into<String>) -> Self {
        Self::of(Trouble::Gone, what)
    }

    /// A store that refused permission.
    pub fn denied(what: impl Into<String>) -> Self {
        Self::of(Trouble::Denied, what)
    }

    /// Something that is no store of ours, or not as it must be.
    pub fn misconfigured(what: impl Into<String>) -> Self {
        Self::of(Trouble::Misconfigured, what)
    }

    fn of(trouble: Trouble, what: impl Into<String>) -> Self {
        Self {
            trouble,
            what: what.into(),
            remedy: None,
        }
    }
}
