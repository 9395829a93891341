//! A span of time, as a reader gives it.

use std::time::Duration;

use jiff::tz::TimeZone;

use super::failure::Failure;
use crate::cli::GivenTime;
use crate::exit;
use crate::report::rfc3339;
use crate::token::WallTime;

/// How long before and after a point in time counts as that time: cron entries of several nodes do
/// not fire at one instant, and their clocks differ.
const AROUND: Duration = Duration::from_mins(15);

/// A span of time; without a begin or an end where there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) since: Option<WallTime>,
    /// Not before `since`.
    pub(crate) until: Option<WallTime>,
}

impl Span {
    /// The span between two times that a reader in this zone gives at `now`.
    ///
    /// # Errors
    /// The end lies before the begin.
    pub(crate) fn between(
        since: Option<GivenTime>,
        until: Option<GivenTime>,
        now: WallTime,
        zone: &TimeZone,
    ) -> Result<Self, Failure> {
        let since = since.map(|it| it.at(now, zone));
        let until = until.map(|it| it.end(since, now, zone));
        match (since, until) {
            (Some(begin), Some(end)) if end < begin => {
                let (begin, end) = (rfc3339(begin), rfc3339(end));
                let text = format!(
                    "--until ({end}) lies before --since ({begin}); give an earlier --since, as in --since 12h --until 1h"
                );
                Err(Failure::new(exit::USAGE, "usage", text))
            }
            _ => Ok(Self { since, until }),
        }
    }

    /// The time around an instant that a reader in this zone gives at `now`: around both, if the
    /// zone has it twice.
    pub(crate) fn around(at: GivenTime, now: WallTime, zone: &TimeZone) -> Self {
        Self {
            since: Some(at.at(now, zone).minus(AROUND)),
            until: Some(at.end(None, now, zone).plus(AROUND)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    /// 2026-11-21 01:00:00 in Berlin.
    const ONE: WallTime = WallTime(1_795_219_200_000);

    fn given(text: &str) -> Option<GivenTime> {
        Some(GivenTime::parse(text).unwrap())
    }

    fn shown(span: Span) -> [String; 2] {
        [span.since, span.until].map(|at| at.map_or_else(String::new, rfc3339))
    }

    #[test]
    fn a_time_of_the_day_ends_a_span_after_its_begin() {
        let span = Span::between(given("22:00"), given("02:00"), ONE, &berlin()).unwrap();
        assert_eq!(
            shown(span),
            ["2026-11-20T21:00:00.000Z", "2026-11-21T01:00:00.000Z"]
        );
        let span = Span::between(given("yesterday 02:00"), given("03:00"), ONE, &berlin());
        let expected = ["2026-11-20T01:00:00.000Z", "2026-11-20T02:00:00.000Z"];
        assert_eq!(shown(span.unwrap()), expected);
    }

    #[test]
    fn a_span_that_ends_before_it_begins_is_refused() {
        let span = |since, until| Span::between(given(since), given(until), ONE, &berlin());
        let failure = span("2026-10-25 03:00", "2026-10-25 01:00").unwrap_err();
        assert_eq!(failure.code, exit::USAGE);
        assert!(failure.text.contains("--until") && failure.text.contains("--since"));
        assert!(span("1h", "2h").is_err() && span("2h", "1h").is_ok());
    }

    #[test]
    fn an_hour_that_the_zone_has_twice_is_in_the_span_twice() {
        let at = given("2026-10-25 02:30").unwrap();
        let span = Span::around(at, ONE, &berlin());
        assert_eq!(
            shown(span),
            ["2026-10-25T00:15:00.000Z", "2026-10-25T01:45:00.000Z"]
        );
        let (since, until) = (given("2026-10-25 02:30"), given("2026-10-25 02:45"));
        let span = Span::between(since, until, ONE, &berlin()).unwrap();
        assert_eq!(
            shown(span),
            ["2026-10-25T00:30:00.000Z", "2026-10-25T01:45:00.000Z"]
        );
    }
}
