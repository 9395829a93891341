//! A server's clock against this host's: their difference, and steps of the server's clock.

use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Check;
use super::advice::precise;
use crate::duration::rounded;
use crate::store::Trouble;
use crate::sys::clock::LocalClock;
use crate::token::swap::EPOCH_FENCE_STEP;

/// How many samples are taken, and the pause between: a second in all.
const SAMPLES: usize = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// The limit for a slewed clock, as a divisor: chrony's and ntpd's own limit is 1/12, Linux's a
/// tenth.
const SLEW: i64 = 10;

/// The additional tolerance for two readings of a clock.
const GRAIN_US: i64 = 2_000;

/// Nothing compares two clocks, but people do, and so do keys of `--once` that are dates.
const APART_US: i64 = 10_000_000;

/// One answer: times since the first request, and both wall clocks.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct Sample {
    sent: Duration,
    answered: Duration,
    server_us: i64,
    /// This host's wall clock when the request was sent.
    wall_us: i64,
}

impl Sample {
    pub(in crate::store) fn round_trip(&self) -> Duration {
        self.answered.saturating_sub(self.sent)
    }
}

/// Bounds for how far the server's wall clock is ahead of this host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct Offset {
    pub(in crate::store) least_us: i64,
    pub(in crate::store) most_us: i64,
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Reads the time again and again. `ask`: the server's time in microseconds; `None` if it gave none.
///
/// # Errors
/// The first of `ask`.
pub(in crate::store) fn samples<E>(
    mut ask: impl FnMut() -> Result<Option<i64>, E>,
) -> Result<Vec<Sample>, E> {
    // A clock that goes on while this host is suspended, which must not look like a step.
    let clock = LocalClock::start();
    let mut taken = Vec::new();
    for _ in 0..SAMPLES {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        let sent = clock.now().0;
        let Some(server_us) = ask()? else { break };
        taken.push(Sample {
            sent,
            answered: clock.now().0,
            server_us,
            wall_us: micros(wall.unwrap_or_default()),
        });
        thread::sleep(PAUSE);
    }
    Ok(taken)
}

/// The clocks' difference, from the quickest answer.
pub(in crate::store) fn offset(samples: &[Sample]) -> Option<Offset> {
    let best = samples.iter().min_by_key(|sample| sample.round_trip())?;
    let most_us = best.server_us.saturating_sub(best.wall_us);
    Some(Offset {
        least_us: most_us.saturating_sub(micros(best.round_trip())),
        most_us,
    })
}

/// The largest step between two answers, in microseconds: the time by the server's clock, beyond
/// the time that can have passed.
fn step(samples: &[Sample]) -> i64 {
    let between = |pair: &[Sample]| -> i64 {
        let [first, second] = pair else { return 0 };
        let least = micros(second.sent.saturating_sub(first.answered));
        let most = micros(second.answered.saturating_sub(first.sent));
        let said = second.server_us.saturating_sub(first.server_us);
        if said > most + most / SLEW + GRAIN_US {
            said.saturating_sub(most)
        } else if said < least - least / SLEW - GRAIN_US {
            said.saturating_sub(least)
        } else {
            0
        }
    };
    let steps = samples.windows(2).map(between);
    steps.max_by_key(|step| step.unsigned_abs()).unwrap_or(0)
}

/// `3ms ahead of`, `1h behind`.
fn apart(us: i64) -> String {
    let length = Duration::from_micros(us.unsigned_abs());
    if us < 0 {
        format!("{} behind", precise(length))
    } else {
        format!("{} ahead of", precise(length))
    }
}

/// Judges the clock by the answers.
pub(in crate::store) fn judge(samples: &[Sample]) -> Check {
    const STEP: &str = "clock";
    const CHRONY: &str =
        "let chrony or another NTP client slew the clock of the server, and never step it";
    let Some(offset) = offset(samples) else {
        return Check::warn(STEP, "the server did not tell its time", "see its log");
    };
    let stepped = step(samples);
    if stepped != 0 {
        let way = if stepped > 0 { "forward" } else { "back" };
        let length = precise(Duration::from_micros(stepped.unsigned_abs()));
        return Check::fail(
            STEP,
            Trouble::Misconfigured,
            format!(
                "the server's clock stepped {way} by {length} while it was watched, or this host stood still: every token ages by a step"
            ),
            CHRONY,
        );
    }
    let middle = offset.least_us.midpoint(offset.most_us);
    let give = precise(Duration::from_micros(
        offset.most_us.abs_diff(offset.least_us) / 2,
    ));
    let watched = samples.last().map_or(Duration::ZERO, |last| last.answered);
    let found = format!(
        "the server's is {} this host's, give or take {give}; no step within {}",
        apart(middle),
        rounded(watched)
    );
    if middle.abs() > APART_US {
        return Check::warn(
            STEP,
            format!("{found}; no age depends on that, but dates and the fence do"),
            "run chrony or another NTP client on both hosts",
        );
    }
    Check::fine(STEP, found)
}

/// How far apart two servers' clocks may be for the fence to rise in a failover.
const FENCE_US: u64 = EPOCH_FENCE_STEP.unsigned_abs() * 1_000;

/// Checks that the servers' clocks are close enough for the fence to rise in a failover.
pub(in crate::store) fn between(servers: &[(String, Option<Offset>)]) -> Option<Check> {
    const STEP: &str = "clocks";
    let (first, origin) = servers.first()?;
    let origin = origin.as_ref()?;
    let mut found = Vec::new();
    let mut widest = 0_u64;
    for (name, clock) in servers.get(1..)? {
        let clock = clock.as_ref()?;
        // The smallest possible difference.
        let most = clock.most_us.saturating_sub(origin.least_us);
        let least = clock.least_us.saturating_sub(origin.most_us);
        let distance = if least > 0 { least } else { most.min(0) };
        widest = widest.max(distance.unsigned_abs());
        found.push(format!("{name} is {} {first}", apart(least.midpoint(most))));
    }
    let found = found.join("; ");
    match widest {
        _ if found.is_empty() => None,
        ..FENCE_US => Some(Check::fine(STEP, found)),
        FENCE_US.. => Some(Check::warn(
            STEP,
            format!("{found}: after a failover the fence may be lower than before"),
            "run chrony or another NTP client on every server",
        )),
    }
}

/// Stamps in the future show that a clock was set back. `ahead_ms`: how far the newest is ahead.
pub(in crate::store) fn stamps(ahead_ms: i64) -> Check {
    const STEP: &str = "stamps";
    if ahead_ms <= GRAIN_US / 1_000 {
        return Check::fine(STEP, "none in the tokens lies in the future");
    }
    let length = rounded(Duration::from_millis(ahead_ms.unsigned_abs()));
    Check::warn(
        STEP,
        format!(
            "the newest stamp in the tokens lies {length} in the future: the server's clock was set \
             back, or another server with a clock ahead of it wrote it"
        ),
        "correct the clock; if a backup was put back, see tokenrun fence raise",
    )
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::super::pinned::pin;
    use super::*;

    /// Answers 50 ms apart, each within 2 ms, by a clock that is so far ahead.
    fn answers(ahead_us: &[i64]) -> Vec<Sample> {
        let at = |n: usize| Duration::from_millis(50 * n as u64);
        let sample = |(n, ahead): (usize, &i64)| Sample {
            sent: at(n),
            answered: at(n) + Duration::from_millis(2),
            server_us: 1_000_000_000 + micros(at(n)) + 1_000 + ahead,
            wall_us: 1_000_000_000 + micros(at(n)),
        };
        ahead_us.iter().enumerate().map(sample).collect()
    }

    #[test]
    fn clocks_that_agree_are_fine() {
        let same = answers(&[0; 5]);
        let offset = offset(&same).unwrap();
        assert_eq!((offset.least_us, offset.most_us), (-1_000, 1_000));
        assert_eq!(judge(&same).verdict, Verdict::Fine);
    }

    #[test]
    fn a_clock_far_off_is_a_warning_and_no_step() {
        let off = judge(&answers(&[3_600_000_000; 5]));
        assert_eq!(off.verdict, Verdict::Warn);
        assert!(off.found.contains("1h ahead"), "{off:?}");
        let behind = judge(&answers(&[-3_600_000_000; 5]));
        assert!(behind.found.contains("1h behind"), "{behind:?}");
        // The middle of a round trip is no exact time.
        let about = judge(&answers(&[3_599_999_900; 5]));
        assert!(about.found.contains("1h ahead"), "{about:?}");
    }

    #[test]
    fn a_step_is_found_in_both_directions() {
        for (step, word) in [(500_000, "forward by 500 ms"), (-500_000, "back by 500 ms")] {
            let said = judge(&answers(&[0, 0, step, step]));
            assert_eq!(said.verdict, Verdict::Fail(Trouble::Misconfigured));
            let word = word.split(" by").next().unwrap();
            assert!(said.found.contains(word), "{said:?}");
        }
    }

    #[test]
    fn a_clock_that_is_slewed_does_not_step() {
        // By a twelfth of 50 ms each time.
        let slewed: Vec<i64> = (0..6).map(|n| n * 4_166).collect();
        assert_eq!(step(&answers(&slewed)), 0);
    }

    #[test]
    fn the_texts_are_pinned() {
        pin(
            "clock",
            [
                ("agree", vec![judge(&answers(&[0; 5]))]),
                ("ahead", vec![judge(&answers(&[3_600_000_000; 5]))]),
                ("behind", vec![judge(&answers(&[-3_600_000_000; 5]))]),
                ("forward", vec![judge(&answers(&[0, 0, 500_000, 500_000]))]),
                ("back", vec![judge(&answers(&[0, 0, -500_000, -500_000]))]),
                ("silent", vec![judge(&[])]),
                ("stamps", vec![stamps(2), stamps(3_600_000)]),
            ],
        );
    }

    #[test]
    fn a_server_a_minute_off_is_a_warning_in_both_directions() {
        let server = |name: &str, ahead_us: i64| {
            let offset = Offset {
                least_us: ahead_us - 500,
                most_us: ahead_us + 500,
            };
            (name.to_owned(), Some(offset))
        };
        for (ahead, verdict) in [
            (0, Verdict::Fine),
            (59_000_000, Verdict::Fine),
            (61_000_000, Verdict::Warn),
            (-61_000_000, Verdict::Warn),
        ] {
            let both = [server("a", 0), server("b", ahead)];
            assert_eq!(between(&both).unwrap().verdict, verdict, "{ahead}");
        }
        assert!(between(&[server("a", 0)]).is_none());
        assert!(between(&[server("a", 0), ("b".to_owned(), None)]).is_none());
    }

    #[test]
    fn no_answer_at_all_is_no_panic() {
        assert_eq!(judge(&[]).verdict, Verdict::Warn);
        assert_eq!(step(&[]), 0);
    }
}
