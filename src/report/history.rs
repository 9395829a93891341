//! The output of `history`: runs and acts of operators, by time.

use serde::Serialize;

use super::acts::{ActObject, whose};
use super::json::Run;
use super::rfc3339;
use super::tables::{self, NONE, aligned, or_none};
use crate::token::WallTime;
use crate::token::{ActRecord, RunRecord, StoreTime};

/// A run, or an act of an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    Run(Box<RunRecord>),
    Act(Box<ActRecord>),
}

impl Entry {
    /// When it began, by the store's wall clock.
    #[must_use]
    pub const fn at(&self) -> WallTime {
        match self {
            Self::Run(run) => run.started_at,
            Self::Act(act) => act.at,
        }
    }
}

/// An object of `history --json`: one that has a field `act` is an act.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Object<'a> {
    Run(Run<'a>),
    Act(ActObject<'a>),
}

impl<'a> Object<'a> {
    /// The object for an entry.
    #[must_use]
    pub fn of(entry: &'a Entry) -> Self {
        match entry {
            Entry::Run(run) => Self::Run(Run::of(run)),
            Entry::Act(act) => Self::Act(ActObject::of(act)),
        }
    }
}

/// A table of entries, one a line.
#[must_use]
pub fn table(entries: &[Entry], now: &StoreTime) -> String {
    let line = |entry: &Entry| match entry {
        Entry::Run(run) => tables::run(run, now),
        Entry::Act(act) => act_line(act),
    };
    aligned(&tables::RUN_HEADS, entries.iter().map(line))
}

fn act_line(act: &ActRecord) -> Vec<String> {
    let until = act.until.map(rfc3339);
    let until = until.map_or_else(String::new, |until| format!(", until {until}"));
    let key = act.once_key.as_ref();
    let key = key.map_or_else(String::new, |key| format!("{key} "));
    let reason = act.actor.reason.as_ref();
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    vec![
        rfc3339(act.at),
        act.group.to_string(),
        or_none(act.client.as_ref()),
        act.act.clone(),
        NONE.to_owned(),
        act.fence.to_string(),
        NONE.to_owned(),
        NONE.to_owned(),
        format!("{key}by {}{until}{reason}", whose(act)),
    ]
}
