//! Two kinds of time: [`Moment`](crate::moment::Moment) for deadlines, on the holder's own clock;
//! [`StoreTime`] for rows, on the store's. Neither is ever converted into the other.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::mutant::{Mutant, is_mutant};

/// The clock that a stamp belongs to: a store's clock in one incarnation. Stamps of two clock
/// epochs are never compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClockEpoch(pub String);

impl fmt::Display for ClockEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A time of a store's wall clock, in milliseconds since 1970: for people, and for what is meant by
/// the calendar. No age that the rule needs is measured with it within a clock epoch.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct WallTime(pub i64);

impl WallTime {
    /// This time and `by` after it.
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(in_millis(by)))
    }

    /// The time that lies `by` before this one.
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(in_millis(by)))
    }

    /// How long after `earlier` this time is. `None` if it is before.
    pub fn since(self, earlier: Self) -> Option<Duration> {
        millis_between(earlier.0, self.0)
    }
}

fn in_millis(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}

/// A time stamp in a row, in its row's clock epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stamp {
    /// Milliseconds on the store's clock that measures ages. Meaningless outside its clock epoch.
    pub tick_ms: i64,
    /// Milliseconds since 1970 on the store's wall clock: for people, and for durations that are
    /// meant by the calendar.
    #[serde(rename = "wall_ms")]
    pub wall: WallTime,
}

impl Stamp {
    /// The stamp of the same clock that lies `by` before this one.
    pub fn minus(self, by: Duration) -> Self {
        Self {
            tick_ms: self.tick_ms.saturating_sub(in_millis(by)),
            wall: self.wall.minus(by),
        }
    }
}

/// The store's time at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StoreTime {
    pub epoch: ClockEpoch,
    pub stamp: Stamp,
}

/// How long a store may carry a request out. It comes with the store's time; the rule and a run
/// carry it without reading it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Until {
    epoch: ClockEpoch,
    tick_ms: i64,
}

impl Until {
    /// The clock epoch of the time: in another one the time has passed.
    pub const fn epoch(&self) -> &ClockEpoch {
        &self.epoch
    }

    /// The last tick at which the request is carried out, in milliseconds ([`Stamp::tick_ms`]).
    pub const fn tick_ms(&self) -> i64 {
        self.tick_ms
    }
}

impl StoreTime {
    /// The age of a stamp of `clock_epoch`. `None` if unknown: the stamp belongs to another clock
    /// epoch, or lies in the future.
    pub fn age_of(&self, stamp: Stamp, epoch: Option<&ClockEpoch>) -> Option<Duration> {
        if epoch != Some(&self.epoch) && !is_mutant(Mutant::AgesAcrossEpochs) {
            return None;
        }
        millis_between(stamp.tick_ms, self.stamp.tick_ms)
    }

    /// The age of a stamp by the calendar: by the tick clock within one clock epoch, by the wall
    /// clock elsewhere. A stamp in the future counts as now.
    pub fn calendar_age_of(&self, stamp: Stamp, epoch: Option<&ClockEpoch>) -> Duration {
        let by_wall = || self.stamp.wall.since(stamp.wall).unwrap_or_default();
        self.age_of(stamp, epoch).unwrap_or_else(by_wall)
    }

    /// This time with `by` added to it, in the same clock epoch.
    pub fn plus(&self, by: Duration) -> Self {
        Self {
            epoch: self.epoch.clone(),
            stamp: Stamp {
                tick_ms: self.stamp.tick_ms.saturating_add(in_millis(by)),
                wall: self.stamp.wall.plus(by),
            },
        }
    }

    /// The wall time `back` before now.
    pub fn wall_before(&self, back: Duration) -> WallTime {
        self.stamp.wall.minus(back)
    }

    /// Until `by` from now, in this clock epoch.
    pub fn until(&self, by: Duration) -> Until {
        Until {
            epoch: self.epoch.clone(),
            tick_ms: self.stamp.tick_ms.saturating_add(in_millis(by)),
        }
    }

    /// True if a request is too late now. Two clock epochs can't be compared, so another one counts
    /// as too late.
    pub fn is_past(&self, until: &Until) -> bool {
        self.epoch != until.epoch || self.stamp.tick_ms > until.tick_ms
    }
}

fn millis_between(earlier: i64, later: i64) -> Option<Duration> {
    let passed = later.checked_sub(earlier)?;
    u64::try_from(passed).ok().map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(epoch: &str, tick_ms: i64, wall: WallTime) -> StoreTime {
        StoreTime {
            epoch: ClockEpoch(epoch.into()),
            stamp: Stamp { tick_ms, wall },
        }
    }

    #[test]
    fn ages_of_another_epoch_or_of_the_future_are_unknown() {
        let now = at("a", 1000, WallTime(0));
        let stamp = |tick_ms| Stamp {
            tick_ms,
            wall: WallTime(0),
        };
        let a = ClockEpoch("a".into());
        let b = ClockEpoch("b".into());
        assert_eq!(
            now.age_of(stamp(400), Some(&a)),
            Some(Duration::from_millis(600))
        );
        assert_eq!(now.age_of(stamp(1001), Some(&a)), None);
        assert_eq!(now.age_of(stamp(400), Some(&b)), None);
        assert_eq!(now.age_of(stamp(400), None), None);
        assert_eq!(now.age_of(stamp(i64::MIN), Some(&a)), None);
    }

    #[test]
    fn the_calendar_age_ignores_the_wall_clock_within_one_epoch() {
        let a = ClockEpoch("a".into());
        let b = ClockEpoch("b".into());
        let stamp = Stamp {
            tick_ms: 1_000,
            wall: WallTime(50_000),
        };
        let stepped_back = at("a", 3_000, WallTime(7_000));
        assert_eq!(
            stepped_back.calendar_age_of(stamp, Some(&a)),
            Duration::from_secs(2)
        );
        assert_eq!(
            stepped_back.calendar_age_of(stamp, Some(&b)),
            Duration::ZERO
        );
        let later = at("a", 0, WallTime(60_000));
        assert_eq!(
            later.calendar_age_of(stamp, Some(&b)),
            Duration::from_secs(10)
        );
    }

    #[test]
    fn an_expiry_of_another_epoch_has_passed() {
        let expiry = at("a", 900, WallTime(0)).until(Duration::from_millis(100));
        assert!(!at("a", 1000, WallTime(0)).is_past(&expiry));
        assert!(at("a", 1001, WallTime(0)).is_past(&expiry));
        assert!(at("b", 0, WallTime(0)).is_past(&expiry));
    }
}
