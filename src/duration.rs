//! Durations as people write them: `90s`, `5m`, `2h 30m`, a plain number of seconds.

use std::time::Duration;

/// What is accepted, for messages.
pub const ACCEPTED: &str = "write for example 90s, 5m, 2h 30m, or a plain number of seconds";

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// The text is not a duration.
    #[error("is not a duration: {ACCEPTED}")]
    Unreadable,
    /// `5M` is ambiguous: five months or five minutes.
    #[error("uses {0:?}, which would be months: write m for minutes ({ACCEPTED})")]
    Months(String),
    /// A year has no fixed length.
    #[error("uses {0:?}: years are not accepted ({ACCEPTED})")]
    Years(String),
    /// A slip: `--at-least` would lock its group for longer than anyone remembers it.
    #[error("is longer than ten years ({ACCEPTED})")]
    TooLong,
}

/// The longest duration: ten years.
const LONGEST: Duration = Duration::from_hours(3_653 * 24);

/// Reads a duration.
///
/// # Errors
/// Says what is wrong with the text and what is accepted.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    match read(text.trim())? {
        duration if duration > LONGEST => Err(DurationError::TooLong),
        duration => Ok(duration),
    }
}

fn read(text: &str) -> Result<Duration, DurationError> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let units = text
        .split(|c: char| !c.is_alphabetic())
        .filter(|unit| !unit.is_empty());
    for unit in units {
        match unit {
            "M" | "month" | "months" => return Err(DurationError::Months(unit.into())),
            "y" | "Y" | "yr" | "year" | "years" => return Err(DurationError::Years(unit.into())),
            _ => {}
        }
    }
    humantime::parse_duration(text).map_err(|_| DurationError::Unreadable)
}

/// Writes a duration without rounding it, as it could be given: `5m`, `1day`, `0s`.
#[must_use]
pub fn exact(duration: Duration) -> String {
    const DAY: u64 = 24 * 60 * 60;
    let days = duration.as_secs() / DAY;
    // Months and years are no lengths that could be given.
    if days < 30 {
        return humantime::format_duration(duration).to_string();
    }
    match duration - Duration::from_secs(days * DAY) {
        Duration::ZERO => format!("{days}days"),
        rest => format!("{days}days {}", humantime::format_duration(rest)),
    }
}

/// Writes a duration for people: whole seconds from ten seconds on, below that with one decimal,
/// rounded up from the millisecond. Only no time at all is written as zero.
#[must_use]
pub fn rounded(duration: Duration) -> String {
    let shown = if duration < Duration::from_secs(10) {
        let least = u128::from(!duration.is_zero());
        let tenths = duration.as_millis().max(least).div_ceil(100);
        Duration::from_millis(
            u64::try_from(tenths)
                .unwrap_or(u64::MAX)
                .saturating_mul(100),
        )
    } else {
        Duration::from_secs(duration.as_secs())
    };
    if shown < Duration::from_secs(10) && shown.subsec_millis() != 0 {
        return format!("{:.1}s", shown.as_secs_f64());
    }
    humantime::format_duration(shown).to_string()
}

/// Writes a duration for a narrow column, in its largest unit alone, rounded down: `4m`, `23h`.
#[must_use]
pub fn brief(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mutated::mutated_text;

    #[test]
    fn people_write_durations_in_many_ways() {
        for (text, seconds) in [
            ("90", 90),
            ("0", 0),
            ("90s", 90),
            ("5m", 300),
            (" 5min ", 300),
            ("2h 30m", 9_000),
            ("2h30m", 9_000),
            ("1d", 86_400),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
    }

    #[test]
    fn months_and_years_are_refused() {
        assert_eq!(parse("5M"), Err(DurationError::Months("M".into())));
        assert_eq!(
            parse("2 months"),
            Err(DurationError::Months("months".into()))
        );
        assert_eq!(parse("1y"), Err(DurationError::Years("y".into())));
    }

    #[test]
    fn more_than_ten_years_are_refused() {
        let longest = LONGEST.as_secs();
        assert_eq!(parse(&longest.to_string()), Ok(LONGEST));
        for text in [
            &*(longest + 1).to_string(),
            "3654d",
            "18446744073709551615",
            "99999999999h",
            "3653d 1ms",
        ] {
            assert_eq!(parse(text), Err(DurationError::TooLong), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused_with_what_is_accepted() {
        for text in ["", "abc", "-5s", "5 parsecs", "1.5.5s", "s"] {
            let error = parse(text).unwrap_err();
            assert!(error.to_string().contains("5m"), "{text}: {error}");
        }
    }

    #[test]
    fn durations_are_rounded_for_people() {
        assert_eq!(rounded(Duration::from_millis(1_234)), "1.3s");
        assert_eq!(rounded(Duration::from_millis(3_000)), "3s");
        assert_eq!(rounded(Duration::from_micros(3_000_900)), "3s");
        assert_eq!(rounded(Duration::from_nanos(1)), "0.1s");
        assert_eq!(rounded(Duration::from_millis(291_700)), "4m 51s");
        assert_eq!(rounded(Duration::ZERO), "0s");
    }

    #[test]
    fn a_brief_duration_has_one_unit() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (3_599, "59m"),
            (86_399, "23h"),
            (86_400, "1d"),
            (40_000_000, "462d"),
        ] {
            assert_eq!(brief(Duration::from_secs(seconds)), text);
        }
        assert_eq!(brief(Duration::from_millis(999)), "0s");
    }

    proptest! {
        #[test]
        fn no_text_panics_and_a_duration_is_written_as_it_is_read(
            text in mutated_text(&["1h30m 5s", "5m", "90", "2days 3h", "100ms"]),
            any in ".{0,20}",
        ) {
            for text in [text, any] {
                if let Ok(duration) = parse(&text) {
                    prop_assert_eq!(parse(&exact(duration)).ok(), Some(duration));
                }
            }
        }
    }
}
