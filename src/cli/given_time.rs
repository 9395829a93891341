//! Times as people give them: `12h` (ago), `02:00`, `yesterday`, `2026-11-21 02:00`. Pure: what
//! time it is, and in which zone, is said when a time is resolved.

use std::time::Duration;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Disambiguation, TimeZone};
use jiff::{Span, Timestamp};

use crate::duration::{self, DurationError};
use crate::report::screen::timestamp;
use crate::token::WallTime;

/// What is accepted, for messages.
const ACCEPTED: &str = "write for example 12h (ago), 02:00, yesterday, yesterday 02:00, \
                        2026-11-21, 2026-11-21 02:00 or 2026-11-21T02:00:00Z";

/// Why a text is not a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TimeError {
    #[error("is not a time: {ACCEPTED}")]
    Unreadable,
    /// It is a duration in a unit that is not accepted.
    #[error(transparent)]
    Duration(#[from] DurationError),
}

/// A time as it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GivenTime {
    /// So long before now.
    Ago(Duration),
    /// This instant.
    At(WallTime),
    /// When the reader's clock showed this time last; it never lies ahead.
    Clock(Time),
    /// This time of the day so many days before today.
    Before(i8, Time),
    /// This date and time in the reader's zone.
    Civil(DateTime),
}

impl GivenTime {
    /// Reads a time. A day alone stands for its begin.
    pub(crate) fn parse(text: &str) -> Result<Self, TimeError> {
        let text = text.trim();
        let ago = text.strip_suffix("ago").map_or(text, str::trim_end);
        match duration::parse(ago) {
            Ok(length) => return Ok(Self::Ago(length)),
            Err(DurationError::Unreadable) => {}
            Err(error) => return Err(error.into()),
        }
        if text == "now" {
            return Ok(Self::Ago(Duration::ZERO));
        }
        // The separator of RFC 3339 can be a blank; without an offset this is no instant.
        if let Ok(at) = text.parse::<Timestamp>() {
            return Ok(Self::At(WallTime(at.as_millisecond())));
        }
        Self::by_calendar(text).ok_or(TimeError::Unreadable)
    }

    fn by_calendar(text: &str) -> Option<Self> {
        if let Some(time) = clock(text) {
            return Some(Self::Clock(time));
        }
        let is_letter =
            |at: &usize| !text.starts_with(|c: char| c.is_ascii_alphabetic()) && *at > 0;
        let separator = text.find(' ').or_else(|| text.find('T').filter(is_letter));
        let (day, time) = match separator {
            Some(at) => (text.get(..at)?, clock(text.get(at + 1..)?.trim_start())?),
            None => (text, Time::midnight()),
        };
        match day {
            "today" => Some(Self::Before(0, time)),
            "yesterday" => Some(Self::Before(1, time)),
            _ => date(day).map(|date| Self::Civil(date.to_datetime(time))),
        }
    }

    /// The instant, for a reader in this zone. A time that the zone skips is the one after the gap
    /// by as much; one that it has twice is the first.
    pub(crate) fn at(self, now: WallTime, zone: &TimeZone) -> WallTime {
        let today = zone.to_datetime(timestamp(now)).date();
        let before = |days: i8, time| {
            let day = today.checked_sub(Span::new().days(days));
            wall(day.unwrap_or(Date::MIN).to_datetime(time), zone)
        };
        match self {
            Self::Ago(length) => now.minus(length),
            Self::At(at) => at,
            Self::Clock(time) => match before(0, time) {
                ahead if ahead > now => before(1, time),
                past => past,
            },
            Self::Before(days, time) => before(days, time),
            Self::Civil(given) => wall(given, zone),
        }
    }

    /// The instant that ends a span from `since` on: as [`Self::at`], but of a time that the zone
    /// has twice the second, and of a time of the day the first after `since`.
    pub(crate) fn end(self, since: Option<WallTime>, now: WallTime, zone: &TimeZone) -> WallTime {
        let at = self.at(now, zone);
        if matches!(self, Self::Ago(_) | Self::At(_)) {
            return at;
        }
        let civil = |at| zone.to_datetime(timestamp(at));
        // The second instant with the same local time, if there is one.
        let last = |at: WallTime| by(civil(at), zone, Disambiguation::Later).max(at);
        match (self, since) {
            (Self::Clock(time), Some(since)) if at < since => {
                let day = civil(since).date();
                let same_day = last(wall(day.to_datetime(time), zone));
                let next = day.checked_add(Span::new().days(1)).unwrap_or(Date::MAX);
                match same_day >= since {
                    true => same_day,
                    false => last(wall(next.to_datetime(time), zone)),
                }
            }
            _ => last(at),
        }
    }
}

fn wall(civil: DateTime, zone: &TimeZone) -> WallTime {
    by(civil, zone, Disambiguation::Compatible)
}

fn by(civil: DateTime, zone: &TimeZone, disambiguation: Disambiguation) -> WallTime {
    let at = zone
        .to_ambiguous_timestamp(civil)
        .disambiguate(disambiguation);
    let outside = match civil.year() {
        ..=0 => Timestamp::MIN,
        _ => Timestamp::MAX,
    };
    WallTime(at.unwrap_or(outside).as_millisecond())
}

/// Digits alone, at least `least` and at most `most` of them.
fn number<T: std::str::FromStr>(text: &str, least: usize, most: usize) -> Option<T> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = (least..=most).contains(&text.len());
    (is_number && fits).then(|| text.parse().ok()).flatten()
}

/// A time of the day: `2:00`, `02:00`, `02:00:13`.
fn clock(text: &str) -> Option<Time> {
    let mut parts = text.split(':');
    let hour = number(parts.next()?, 1, 2)?;
    let minute = number(parts.next()?, 2, 2)?;
    let second = parts.next().map_or(Some(0), |part| number(part, 2, 2))?;
    match parts.next() {
        None => Time::new(hour, minute, second, 0).ok(),
        Some(_) => None,
    }
}

/// A date: `2026-11-21`.
fn date(text: &str) -> Option<Date> {
    let mut parts = text.split('-');
    let year = number(parts.next()?, 4, 4)?;
    let month = number(parts.next()?, 1, 2)?;
    let day = number(parts.next()?, 1, 2)?;
    match parts.next() {
        None => Date::new(year, month, day).ok(),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mutated::mutated_text;

    /// A zone by POSIX' rules: the tests need no database of zones.
    fn berlin() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    fn utc(text: &str) -> WallTime {
        WallTime(text.parse::<Timestamp>().unwrap().as_millisecond())
    }

    /// The instant that a text means in Berlin when it is `now` there, in UTC.
    #[track_caller]
    fn assert_means(text: &str, now: &str, instant: &str) {
        let given = GivenTime::parse(text).unwrap();
        let at = given.at(utc(now), &berlin());
        assert_eq!(at, utc(instant), "{text} at {now}: {}", timestamp(at));
    }

    /// 14:30 in Berlin.
    const NOW: &str = "2026-11-21T13:30:00Z";

    #[test]
    fn people_give_times_in_many_ways() {
        for (text, instant) in [
            ("12h", "2026-11-21T01:30:00Z"),
            ("12h ago", "2026-11-21T01:30:00Z"),
            ("90", "2026-11-21T13:28:30Z"),
            ("2d 1h", "2026-11-19T12:30:00Z"),
            ("now", NOW),
            ("today", "2026-11-20T23:00:00Z"),
            ("yesterday", "2026-11-19T23:00:00Z"),
            ("yesterday 02:00", "2026-11-20T01:00:00Z"),
            ("2026-11-21", "2026-11-20T23:00:00Z"),
            (" 2026-11-21 02:00 ", "2026-11-21T01:00:00Z"),
            ("2026-11-21  02:00", "2026-11-21T01:00:00Z"),
            ("2026-11-21T02:00", "2026-11-21T01:00:00Z"),
            ("2026-11-21 02:00:13", "2026-11-21T01:00:13Z"),
            ("2026-11-21T02:00:13Z", "2026-11-21T02:00:13Z"),
            ("2026-11-21T02:00:13.500Z", "2026-11-21T02:00:13.500Z"),
            ("2026-11-21T02:00:13+05:30", "2026-11-20T20:30:13Z"),
            ("2:00", "2026-11-21T01:00:00Z"),
        ] {
            assert_means(text, NOW, instant);
        }
    }

    #[test]
    fn a_time_of_the_day_never_lies_ahead() {
        assert_means("14:30", NOW, NOW);
        assert_means("14:31", NOW, "2026-11-20T13:31:00Z");
        assert_means("00:00", NOW, "2026-11-20T23:00:00Z");
        // It is tomorrow already in Berlin.
        assert_means("23:59", "2026-11-20T23:30:00Z", "2026-11-20T22:59:00Z");
    }

    #[test]
    fn a_time_that_does_not_exist_is_after_the_gap_and_one_of_two_is_the_first() {
        let (spring, autumn) = ("2026-03-29T10:00:00Z", "2026-10-25T10:00:00Z");
        assert_means("02:30", spring, "2026-03-29T01:30:00Z");
        assert_means("2026-03-29 02:30", NOW, "2026-03-29T01:30:00Z");
        assert_means("03:00", spring, "2026-03-29T01:00:00Z");
        assert_means("02:30", autumn, "2026-10-25T00:30:00Z");
        assert_means("2026-10-25 02:30", NOW, "2026-10-25T00:30:00Z");
        // The second of the two: the first lies behind in any case.
        assert_means("02:30", "2026-10-25T01:10:00Z", "2026-10-25T00:30:00Z");
        // A day of 23 hours and one of 25 begin at midnight.
        assert_means("yesterday", "2026-03-30T10:00:00Z", "2026-03-28T23:00:00Z");
        assert_means("yesterday", "2026-10-26T10:00:00Z", "2026-10-24T22:00:00Z");
        assert_means("24h", "2026-03-30T10:00:00Z", "2026-03-29T10:00:00Z");
    }

    #[test]
    fn a_day_that_begins_in_a_gap_begins_after_it() {
        let gap = TimeZone::posix("AST4ADT,M3.2.0/0,M11.1.0/0").unwrap();
        let at = GivenTime::parse("2026-03-08").unwrap();
        assert_eq!(at.at(utc(NOW), &gap), utc("2026-03-08T04:00:00Z"));
    }

    #[test]
    fn other_texts_are_refused_with_what_is_accepted() {
        for text in [
            "",
            "ago",
            "soon",
            "24:00",
            "2:0",
            "02:60",
            "1:2:3:4",
            "2026-02-30",
            "2026-11",
            "26-11-21",
            "2026-11-21 2am",
            "yesterday T",
            "T02:00",
            "today02:00",
            "2026-11-21-02:00",
            "+2:00",
            "99999-01-01",
            "夜",
        ] {
            let error = GivenTime::parse(text).unwrap_err().to_string();
            assert!(error.contains("2026-11-21 02:00"), "{text}: {error}");
        }
        let months = GivenTime::parse("5M").unwrap_err().to_string();
        assert!(months.contains("minutes"), "{months}");
    }

    #[test]
    fn any_time_can_be_resolved() {
        for text in [
            "0000-01-01",
            "9999-12-31 23:59",
            "yesterday",
            "00:00",
            "12h",
        ] {
            for now in [i64::MIN, 0, i64::MAX] {
                let _ = GivenTime::parse(text).unwrap().at(WallTime(now), &berlin());
            }
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_at_any_time(
            text in mutated_text(&[
                "12h ago", "yesterday 02:00", "2026-11-21T13:30:00Z", "2026-11-21 02:00", "02:00", "-262142-01-01T00:00:00Z",
            ]),
            any in ".{0,20}",
            now: i64,
        ) {
            for text in [text, any] {
                if let Ok(given) = GivenTime::parse(&text) {
                    let at = given.at(WallTime(now), &berlin());
                    let given = GivenTime::parse(&text).unwrap();
                    let _ = given.end(Some(at), WallTime(now), &berlin());
                }
            }
        }
    }
}
