//! A group as `status` shows it, in any format, and what it is in. Pure.

use super::last_run::LastRun;
use super::screen::Tint;
use crate::token::{Memory, Row, State, StoreTime, Waiter};

/// What a store said, and when.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    /// The store's name.
    pub store: &'a str,
    /// What the store may have forgotten.
    pub memory: &'a Memory,
    /// The store's time.
    pub now: &'a StoreTime,
}

/// A group as it is shown.
#[derive(Debug, Clone)]
pub struct Group<'a> {
    pub row: &'a Row,
    /// Its last finished run.
    pub last: Option<LastRun>,
    /// Its waiters, in order.
    pub waiters: Vec<&'a Waiter>,
    /// What it is in, the gravest first.
    pub conditions: Vec<Condition>,
}

impl<'a> Group<'a> {
    /// The group of this row.
    pub fn new(
        row: &'a Row,
        last: Option<LastRun>,
        waiters: Vec<&'a Waiter>,
        at: Snapshot<'_>,
    ) -> Self {
        let conditions = Condition::all(row, last.as_ref(), at.memory, at.now);
        Self {
            row,
            last,
            waiters,
            conditions,
        }
    }
}

/// A condition of a group; the gravest comes first. Several can hold at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// Its row can't be read.
    Unreadable,
    /// Nothing is granted, because the store may have forgotten a grant.
    Observed,
    /// Its holder has been silent for longer than allowed.
    Silent,
    /// Its last finished run was no success.
    Failed,
    /// An operator has stopped new grants.
    Paused,
    Running,
    Idle,
    Free,
}

impl Condition {
    /// All that hold for a token, the gravest first.
    pub fn all(row: &Row, last: Option<&LastRun>, memory: &Memory, now: &StoreTime) -> Vec<Self> {
        let observed = memory.observation(row.longest_lease(), now).is_some();
        let failed = last.is_some_and(LastRun::is_trouble);
        let state = match row.state {
            State::Free => Self::Free,
            State::Idle { .. } => Self::Idle,
            State::Running { .. } => Self::Running,
        };
        let conditions = [
            (Self::Observed, observed),
            (Self::Silent, row.is_silent(now)),
            (Self::Failed, failed),
            (Self::Paused, row.pause_at(now).is_some()),
            (state, true),
        ];
        let held = conditions.into_iter().filter(|(_, holds)| *holds);
        held.map(|(condition, _)| condition).collect()
    }

    /// The colour of the state of a token in these conditions.
    pub(super) fn tint(all: &[Self]) -> Tint {
        let has = |condition| all.contains(&condition);
        if has(Self::Unreadable) || has(Self::Observed) {
            Tint::Bad
        } else if has(Self::Silent) || has(Self::Paused) {
            Tint::Stopped
        } else if has(Self::Running) {
            Tint::Good
        } else {
            Tint::Plain
        }
    }
}
