//! The windows of time that are drawn, where a time lies in one, and the reader's calendar: days,
//! hours and their names, in one time zone. Pure.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{Span, Zoned};

use crate::report::screen::{Times, local, timestamp};
use crate::token::WallTime;

/// The distance of two labels, in hours of a day and in days of a month.
const HOURS: i8 = 3;
const DAYS: usize = 5;

/// A time zone, and how times are written in it.
#[derive(Debug, Clone)]
pub struct Calendar {
    zone: TimeZone,
}

/// A line with a label below a timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tick {
    pub at: WallTime,
    pub label: String,
}

impl Calendar {
    pub const fn new(zone: TimeZone) -> Self {
        Self { zone }
    }

    fn zoned(&self, at: WallTime) -> Zoned {
        timestamp(at).to_zoned(self.zone.clone())
    }

    fn written(&self, at: WallTime, format: &str) -> String {
        local(at, &self.zone, format)
    }

    /// Date and time, to the second: `2026-11-21 14:00:13`.
    pub fn full(&self, at: WallTime) -> String {
        self.written(at, "%Y-%m-%d %H:%M:%S")
    }

    /// Date and time for machines: RFC 3339 with the zone's offset.
    pub fn exact(&self, at: WallTime) -> String {
        self.written(at, "%Y-%m-%dT%H:%M:%S%:z")
    }

    /// A time near `now`: `14:00:13`, on another day `Nov 21 14:00`, in another year with its year.
    pub fn near(&self, at: WallTime, now: WallTime) -> String {
        let (then, today) = (self.zoned(at), self.zoned(now));
        let format = match () {
            () if then.date() == today.date() => "%H:%M:%S",
            () if then.year() == today.year() => "%b %-d %H:%M",
            () => "%Y-%m-%d %H:%M",
        };
        self.written(at, format)
    }

    /// A day: `Nov 21`.
    pub fn day(&self, at: WallTime) -> String {
        self.written(at, "%b %-d")
    }

    /// The zone, as people call it: `Europe/Berlin`, `CET`.
    pub fn zone_name(&self, at: WallTime) -> String {
        let times = Times::Local(self.zone.clone());
        times.zone_name(at).unwrap_or_default()
    }

    /// The begins of so many days, the last of which contains `now`; the oldest first.
    pub fn days(&self, now: WallTime, count: usize) -> Vec<WallTime> {
        let today = self.zoned(now).date();
        let back = |days: usize| {
            let days = i64::try_from(days).ok()?;
            let day = today.checked_sub(Span::new().try_days(days).ok()?).ok()?;
            let begin = day.to_zoned(self.zone.clone()).ok()?;
            Some(WallTime(begin.timestamp().as_millisecond()))
        };
        (0..count).rev().filter_map(back).collect()
    }

    /// The lines of a timeline.
    pub fn ticks(&self, window: Window, scale: &Scale) -> Vec<Tick> {
        let days = self.days(scale.until, window.days() + 1);
        let times: Vec<WallTime> = match window {
            Window::Day => days.iter().flat_map(|day| self.hours_of(*day)).collect(),
            Window::Week => days,
            // The newest day is always among them.
            Window::Month => days.into_iter().rev().step_by(DAYS).collect(),
        };
        let format = match window {
            Window::Day => "%H:%M",
            Window::Week => "%a %-d",
            Window::Month => "%b %-d",
        };
        let inside = times.into_iter().filter(|at| scale.has(*at));
        let tick = |at| Tick {
            at,
            label: self.written(at, format),
        };
        inside.map(tick).collect()
    }

    /// Each third hour of a day, by its clock.
    fn hours_of(&self, day: WallTime) -> impl Iterator<Item = WallTime> {
        let day = self.zoned(day);
        (0..24 / HOURS).filter_map(move |number| {
            let hour = day.with().hour(number * HOURS).build().ok()?;
            Some(WallTime(hour.timestamp().as_millisecond()))
        })
    }
}

/// How long the newest part of history is that a timeline shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    Day,
    Week,
    Month,
}

impl Window {
    pub const ALL: [Self; 3] = [Self::Day, Self::Week, Self::Month];

    /// The days of 24 hours in it.
    pub const fn days(self) -> usize {
        match self {
            Self::Day => 1,
            Self::Week => 7,
            Self::Month => 30,
        }
    }

    pub const fn length(self) -> Duration {
        Duration::from_secs(self.days() as u64 * 86_400)
    }

    /// The name for people, which is also its class in the style sheet.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }
}

/// The width of a timeline, in its own units. A unit is a pixel or less.
pub(super) const WIDTH: u32 = 1_000;

/// The times of a window, on a line that is [`WIDTH`] long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    pub from: WallTime,
    pub until: WallTime,
}

impl Scale {
    /// The scale of the window that ends now.
    pub fn of(window: Window, now: WallTime) -> Self {
        let from = now.minus(window.length());
        // At the end of all numbers the window is as long.
        let until = from.plus(window.length());
        Self { from, until }
    }

    /// True if a time is in the window.
    pub fn has(&self, at: WallTime) -> bool {
        (self.from..=self.until).contains(&at)
    }

    /// Where a time lies. What is outside lies at the nearer end.
    pub fn at(&self, at: WallTime) -> u32 {
        let position = |ms: i64| i128::from(ms) - i128::from(self.from.0);
        let length = position(self.until.0).max(1);
        let passed = position(at.0).clamp(0, length);
        u32::try_from(passed * i128::from(WIDTH) / length).unwrap_or(WIDTH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-21 13:00:13.5 UTC.
    const NOVEMBER: WallTime = WallTime(1_795_266_013_500);

    /// A zone by POSIX' rules: the test needs no database of zones.
    fn berlin() -> Calendar {
        Calendar::new(TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap())
    }

    fn labels(window: Window) -> Vec<String> {
        let ticks = berlin().ticks(window, &Scale::of(window, NOVEMBER));
        ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn times_are_the_readers() {
        let calendar = berlin();
        assert_eq!(calendar.full(NOVEMBER), "2026-11-21 14:00:13");
        assert_eq!(calendar.exact(NOVEMBER), "2026-11-21T14:00:13+01:00");
        assert_eq!(calendar.zone_name(NOVEMBER), "CET");
        assert_eq!(Calendar::new(TimeZone::UTC).zone_name(NOVEMBER), "UTC");
        let hours = |hours: i64| WallTime(NOVEMBER.0 + hours * 3_600_000);
        assert_eq!(calendar.near(hours(-2), NOVEMBER), "12:00:13");
        assert_eq!(calendar.near(hours(-24), NOVEMBER), "Nov 20 14:00");
        assert_eq!(calendar.near(hours(-8_760), NOVEMBER), "2025-11-21 14:00");
    }

    #[test]
    fn a_day_begins_at_midnight_also_where_it_has_another_length() {
        // The clock went back on October 25th.
        let days = berlin().days(NOVEMBER, 30);
        let shown: Vec<String> = days.iter().map(|day| berlin().full(*day)).collect();
        assert_eq!(shown.len(), 30);
        assert_eq!(shown[0], "2026-10-23 00:00:00");
        assert!(shown.iter().all(|day| day.ends_with("00:00:00")));
        assert_eq!(days[3].0 - days[2].0, 25 * 3_600_000);
    }

    #[test]
    fn lines_are_whole_hours_and_days() {
        let day = [
            "15:00", "18:00", "21:00", "00:00", "03:00", "06:00", "09:00", "12:00",
        ];
        assert_eq!(labels(Window::Day), day);
        let week = [
            "Sun 15", "Mon 16", "Tue 17", "Wed 18", "Thu 19", "Fri 20", "Sat 21",
        ];
        assert_eq!(labels(Window::Week), week);
        let month = ["Nov 21", "Nov 16", "Nov 11", "Nov 6", "Nov 1", "Oct 27"];
        assert_eq!(labels(Window::Month), month);
    }

    #[test]
    fn times_of_any_size_can_be_shown() {
        for at in [WallTime(i64::MIN), WallTime(i64::MAX)] {
            assert!(!berlin().full(at).is_empty());
            assert!(!berlin().near(at, NOVEMBER).is_empty());
            let _ = berlin().days(at, 40);
            let _ = berlin().ticks(Window::Month, &Scale::of(Window::Month, at));
        }
    }

    #[test]
    fn a_time_lies_between_the_ends_of_its_window() {
        let now = WallTime(1_795_266_013_500);
        let scale = Scale::of(Window::Day, now);
        let hours = |hours: u64| now.minus(Duration::from_secs(hours * 3_600));
        assert_eq!(scale.at(now), WIDTH);
        assert_eq!(scale.at(hours(12)), 500);
        assert_eq!(scale.at(hours(24)), 0);
        assert_eq!(
            (
                scale.at(hours(30)),
                scale.at(now.plus(Window::Week.length()))
            ),
            (0, WIDTH)
        );
        assert!(scale.has(hours(24)) && !scale.has(hours(25)));
    }

    #[test]
    fn times_of_any_size_have_a_place() {
        for now in [WallTime(i64::MIN), WallTime(0), WallTime(i64::MAX)] {
            let scale = Scale::of(Window::Month, now);
            for at in [WallTime(i64::MIN), WallTime(0), WallTime(i64::MAX)] {
                assert!(scale.at(at) <= WIDTH);
            }
        }
    }
}
