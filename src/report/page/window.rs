//! The windows of time that are drawn, and where a time lies in one. Pure.

use std::time::Duration;

use crate::token::WallTime;

/// How long the newest part of history is that a timeline shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    Day,
    Week,
    Month,
}

impl Window {
    pub const ALL: [Self; 3] = [Self::Day, Self::Week, Self::Month];

    /// Its days of 24 hours.
    #[must_use]
    pub const fn days(self) -> usize {
        match self {
            Self::Day => 1,
            Self::Week => 7,
            Self::Month => 30,
        }
    }

    #[must_use]
    pub const fn length(self) -> Duration {
        Duration::from_secs(self.days() as u64 * 86_400)
    }

    /// Its name for people, which is also its class in the style sheet.
    #[must_use]
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
    #[must_use]
    pub fn of(window: Window, now: WallTime) -> Self {
        let from = now.minus(window.length());
        // At the end of all numbers the window is as long.
        let until = from.plus(window.length());
        Self { from, until }
    }

    /// Whether a time is in the window.
    #[must_use]
    pub fn has(&self, at: WallTime) -> bool {
        (self.from..=self.until).contains(&at)
    }

    /// Where a time lies. What is outside lies at the nearer end.
    #[must_use]
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
