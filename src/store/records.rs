//! Finished runs and their output, refused runs, acts of operators, the keys that are done, and the marks of
//! resources: the highest fence that has used each.

use std::time::Duration;

use super::StoreError;
use crate::token::{
    ActRecord, ClientId, Fence, GroupName, OnceMark, Outcome, OutputLimits, OutputRecord, Recorded,
    RefusalRecord, RefusalTotal, ResourceName, RunRecord, WallTime,
};

/// A query of runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunQuery {
    /// In this group only.
    pub group: Option<GroupName>,
    /// By this client only.
    pub client: Option<ClientId>,
    /// With one of these outcomes only; empty for any.
    pub outcomes: Vec<Outcome>,
    /// Started at this time or later.
    pub since: Option<WallTime>,
    /// Started before this time.
    pub until: Option<WallTime>,
    /// At most so many, the newest.
    pub limit: Option<u32>,
}

impl RunQuery {
    /// True if a run matches, regardless of the limit.
    pub fn wants(&self, run: &RunRecord) -> bool {
        self.group.as_ref().is_none_or(|group| *group == run.group)
            && self.client.as_ref().is_none_or(|it| *it == run.client)
            && (self.outcomes.is_empty() || self.outcomes.contains(&run.outcome))
            && self.since.is_none_or(|since| run.started_at >= since)
            && self.until.is_none_or(|until| run.started_at < until)
    }
}

/// How long finished records are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Runs, refused runs, and acts of operators.
    pub history: Duration,
    /// Keys of `--once`.
    pub once: Duration,
    /// The output of runs.
    pub outputs: OutputLimits,
}

/// How many runs and keys one pruning checks.
pub const PRUNE_BATCH: u32 = 200;

/// How many outputs one pruning checks: they may be long. More than the short runs from one pruning to the
/// next, so that no outputs are left over.
pub const OUTPUT_BATCH: u32 = 32;

/// A query of acts of operators.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActQuery {
    /// On this group only.
    pub group: Option<GroupName>,
    /// At this time or later.
    pub since: Option<WallTime>,
    /// Before this time.
    pub until: Option<WallTime>,
    /// At most so many, the newest.
    pub limit: Option<u32>,
}

/// A query of refusals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefusalQuery {
    /// In this group only.
    pub group: Option<GroupName>,
    /// Whose last is at this time or later.
    pub since: Option<WallTime>,
    /// Whose first is before this time.
    pub until: Option<WallTime>,
    /// At most so many, the newest.
    pub limit: Option<u32>,
}

impl ActQuery {
    /// True if an act matches, regardless of the limit.
    pub fn wants(&self, act: &ActRecord) -> bool {
        self.group.as_ref().is_none_or(|group| *group == act.group)
            && self.since.is_none_or(|since| act.at >= since)
            && self.until.is_none_or(|until| act.at < until)
    }
}

impl RefusalQuery {
    /// True if a record matches, regardless of the limit.
    pub fn wants(&self, refusal: &RefusalRecord) -> bool {
        self.group.as_ref().is_none_or(|it| *it == refusal.group)
            && self.since.is_none_or(|since| refusal.last_at >= since)
            && self.until.is_none_or(|until| refusal.first_at < until)
    }
}

/// Keeps finished records.
pub trait Records {
    /// Writes a finished run, whatever has happened to its token, and makes its key done in the
    /// same transaction ([`RunRecord::makes_key_done`]). The store sets the time of the end if the
    /// run has none. A record by the run's own session replaces *unknown*; no record replaces that
    /// one.
    ///
    /// # Errors
    /// If it is unknown whether the run is written.
    fn record(&mut self, run: &RunRecord) -> Result<Recorded, StoreError>;

    /// Lists finished runs, the newest first: by fence within a group, by start across groups.
    fn runs(&mut self, query: &RunQuery) -> Result<Vec<RunRecord>, StoreError>;

    /// Lists acts of operators, the newest first.
    fn acts(&mut self, query: &ActQuery) -> Result<Vec<ActRecord>, StoreError>;

    /// Records a refused run, with the store's time: as [`RefusalRecord::after`] says, a record
    /// grows, or nothing is written. Its commit need not survive a power cut.
    ///
    /// # Errors
    /// If it is unknown whether it is recorded.
    fn refuse(&mut self, refusal: &RefusalRecord) -> Result<(), StoreError>;

    /// Lists refusals, the newest first by their last.
    fn refusals(&mut self, query: &RefusalQuery) -> Result<Vec<RefusalRecord>, StoreError>;

    /// Lists how many refusals were recorded, by group and reason, in this order.
    fn refusal_totals(&mut self) -> Result<Vec<RefusalTotal>, StoreError>;

    /// Writes the end of a run's output, with the store's time.
    ///
    /// # Errors
    /// If it is unknown whether it is written.
    fn keep_output(&mut self, output: &OutputRecord) -> Result<(), StoreError>;

    /// The kept output of the run with this fence, or of the newest run that has one.
    fn output(
        &mut self,
        group: &GroupName,
        fence: Option<Fence>,
    ) -> Result<Option<OutputRecord>, StoreError>;

    /// The run that has made a key of `--once` done, if one has.
    fn once(&mut self, group: &GroupName, key: &str) -> Result<Option<OnceMark>, StoreError>;

    /// Lists the keys that are done, of one group or of all, the newest first.
    fn once_marks(&mut self, group: Option<&GroupName>) -> Result<Vec<OnceMark>, StoreError>;

    /// Removes a part of a group's history and keys that is too old, by its own wall time and by
    /// the note of the last pruning ([`super::pruning`]): few rows at a time, so that no run waits
    /// for it. The newest run and the newest success stay. Outputs go too if newer ones are as many as are
    /// kept: no clock is needed for that.
    fn prune(&mut self, group: &GroupName, retention: Retention) -> Result<(), StoreError>;
}

/// The answer of a resource's mark to a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advanced {
    /// The mark is this fence now.
    Stored,
    /// The mark is this higher one.
    Behind(Fence),
}

/// Keeps the mark of each resource.
pub trait Marks {
    /// Sets a resource's mark, the highest fence that has used it, to this fence, unless it
    /// is higher already.
    ///
    /// # Errors
    /// If it is unknown whether the mark is set.
    fn advance(&mut self, resource: &ResourceName, fence: Fence) -> Result<Advanced, StoreError>;
}
