//! How long the records of a group have existed, as far as was observed. Pure.
//!
//! A clock that leaps ahead makes every record look old. So pruning has two criteria, and a record
//! goes only if it is too old by both: its own wall time, and a [`Note`] that each pruning of its
//! group leaves for the next. The note counts how long the store was *observed to live*, and
//! records which run was the newest after each such length:
//!
//! - Within one boot the time since the last pruning is measured by the boot's own clock, which
//!   can't be set.
//! - Otherwise (across boots; on a database server, which has no such clock) the note uses the wall
//!   times of the group's runs, in the order of their grants, and the time now: of each step ahead
//!   it counts a day at most. A step back counts as nothing, and so does the time after it until
//!   the clock has caught up, so that a clock that goes back and forth, or starts in 1970 at each
//!   boot, counts once.
//! - A record is outlived once the store has lived for its retention and a day more (twice its
//!   retention, if that is less), so that one leap of a clock prunes nothing early.
//!
//! A note that is missing or unreadable starts again: everything is kept longer.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Retention;
use crate::token::WallTime;
use crate::token::{Fence, RunRecord, StoreTime};

/// How much of one step between two wall times counts.
const STEP: Duration = Duration::from_hours(24);

/// A mark may be late by this part of the time until it is needed.
const PART: i64 = 8;

/// A run of the group, as evidence of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The fence of its grant: runs are granted in the order of their fences.
    pub fence: Fence,
    /// When it was granted, by the store's wall clock.
    pub started_at: WallTime,
}

impl Seen {
    /// The evidence in a record.
    pub fn of(run: &RunRecord) -> Self {
        Self {
            fence: run.fence,
            started_at: run.started_at,
        }
    }
}

/// The records that are outlived: those with this fence or a lower one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outlived {
    /// Of runs, and of acts of operators.
    pub history: Option<Fence>,
    /// Of outputs.
    pub outputs: Option<Fence>,
    /// Of keys of `--once`.
    pub once: Option<Fence>,
}

/// How long a group's records have been observed to live.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Note {
    /// The time since the first note, in milliseconds.
    lived_ms: i64,
    /// The latest wall time observed, advanced by what the tick clock has counted since.
    #[serde(rename = "wall_ms")]
    wall: WallTime,
    /// The time of the last pruning by the tick clock, with its clock epoch.
    tick: Option<(String, i64)>,
    /// Lived time and fence: the newest run when the store had lived for so long. The oldest first.
    marks: Vec<(i64, i64)>,
}

impl Note {
    /// The stored note, if it is readable.
    pub fn from_text(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub fn to_text(&self) -> String {
        // It can't fail; an empty text would start again.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The note that a pruning leaves. `has_ticks`: the ticks of `now` come from a clock that can't
    /// be set. `runs`: the newest runs, in any order.
    pub fn next(
        last: Option<Self>,
        now: &StoreTime,
        has_ticks: bool,
        runs: &mut [Seen],
        retention: Retention,
    ) -> Self {
        let mut note = last.unwrap_or_else(|| Self {
            lived_ms: 0,
            wall: now.stamp.wall,
            tick: None,
            marks: Vec::new(),
        });
        let tick = has_ticks.then(|| (now.epoch.0.clone(), now.stamp.tick_ms));
        let ticked = match (&note.tick, &tick) {
            (Some((last, from)), Some((same, to))) if last == same => to.saturating_sub(*from),
            _ => 0,
        };
        note.tick = tick;
        note.pass(ticked.max(0), ticked.max(0));
        runs.sort_by_key(|run| run.fence);
        for run in runs.iter() {
            note.see(run.started_at);
        }
        note.see(now.stamp.wall);
        if let Some(newest) = runs.last() {
            note.mark(newest.fence, retention);
        }
        note
    }

    /// Counts this much lived time, and advances the latest wall time by `by`.
    const fn pass(&mut self, lived_ms: i64, by: i64) {
        self.lived_ms = self.lived_ms.saturating_add(lived_ms);
        self.wall = WallTime(self.wall.0.saturating_add(by));
    }

    /// Takes the next wall time into account.
    fn see(&mut self, wall: WallTime) {
        let step = wall.0.saturating_sub(self.wall.0).max(0);
        self.pass(step.min(millis(STEP)), step);
    }

    /// Records that everything up to this fence exists now, and drops marks that are not needed.
    fn mark(&mut self, newest: Fence, retention: Retention) {
        let is_new = self.marks.last().is_none_or(|(last, _)| *last < newest.0);
        if is_new {
            self.marks.push((newest.0, self.lived_ms));
        }
        let Retention {
            history,
            once,
            outputs,
        } = retention;
        let mut ages = [history, once, outputs.retain].map(enough);
        ages.sort_unstable();
        let [.., longest] = ages;
        let mut kept: Vec<(i64, i64)> = Vec::new();
        for (at, mark) in self.marks.iter().enumerate() {
            let next = self.marks.get(at + 1);
            let age = |mark: &(i64, i64)| self.lived_ms.saturating_sub(mark.1);
            let is_needed = match (kept.last(), next) {
                (_, None) => true,
                // The next mark is old enough for everything.
                (_, Some(next)) if age(next) >= longest => false,
                (None, _) => true,
                (Some(last), Some(next)) => {
                    // For this age, and longer ones, the last mark would be used until the next is
                    // that old.
                    let wanted = ages.iter().find(|wanted| **wanted > age(next));
                    wanted.is_none_or(|wanted| next.1.saturating_sub(last.1) > wanted / PART)
                }
            };
            if is_needed {
                kept.push(*mark);
            }
        }
        self.marks = kept;
    }

    /// The records that are outlived.
    pub fn outlived(&self, retention: Retention) -> Outlived {
        let of = |retention| {
            let wanted = enough(retention);
            let is_old = |mark: &&(i64, i64)| self.lived_ms.saturating_sub(mark.1) >= wanted;
            let newest = self.marks.iter().rev().find(is_old);
            newest.map(|(fence, _)| Fence(*fence))
        };
        Outlived {
            history: of(retention.history),
            outputs: of(retention.outputs.retain),
            once: of(retention.once),
        }
    }
}

/// How long a store must have lived since a record for the record to be too old.
fn enough(retention: Duration) -> i64 {
    millis(retention.saturating_add(retention.min(STEP)))
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "pruning_tests.rs"]
mod tests;
