//! The host's clocks, and the one that deadlines are counted on.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use crate::moment::Moment;

/// This process's own clock. A process that is forked from this one keeps the
/// origin, so moments of both can be compared.
///
/// It counts the larger of the times by CLOCK_BOOTTIME and CLOCK_MONOTONIC_RAW: the first goes on
/// while the machine is suspended but can be slewed (by 8.3 % and more), the second is never slewed
/// but stops in suspend. Counting too much ends a deadline too early, which is safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalClock {
    boot_origin: Duration,
    raw_origin: Duration,
}

impl LocalClock {
    /// Starts to count now. It can't fail: the kernel has had both clocks since 2.6.39.
    pub fn start() -> Self {
        Self {
            boot_origin: boottime(),
            raw_origin: monotonic_raw(),
        }
    }

    /// How much time has passed since the start, suspended time included.
    pub fn now(&self) -> Moment {
        self.moment_of(boottime(), monotonic_raw())
    }

    fn moment_of(&self, boot: Duration, raw: Duration) -> Moment {
        let by_boot = boot.saturating_sub(self.boot_origin);
        let by_raw = raw.saturating_sub(self.raw_origin);
        Moment(by_boot.max(by_raw))
    }
}

/// The milliseconds that CLOCK_BOOTTIME says, with the shift of this process's time namespace.
pub fn boot_millis() -> i64 {
    millis(ClockId::CLOCK_BOOTTIME)
}

/// The milliseconds since 1970 by the wall clock.
pub fn wall_millis() -> i64 {
    millis(ClockId::CLOCK_REALTIME)
}

/// A clock's milliseconds. Linux has had both clocks since 2.6.39, so that the call can't fail. If
/// it did, 0 would lie before every stamp, and a stamp in the future is never compared.
fn millis(clock: ClockId) -> i64 {
    clock_gettime(clock).map_or(0, |at| {
        let millis = i128::from(at.tv_sec()) * 1_000 + i128::from(at.tv_nsec()) / 1_000_000;
        i64::try_from(millis).unwrap_or(i64::MAX)
    })
}

/// What CLOCK_BOOTTIME says.
pub(super) fn boottime() -> Duration {
    read(ClockId::CLOCK_BOOTTIME)
}

fn monotonic_raw() -> Duration {
    read(ClockId::CLOCK_MONOTONIC_RAW)
}

/// If the call ever failed, every deadline would be over.
fn read(clock: ClockId) -> Duration {
    clock_gettime(clock).map_or(Duration::MAX, |time| {
        let seconds = u64::try_from(time.tv_sec()).unwrap_or_default();
        let nanos = u32::try_from(time.tv_nsec()).unwrap_or_default();
        Duration::new(seconds, nanos)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: LocalClock = LocalClock {
        boot_origin: Duration::from_secs(100),
        raw_origin: Duration::from_secs(40),
    };

    fn moment_at(boot: u64, raw: u64) -> Moment {
        CLOCK.moment_of(Duration::from_secs(boot), Duration::from_secs(raw))
    }

    #[test]
    fn the_larger_of_both_clocks_counts() {
        assert_eq!(moment_at(107, 45), Moment(Duration::from_secs(7)));
        assert_eq!(moment_at(105, 47), Moment(Duration::from_secs(7)));
    }

    #[test]
    fn a_clock_that_stands_before_its_origin_counts_as_nothing() {
        assert_eq!(moment_at(99, 39), Moment::default());
    }

    #[test]
    fn time_goes_on() {
        let clock = LocalClock::start();
        let first = clock.now();
        while clock.now() == first {
            std::hint::spin_loop();
        }
        assert!(clock.now() > first);
    }
}
