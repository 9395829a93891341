//! The clock epoch of a server's clock, and what a statement compares it with.

use std::time::SystemTime;

use super::statements::FIRST_SEGMENT;
use crate::store::sql::cell::Cell;
use crate::token::{ClockEpoch, Until};

/// After which time, and in which incarnation of the server alone: when it was started, the name
/// that tells its timeline, and the clock epoch that the two are.
pub(super) fn expiry_values(expiry: &Until) -> [Cell; 4] {
    let (started, timeline) = incarnation(expiry.epoch());
    [
        Cell::Time(Some(expiry.tick_ms())),
        Cell::Instant(started),
        Cell::text(&format!("{timeline}{FIRST_SEGMENT}")),
        Cell::text(expiry.epoch()),
    ]
}

/// When the server was started, and its timeline, as [`clock_epoch`] has put them together.
fn incarnation(of: &ClockEpoch) -> (Option<SystemTime>, &str) {
    let parts = of.0.split_once(' ').and_then(|(started, timeline)| {
        let at = humantime::parse_rfc3339(started).ok()?;
        (epoch(Some(at), timeline) == *of).then_some((Some(at), timeline))
    });
    // Then it is not this server's.
    parts.unwrap_or((None, &of.0))
}

/// The clock epoch of a server that was started then, with this timeline, which the statements give with
/// a name's rest. It is put together here: its text would take a new process of the server 0.45 ms.
pub(super) fn epoch_of(started: Option<SystemTime>, name: &str) -> ClockEpoch {
    epoch(started, name.strip_suffix(FIRST_SEGMENT).unwrap_or(name))
}

fn epoch(started: Option<SystemTime>, timeline: &str) -> ClockEpoch {
    ClockEpoch(match started {
        Some(at) => format!("{} {timeline}", humantime::format_rfc3339_micros(at)),
        None => timeline.to_owned(),
    })
}
