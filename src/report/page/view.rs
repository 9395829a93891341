//! The frame of a page: its facts, its time and zone, and how much it shows of each group. The more
//! groups there are, the less, so that a page stays light. Pure.

use std::time::Duration;

use super::calendar::Calendar;
use crate::token::{Memory, StoreTime, WallTime};

/// What a page says beside its groups.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The store's name.
    pub store: &'a str,
    /// The groups that can't be read, and what is wrong with them.
    pub unreadable: &'a [(String, String)],
    /// There are more refusals or acts than were read.
    pub is_shortened: bool,
    /// How often a browser loads it anew.
    pub refresh: Option<Duration>,
}

/// How the pages of all groups are made.
#[derive(Debug, Clone)]
pub struct View {
    pub now: StoreTime,
    pub memory: Memory,
    pub calendar: Calendar,
    pub detail: Detail,
}

impl View {
    /// The store's wall time.
    pub const fn wall(&self) -> WallTime {
        self.now.stamp.wall
    }

    /// A time near now, as it is shown.
    pub fn near(&self, at: WallTime) -> String {
        self.calendar.near(at, self.wall())
    }
}

/// The limits for each group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detail {
    /// Lanes of a timeline.
    pub lanes: usize,
    /// Marks of successes in a lane that have a text of their own; where there are more, none has.
    pub texts: usize,
    /// The greatest distance of two runs that are one bar, in units of a timeline.
    pub near: u32,
    /// The least distance of two signs in a lane, in units of a timeline.
    pub gap: u32,
    /// Failovers, and acts of operators, in a timeline.
    pub signs: usize,
    /// Rows of the table of runs.
    pub runs: usize,
    /// The days of the plots have texts.
    pub days: bool,
    /// The details are open from the start.
    pub open: bool,
}

impl Detail {
    /// For each of so many groups.
    pub const fn of(groups: usize) -> Self {
        match groups {
            0..=12 => Self {
                lanes: 12,
                texts: 200,
                near: 0,
                gap: 6,
                signs: 60,
                runs: 10,
                days: true,
                open: true,
            },
            13..=100 => Self {
                lanes: 8,
                texts: 32,
                near: 1,
                gap: 8,
                signs: 30,
                runs: 8,
                days: true,
                open: false,
            },
            _ => Self {
                lanes: 4,
                texts: 0,
                near: 4,
                gap: 16,
                signs: 12,
                runs: 3,
                days: false,
                open: false,
            },
        }
    }
}

/// `1 run`, `2 runs`.
pub(super) fn plural(number: u64, word: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{number} {word}{end}")
}
