//! Every sentence, table and JSON that a person or a script reads.

pub mod act_waits;
pub mod acts;
pub mod check;
pub mod details;
pub mod doctor;
pub mod explain;
pub mod group;
pub mod history;
pub mod hold;
pub mod incarnation;
pub mod json;
pub mod log;
pub mod message;
pub mod metrics;
pub mod output;
pub mod overview;
pub mod page;
pub mod panic;
pub mod printable;
pub mod records;
pub mod refusal;
mod run_end;
pub mod run_news;
pub mod run_result;
pub mod screen;
pub mod serve;
pub mod settings;
pub mod story;
mod table;
pub mod whole_file;

#[cfg(test)]
mod value_tests;

use crate::sys::clock::wall_millis;
use crate::token::WallTime;
use std::time::{Duration, UNIX_EPOCH};

/// The last instant that RFC 3339 can write: the end of the year 9999, in ms since 1970.
const LATEST_MS: u64 = 253_402_300_799_999;

/// A time as RFC 3339 in UTC. A time outside the years 1970 to 9999 is shown as the nearest inside.
pub fn rfc3339(wall: WallTime) -> String {
    let ms = u64::try_from(wall.0).unwrap_or(0).min(LATEST_MS);
    let time = UNIX_EPOCH + Duration::from_millis(ms);
    humantime::format_rfc3339_millis(time).to_string()
}

/// This host's wall clock: for messages only.
pub fn wall_clock() -> WallTime {
    WallTime(wall_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_any_size_can_be_shown() {
        assert_eq!(rfc3339(WallTime(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(WallTime(i64::MIN)), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(WallTime(i64::MAX)), "9999-12-31T23:59:59.999Z");
        assert_eq!(
            rfc3339(WallTime(1_790_000_000_123)),
            "2026-09-21T14:13:20.123Z"
        );
    }
}
