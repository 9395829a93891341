//! A group as `status` shows it, in any format.

use super::condition::Condition;
use super::last_run::LastRun;
use crate::token::{Memory, Row, StoreTime, Waiter};

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
    #[must_use]
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
