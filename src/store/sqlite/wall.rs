//! Wall times in readable form: RFC 3339 in UTC, with milliseconds.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::store::sql::cell::instant;
use crate::token::WallTime;

/// The text for a wall time. A time outside 1970 to 9999 is written as the nearest one
/// inside.
pub(super) fn to_text(wall: WallTime) -> String {
    humantime::format_rfc3339_millis(instant(wall)).to_string()
}

/// The wall time in a text.
pub(super) fn from_text(text: &str) -> Option<WallTime> {
    let at: SystemTime = humantime::parse_rfc3339(text).ok()?;
    let since = at.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok().map(WallTime)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::store::sql::cell::LAST_WALL_MS;

    #[test]
    fn a_wall_time_is_written_in_utc_with_milliseconds() {
        assert_eq!(
            to_text(WallTime(1_790_000_000_123)),
            "2026-09-21T14:13:20.123Z"
        );
        assert_eq!(
            from_text("2026-09-21T14:13:20.123Z"),
            Some(WallTime(1_790_000_000_123))
        );
    }

    #[test]
    fn an_unrepresentable_time_is_written_as_the_nearest_one() {
        assert_eq!(to_text(WallTime(i64::MIN)), "1970-01-01T00:00:00.000Z");
        assert_eq!(to_text(WallTime(i64::MAX)), "9999-12-31T23:59:59.999Z");
    }

    proptest! {
        #[test]
        fn every_time_is_read_as_written(wall in 0..=LAST_WALL_MS) {
            let wall = WallTime(wall);
            prop_assert_eq!(from_text(&to_text(wall)), Some(wall));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}", digits in "[0-9TZ:.+-]{0,30}") {
            let _ = from_text(&text);
            let _ = from_text(&digits);
        }

        #[test]
        fn no_number_panics(wall: i64) {
            let _ = to_text(WallTime(wall));
        }
    }
}
