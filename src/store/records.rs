//! What is over: runs, acts of operators, and the keys that are done.

use std::time::Duration;

use super::StoreError;
use crate::token::{ActRecord, ClientId, GroupName, OnceMark, Outcome, Recorded, RunRecord};

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

/// Keeps what is over.
pub trait Records {
    /// Writes a run that is over, whatever has become of its token, and makes its key done in the
    /// same transaction ([`RunRecord::makes_key_done`]). The store sets the time of the end if the
    /// run has none. What its own session said replaces *unknown*; nothing replaces that.
    ///
    /// # Errors
    /// If it is not known whether the run is written.
    fn record(&mut self, run: &RunRecord) -> Result<Recorded, StoreError>;

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

    /// Removes some of what is too old of a group's history and keys, by its own wall time and by
    /// the note of the pruning before ([`super::pruning`]): few rows at a time, so that no run waits for
    /// it. The newest run and the newest success stay.
    ///
    /// # Errors
    /// If the store can't be written.
    fn prune(&mut self, group: &GroupName, retention: Retention) -> Result<(), StoreError>;
}
