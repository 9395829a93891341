//! The clock epoch of a server, and the values that a statement compares with it.

use std::time::SystemTime;

use super::statements::FIRST_SEGMENT;
use crate::store::sql::cell::Cell;
use crate::token::WallTime;
use crate::token::{ClockEpoch, Until};

/// The expiry of a statement: the time, and the server incarnation in which alone it holds: its
/// start, the file name with its timeline, and the clock epoch made of the two.
pub(super) fn expiry_values(expiry: &Until) -> [Cell; 4] {
    let (started, timeline) = incarnation(expiry.epoch());
    [
        Cell::Time(Some(WallTime(expiry.tick_ms()))),
        Cell::Instant(started),
        Cell::text(&format!("{timeline}{FIRST_SEGMENT}")),
        Cell::text(expiry.epoch()),
    ]
}

/// The start and the timeline of a server, as [`epoch_of`] has combined them.
pub(super) fn incarnation(of: &ClockEpoch) -> (Option<SystemTime>, &str) {
    let parts = of.0.split_once(' ').and_then(|(started, timeline)| {
        let at = humantime::parse_rfc3339(started).ok()?;
        (epoch(Some(at), timeline) == *of).then_some((Some(at), timeline))
    });
    // Then it belongs to another kind of server.
    parts.unwrap_or((None, &of.0))
}

/// The clock epoch of a server with this start and timeline; the statements return the timeline in
/// a file name. It is composed here: its text would take a new server process 0.45 ms.
pub(super) fn epoch_of(started: Option<SystemTime>, name: &str) -> ClockEpoch {
    epoch(started, name.strip_suffix(FIRST_SEGMENT).unwrap_or(name))
}

fn epoch(started: Option<SystemTime>, timeline: &str) -> ClockEpoch {
    ClockEpoch(match started {
        Some(at) => format!("{} {timeline}", humantime::format_rfc3339_micros(at)),
        None => timeline.to_owned(),
    })
}
