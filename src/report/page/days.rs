//! Runs by day: how many ended how, and how long they took. Pure.

use std::time::Duration;

use super::marks::{Counts, Kind, end_of};
use crate::token::{Outcome, RunRecord, WallTime};

/// How many days there are, with today.
pub(super) const DAYS: usize = 30;

/// A day's runs, by their begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Day {
    pub begin: WallTime,
    pub counts: Counts,
    /// How long those took that came to their own end.
    pub took: Option<Took>,
}

/// Durations: the shortest, the middle, one that only a twentieth are above, and the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Took {
    pub shortest: Duration,
    pub median: Duration,
    pub most: Duration,
    pub longest: Duration,
}

impl Took {
    /// `None` if there are no durations.
    pub fn of(mut all: Vec<Duration>) -> Option<Self> {
        all.sort_unstable();
        let at = |part: usize| all.get((all.len().saturating_sub(1) * part).div_ceil(100));
        Some(Self {
            shortest: *at(0)?,
            median: *at(50)?,
            most: *at(95)?,
            longest: *at(100)?,
        })
    }
}

/// How long a run took whose end is known: its job came to an end, by itself or at its time-out.
pub(super) fn took(run: &RunRecord) -> Option<Duration> {
    let is_whole = match run.outcome {
        Outcome::Succeeded | Outcome::Failed | Outcome::Signalled | Outcome::TimedOut => true,
        Outcome::Running | Outcome::NotStarted | Outcome::Lost | Outcome::Unknown => false,
    };
    let ended = run.ended_at.filter(|_| is_whole)?;
    ended.since(run.started_at)
}

/// The runs of each day that begins at one of these times, the oldest first.
pub(super) fn by_day(begins: &[WallTime], now: WallTime, runs: &[&RunRecord]) -> Vec<Day> {
    let next = begins.iter().skip(1).copied();
    let ends = next.chain([WallTime(now.0.saturating_add(1))]);
    let of_day = |(begin, end): (&WallTime, WallTime)| {
        let is_today = |run: &&&RunRecord| (*begin..end).contains(&run.started_at);
        let today = || runs.iter().filter(is_today);
        let mut counts = Counts::default();
        for run in today() {
            counts.add(Kind::of(run.outcome), 1);
        }
        Day {
            begin: *begin,
            counts,
            took: Took::of(today().filter_map(|run| took(run)).collect()),
        }
    };
    begins.iter().zip(ends).map(of_day).collect()
}

/// When a run was over, for a row of a table.
pub(super) fn length(run: &RunRecord, now: WallTime) -> Duration {
    end_of(run, now).since(run.started_at).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{NOW, ago, run};
    use super::*;

    #[test]
    fn quantiles_are_durations_that_were_seen() {
        let seconds = |all: &[u64]| all.iter().map(|s| Duration::from_secs(*s)).collect();
        assert_eq!(Took::of(Vec::new()), None);
        let one = Took::of(seconds(&[7])).unwrap();
        assert_eq!((one.shortest, one.longest), (one.median, one.most));
        let many: Vec<u64> = (1..=100).rev().collect();
        let took = Took::of(seconds(&many)).unwrap();
        let shown = [took.shortest, took.median, took.most, took.longest];
        assert_eq!(shown.map(|it| it.as_secs()), [1, 51, 96, 100]);
    }

    #[test]
    fn a_run_belongs_to_the_day_of_its_begin() {
        let day = 24 * 60;
        let begins = [ago(2 * day), ago(day)];
        let runs = [
            run("a", ago(3 * day), Some(ago(day)), Outcome::Succeeded),
            run("a", ago(day + 5), Some(ago(day - 5)), Outcome::Failed),
            run("a", ago(30), Some(ago(20)), Outcome::Succeeded),
            run("a", ago(20), Some(ago(10)), Outcome::Unknown),
            run("a", ago(0), None, Outcome::Running),
        ];
        let runs: Vec<&RunRecord> = runs.iter().collect();
        let days = by_day(&begins, NOW, &runs);
        let kinds = |day: &Day| Kind::ALL.map(|kind| day.counts.get(kind));
        let counts: Vec<_> = days.iter().map(kinds).collect();
        assert_eq!(counts, [[0, 0, 0, 1, 0], [1, 0, 1, 0, 1]]);
        let minutes = |day: &Day| day.took.unwrap().longest.as_secs() / 60;
        assert_eq!(days.iter().map(minutes).collect::<Vec<_>>(), [10, 10]);
    }
}
