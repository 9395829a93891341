//! The durations of a run, and every relation between them.

use std::time::Duration;

use crate::moment::Moment;

/// A dead holder must be taken over on the same day.
pub const TAKEOVER_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The shortest pause between two heartbeats.
pub const HEARTBEAT_MIN: Duration = Duration::from_millis(100);

/// The durations that a user gives; `None` gets its default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Time between two heartbeats.
    pub heartbeat: Option<Duration>,
    /// How long a running session may be silent.
    pub takeover_after: Option<Duration>,
    /// How long after a run other clients are refused outright.
    pub keep: Option<Duration>,
    /// How long a client without preference waits before it takes an open token.
    pub head_start: Option<Duration>,
    /// The least time between two grants.
    pub at_least: Option<Duration>,
    /// Time between the job's TERM and its KILL.
    pub kill_grace: Option<Duration>,
    /// How long one call of the store may take.
    pub store_timeout: Option<Duration>,
}

/// The durations of a run. A value of this type satisfies `heartbeat + 2 × store_timeout +
/// kill_grace + margin < takeover_after`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Timing {
    /// Time between two heartbeats.
    pub heartbeat: Duration,
    /// How long a running session may be silent.
    pub takeover_after: Duration,
    /// How long after a run other clients are refused outright. Zero releases at exit.
    pub keep: Duration,
    /// How long a client without preference waits before it takes an open token.
    pub head_start: Duration,
    /// The least time between two grants. Zero for none.
    pub at_least: Duration,
    /// Time between the job's TERM and its KILL.
    pub kill_grace: Duration,
    /// How long one call of the store may take.
    pub store_timeout: Duration,
}

/// Which duration does not fit, and which value would. Reads as a whole sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    /// A zero duration where zero is not allowed.
    #[error("{0} must be longer than 0; give for example {0} {1}")]
    Zero(&'static str, &'static str),
    /// Heartbeats would leave no time for anything else.
    #[error(
        "--heartbeat {} is too short; give at least {}",
        humantime::format_duration(*.0),
        humantime::format_duration(HEARTBEAT_MIN)
    )]
    HeartbeatTooShort(Duration),
    /// Longer than a day.
    #[error(
        "--takeover-after {} is too long: a dead holder must be taken over within 24h; give at most 24h",
        humantime::format_duration(*.0)
    )]
    TakeoverTooLong(Duration),
    /// The relation does not hold; a longer takeover-after would fix that.
    #[error(
        "--takeover-after {} is too short for --heartbeat {} + 2 x --store-timeout {} + --kill-grace {} + the margin {}: give --takeover-after {} or more",
        humantime::format_duration(.given.takeover_after),
        humantime::format_duration(.given.heartbeat),
        humantime::format_duration(.given.store_timeout),
        humantime::format_duration(.given.kill_grace),
        humantime::format_duration(.given.margin()),
        humantime::format_duration(*.least)
    )]
    TakeoverTooShort {
        /// The given durations.
        given: Box<Timing>,
        /// The least takeover-after that fits, in whole seconds.
        least: Duration,
    },
    /// The relation does not hold, and no takeover-after of a day or less fixes that.
    #[error(
        "{option} {} is too long: with --takeover-after at its most, 24h, it can be at most {}",
        humantime::format_duration(*.given),
        humantime::format_duration(*.most)
    )]
    TooLong {
        /// The longest of the options in the relation.
        option: &'static str,
        /// The given duration.
        given: Duration,
        /// The greatest value that fits, in whole seconds.
        most: Duration,
    },
}

impl TimingError {
    /// The options that it is about, as `--name`.
    pub fn options(&self) -> Vec<&'static str> {
        match self {
            Self::Zero(option, _) => vec![option],
            Self::HeartbeatTooShort(_) => vec!["--heartbeat"],
            Self::TakeoverTooLong(_) => vec!["--takeover-after"],
            Self::TakeoverTooShort { .. } => vec![
                "--takeover-after",
                "--heartbeat",
                "--store-timeout",
                "--kill-grace",
            ],
            Self::TooLong { option, .. } => vec![option, "--takeover-after"],
        }
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// The margin between the holder's own deadline and takeover-after: a tenth, at
/// least a second. Clocks may be slewed by 8.3 % (Linux's `adjtimex` bounds the
/// tick to ±10 % and the frequency to 500 ppm; chrony's and ntpd's own limit is
/// 1/12), which a tenth covers.
pub const fn margin_of(takeover_after: Duration) -> Duration {
    let tenth = Duration::from_nanos(takeover_after.as_nanos() as u64 / 10);
    if tenth.as_nanos() < SECOND.as_nanos() {
        SECOND
    } else {
        tenth
    }
}

impl Timing {
    /// Fills in defaults, then checks each duration and every relation between them.
    ///
    /// # Errors
    /// Names the option that does not fit and the least (or most) value that works.
    pub fn new(wishes: &Wishes) -> Result<Self, TimingError> {
        let takeover_after = wishes.takeover_after.unwrap_or(Duration::from_secs(300));
        if takeover_after > TAKEOVER_AFTER_MAX {
            return Err(TimingError::TakeoverTooLong(takeover_after));
        }
        let timing = Self::filled_in(wishes, takeover_after);
        for (option, value, example) in [
            ("--heartbeat", timing.heartbeat, "10s"),
            ("--takeover-after", timing.takeover_after, "5m"),
            ("--store-timeout", timing.store_timeout, "10s"),
        ] {
            if value.is_zero() {
                return Err(TimingError::Zero(option, example));
            }
        }
        if timing.heartbeat < HEARTBEAT_MIN {
            return Err(TimingError::HeartbeatTooShort(timing.heartbeat));
        }
        if timing.fits() {
            return Ok(timing);
        }
        Err(match Self::least_takeover_after(wishes) {
            Some(least) => TimingError::TakeoverTooShort {
                given: Box::new(timing),
                least,
            },
            None => Self::what_is_too_long(wishes),
        })
    }

    fn filled_in(wishes: &Wishes, takeover_after: Duration) -> Self {
        let seconds = Duration::from_secs;
        let store_timeout = seconds(10).min(takeover_after / 10);
        Self {
            heartbeat: wishes.heartbeat.unwrap_or(seconds(10)),
            takeover_after,
            keep: wishes.keep.unwrap_or(seconds(300)),
            head_start: wishes.head_start.unwrap_or(seconds(10)),
            at_least: wishes.at_least.unwrap_or(Duration::ZERO),
            kill_grace: wishes.kill_grace.unwrap_or(seconds(10)),
            store_timeout: wishes.store_timeout.unwrap_or(store_timeout),
        }
    }

    fn fits(&self) -> bool {
        let parts = [
            self.heartbeat,
            self.store_timeout,
            self.store_timeout,
            self.kill_grace,
            self.margin(),
        ];
        let sum = parts
            .iter()
            .try_fold(Duration::ZERO, |sum, part| sum.checked_add(*part));
        sum.is_some_and(|sum| sum < self.takeover_after)
    }

    /// The least takeover-after, in whole seconds, that fits the other wishes. The durations that
    /// it must hold grow slower than it does, so bisection finds it.
    fn least_takeover_after(wishes: &Wishes) -> Option<Duration> {
        let works = |secs| Self::filled_in(wishes, Duration::from_secs(secs)).fits();
        bisect(1, TAKEOVER_AFTER_MAX.as_secs(), works).map(Duration::from_secs)
    }

    fn what_is_too_long(wishes: &Wishes) -> TimingError {
        let at_most = Self::filled_in(wishes, TAKEOVER_AFTER_MAX);
        type Field = fn(&mut Wishes) -> &mut Option<Duration>;
        let candidates: [(&'static str, Duration, Field); 3] = [
            ("--heartbeat", at_most.heartbeat, |w| &mut w.heartbeat),
            ("--store-timeout", at_most.store_timeout, |w| {
                &mut w.store_timeout
            }),
            ("--kill-grace", at_most.kill_grace, |w| &mut w.kill_grace),
        ];
        let mut longest = candidates[0];
        for candidate in candidates {
            if candidate.1 > longest.1 {
                longest = candidate;
            }
        }
        let (option, given, field) = longest;
        let fails = |secs| {
            let mut tried = *wishes;
            *field(&mut tried) = Some(Duration::from_secs(secs));
            !Self::filled_in(&tried, TAKEOVER_AFTER_MAX).fits()
        };
        let first_that_fails = bisect(1, TAKEOVER_AFTER_MAX.as_secs(), fails).unwrap_or(1);
        TimingError::TooLong {
            option,
            given,
            most: Duration::from_secs(first_that_fails - 1),
        }
    }

    /// The distance of the holder's own deadline from takeover-after.
    pub const fn margin(&self) -> Duration {
        margin_of(self.takeover_after)
    }

    /// How long the holder may trust its lease, on its own clock, if the swap that was sent at
    /// `sent_at` happened.
    pub const fn trusted_until(&self, sent_at: Moment) -> Moment {
        sent_at.plus(self.takeover_after.saturating_sub(self.margin()))
    }

    /// When the job's tree is asked to end, so that its grace is over by
    /// [`Self::trusted_until`]. No job is started from here on.
    pub const fn last_start(&self, sent_at: Moment) -> Moment {
        self.trusted_until(sent_at).minus(self.kill_grace)
    }
}

/// The least number in `low..=high` that works, if all greater ones work too.
fn bisect(low: u64, high: u64, works: impl Fn(u64) -> bool) -> Option<u64> {
    if !works(high) {
        return None;
    }
    let (mut low, mut high) = (low, high);
    while low < high {
        let middle = low + (high - low) / 2;
        if works(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn secs(n: u64) -> Option<Duration> {
        Some(Duration::from_secs(n))
    }

    #[test]
    fn the_defaults_are_those_of_the_documentation_and_fit() {
        let t = Timing::new(&Wishes::default()).unwrap();
        assert_eq!(t.heartbeat, Duration::from_secs(10));
        assert_eq!(t.takeover_after, Duration::from_secs(300));
        assert_eq!(t.keep, Duration::from_secs(300));
        assert_eq!(t.head_start, Duration::from_secs(10));
        assert_eq!(t.kill_grace, Duration::from_secs(10));
        assert_eq!(t.store_timeout, Duration::from_secs(10));
        assert_eq!(t.margin(), Duration::from_secs(30));
        let sent = Moment(Duration::from_secs(1));
        assert_eq!(t.trusted_until(sent), Moment(Duration::from_secs(271)));
        assert_eq!(t.last_start(sent), Moment(Duration::from_secs(261)));
    }

    #[test]
    fn the_store_timeout_is_at_most_a_tenth_of_takeover_after() {
        let t = Timing::new(&Wishes {
            takeover_after: secs(30),
            ..Wishes::default()
        });
        assert_eq!(t.unwrap().store_timeout, Duration::from_secs(3));
    }

    #[test]
    fn a_takeover_after_that_is_too_short_names_the_least_value() {
        let wishes = Wishes {
            takeover_after: secs(20),
            ..Wishes::default()
        };
        let error = Timing::new(&wishes).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--takeover-after 20s is too short for --heartbeat 10s + 2 x --store-timeout 2s \
             + --kill-grace 10s + the margin 2s: give --takeover-after 29s or more"
        );
    }

    #[test]
    fn an_option_that_no_takeover_after_can_hold_is_named_with_its_greatest_value() {
        let wishes = Wishes {
            heartbeat: secs(90_000),
            ..Wishes::default()
        };
        let TimingError::TooLong { option, most, .. } = Timing::new(&wishes).unwrap_err() else {
            panic!("the heartbeat is too long");
        };
        assert_eq!(option, "--heartbeat");
        let mended = Wishes {
            heartbeat: Some(most),
            takeover_after: Some(TAKEOVER_AFTER_MAX),
            ..wishes
        };
        assert!(Timing::new(&mended).is_ok());
    }

    #[test]
    fn zero_is_refused_where_it_makes_no_sense() {
        for (wishes, option) in [
            (
                Wishes {
                    heartbeat: secs(0),
                    ..Wishes::default()
                },
                "--heartbeat",
            ),
            (
                Wishes {
                    takeover_after: secs(0),
                    ..Wishes::default()
                },
                "--takeover-after",
            ),
            (
                Wishes {
                    store_timeout: secs(0),
                    ..Wishes::default()
                },
                "--store-timeout",
            ),
        ] {
            let message = Timing::new(&wishes).unwrap_err().to_string();
            assert!(message.starts_with(option), "{message}");
        }
        let zeros = Wishes {
            keep: secs(0),
            head_start: secs(0),
            kill_grace: secs(0),
            at_least: secs(0),
            ..Wishes::default()
        };
        assert!(Timing::new(&zeros).is_ok());
    }

    proptest! {
        #[test]
        fn the_named_least_value_works_and_a_second_less_does_not(
            heartbeat in 0u64..200_000, takeover in 0u64..200_000,
            grace in 0u64..200_000, timeout in proptest::option::of(0u64..200_000),
        ) {
            let wishes = Wishes {
                heartbeat: secs(heartbeat),
                takeover_after: secs(takeover),
                kill_grace: secs(grace),
                store_timeout: timeout.and_then(secs),
                ..Wishes::default()
            };
            match Timing::new(&wishes) {
                Ok(t) => prop_assert!(
                    t.heartbeat + 2 * t.store_timeout + t.kill_grace + t.margin() < t.takeover_after
                ),
                Err(TimingError::TakeoverTooShort { least, .. }) => {
                    let with = |t| Timing::new(&Wishes { takeover_after: Some(t), ..wishes });
                    prop_assert!(with(least).is_ok());
                    prop_assert!(with(least - Duration::from_secs(1)).is_err());
                }
                Err(_) => {}
            }
        }

        #[test]
        fn no_durations_overflow(parts in proptest::array::uniform7(any::<u64>())) {
            let d = |i: usize| Some(Duration::from_millis(parts[i]));
            let _ = Timing::new(&Wishes {
                heartbeat: d(0), takeover_after: d(1), keep: d(2), head_start: d(3),
                at_least: d(4), kill_grace: d(5), store_timeout: d(6),
            });
        }
    }

    #[test]
    fn the_shortest_heartbeat_is_taken_and_a_shorter_one_is_not() {
        let with = |heartbeat| {
            Timing::new(&Wishes {
                heartbeat: Some(heartbeat),
                ..Wishes::default()
            })
        };
        assert!(with(HEARTBEAT_MIN).is_ok());
        let short = HEARTBEAT_MIN - Duration::from_millis(1);
        assert_eq!(with(short), Err(TimingError::HeartbeatTooShort(short)));
    }

    #[test]
    fn what_is_as_long_as_takeover_after_does_not_fit() {
        let with = |heartbeat| {
            Timing::new(&Wishes {
                heartbeat: secs(heartbeat),
                takeover_after: secs(100),
                store_timeout: secs(10),
                kill_grace: secs(20),
                ..Wishes::default()
            })
        };
        // 2 × 10 s, 20 s and the margin of 10 s leave 50 s.
        assert!(with(49).is_ok());
        assert!(with(50).is_err());
    }

    #[test]
    fn the_longest_of_several_is_named_and_each_error_names_its_options() {
        let wishes = Wishes {
            heartbeat: secs(40_000),
            store_timeout: secs(100_000),
            kill_grace: secs(40_000),
            ..Wishes::default()
        };
        let error = Timing::new(&wishes).unwrap_err();
        assert_eq!(error.options(), ["--store-timeout", "--takeover-after"]);
        let grace = Wishes {
            kill_grace: secs(100_000),
            ..Wishes::default()
        };
        let error = Timing::new(&grace).unwrap_err();
        assert_eq!(error.options(), ["--kill-grace", "--takeover-after"]);
        // Of two that are as long the first one is named.
        let both = Wishes {
            heartbeat: secs(100_000),
            kill_grace: secs(100_000),
            ..Wishes::default()
        };
        let error = Timing::new(&both).unwrap_err();
        assert_eq!(error.options(), ["--heartbeat", "--takeover-after"]);
        let zero = TimingError::Zero("--heartbeat", "10s");
        assert_eq!(zero.options(), ["--heartbeat"]);
        let short = TimingError::HeartbeatTooShort(Duration::ZERO);
        assert_eq!(short.options(), ["--heartbeat"]);
    }
}
