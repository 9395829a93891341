//! Runs as marks on a line: what would lie on each other is one mark. Pure.

use crate::token::{Outcome, RunRecord, WallTime};

use super::calendar::{Scale, WIDTH};
use super::view::{Detail, plural};

/// What a run looks like. A later one is graver, and is drawn over the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Succeeded,
    NotStarted,
    Running,
    /// Also killed, or timed out.
    Failed,
    /// Also unknown.
    Lost,
}

impl Kind {
    pub const ALL: [Self; 5] = [
        Self::Succeeded,
        Self::NotStarted,
        Self::Running,
        Self::Failed,
        Self::Lost,
    ];

    pub const fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Succeeded => Self::Succeeded,
            Outcome::NotStarted => Self::NotStarted,
            Outcome::Running => Self::Running,
            Outcome::Failed | Outcome::Signalled | Outcome::TimedOut => Self::Failed,
            Outcome::Lost | Outcome::Unknown => Self::Lost,
        }
    }

    /// The place in [`Counts`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The meaning in words.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::NotStarted => "not started",
            Self::Running => "running",
            Self::Failed => "failed, killed or timed out",
            Self::Lost => "lost or unknown",
        }
    }

    /// The class in the style sheet, which is also the name of its sign.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Succeeded => "s",
            Self::NotStarted => "n",
            Self::Running => "r",
            Self::Failed => "f",
            Self::Lost => "l",
        }
    }

    /// True for ends that need a look.
    pub const fn is_grave(self) -> bool {
        matches!(self, Self::Failed | Self::Lost)
    }
}

/// How many runs of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts([u64; Kind::ALL.len()]);

impl Counts {
    /// What marks stand for.
    pub(super) fn of<'a>(marks: impl IntoIterator<Item = &'a Mark>) -> Self {
        let mut counts = Self::default();
        for mark in marks {
            counts.add(mark.kind, mark.count.into());
        }
        counts
    }

    pub(super) fn add(&mut self, kind: Kind, number: u64) {
        if let Some(count) = self.0.get_mut(kind.index()) {
            *count = count.saturating_add(number);
        }
    }

    pub(super) fn get(&self, kind: Kind) -> u64 {
        self.0.get(kind.index()).copied().unwrap_or_default()
    }

    pub(super) fn sum(&self) -> u64 {
        self.0
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// `3 runs: 2 succeeded, 1 running`.
    pub(super) fn text(&self) -> String {
        let kinds = Kind::ALL.iter().zip(self.0);
        let parts = kinds.filter(|(_, count)| *count > 0);
        let parts: Vec<String> = parts
            .map(|(kind, count)| format!("{count} {}", kind.meaning()))
            .collect();
        match parts.as_slice() {
            [] => "no runs".to_owned(),
            parts => format!("{}: {}", plural(self.sum(), "run"), parts.join(", ")),
        }
    }
}

/// One run, or several of one kind that are too close to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Where it begins and ends.
    pub from: u32,
    pub to: u32,
    pub kind: Kind,
    pub count: u32,
    pub began: WallTime,
    pub ended: WallTime,
    /// Of the only run.
    pub outcome: Outcome,
    /// The exit code or the signal of the only run.
    pub code: Option<i32>,
}

/// The least width of a mark, about a pixel on a narrow screen.
const LEAST: u32 = 3;

/// When a run ended, as far as it is known; one that goes on ends now.
pub(super) fn end_of(run: &RunRecord, now: WallTime) -> WallTime {
    let open = match run.outcome {
        Outcome::Running => now,
        _ => run.started_at,
    };
    run.ended_at.unwrap_or(open).max(run.started_at)
}

impl Mark {
    /// The mark of a run; `None` if it was over before, or began after.
    fn of(run: &RunRecord, scale: &Scale) -> Option<Self> {
        let ended = end_of(run, scale.until);
        if ended < scale.from || run.started_at > scale.until {
            return None;
        }
        let from = scale.at(run.started_at).min(WIDTH - LEAST);
        Some(Self {
            from,
            to: scale.at(ended).max(from + LEAST),
            kind: Kind::of(run.outcome),
            count: 1,
            began: run.started_at,
            ended,
            outcome: run.outcome,
            code: run.exit_code.filter(|code| *code != 0).or(run.signal),
        })
    }

    fn take(&mut self, other: Self) {
        self.to = self.to.max(other.to);
        self.count = self.count.saturating_add(other.count);
        self.ended = self.ended.max(other.ended);
    }
}

/// The marks of runs, which come in the order of their begins. Those of one kind are one mark if
/// there are at most [`Detail::near`] units between them; of grave ones, which have signs above
/// them, if there are at most [`Detail::gap`]. In the order in which they are drawn.
pub(super) fn marks<'a>(
    runs: impl Iterator<Item = &'a RunRecord>,
    scale: &Scale,
    detail: &Detail,
) -> Vec<Mark> {
    let mut drawn: Vec<Vec<Mark>> = vec![Vec::new(); Kind::ALL.len()];
    for mark in runs.filter_map(|run| Mark::of(run, scale)) {
        let Some(like) = drawn.get_mut(mark.kind.index()) else {
            continue;
        };
        let gap = match mark.kind.is_grave() {
            true => detail.gap,
            false => detail.near,
        };
        match like.last_mut() {
            Some(last) if mark.from <= last.to.saturating_add(gap) => last.take(mark),
            _ => like.push(mark),
        }
    }
    drawn.concat()
}

#[cfg(test)]
mod tests {
    use super::super::calendar::Window;
    use super::super::fixture::{NOW, ago, run};
    use super::*;

    fn drawn(runs: &[RunRecord], gap: u32) -> Vec<(&'static str, u32, u32, u32)> {
        let scale = Scale::of(Window::Day, NOW);
        let detail = Detail {
            gap,
            ..Detail::of(1)
        };
        let marks = marks(runs.iter(), &scale, &detail);
        let shown = |mark: &Mark| (mark.kind.class(), mark.from, mark.to, mark.count);
        marks.iter().map(shown).collect()
    }

    #[test]
    fn a_run_lies_where_it_was_and_is_never_too_small() {
        let runs = [
            run("a", ago(12 * 60), Some(ago(6 * 60)), Outcome::Succeeded),
            run("a", ago(3 * 60), Some(ago(3 * 60)), Outcome::Failed),
            run("a", ago(0), None, Outcome::Running),
        ];
        let shown = [("s", 500, 750, 1), ("r", 997, 1_000, 1), ("f", 875, 878, 1)];
        assert_eq!(drawn(&runs, 0), shown);
    }

    #[test]
    fn what_is_close_is_one_mark() {
        let minutely = |outcome| {
            let runs = (0..60).rev();
            runs.map(move |at| run("a", ago(at + 1), Some(ago(at)), outcome))
        };
        let runs: Vec<_> = minutely(Outcome::Succeeded).collect();
        assert_eq!(drawn(&runs, 0), [("s", 958, 1_000, 60)]);
        let runs = [
            run("a", ago(60), Some(ago(60)), Outcome::Failed),
            run("a", ago(50), Some(ago(50)), Outcome::TimedOut),
            run("a", ago(40), Some(ago(40)), Outcome::Lost),
        ];
        assert_eq!(drawn(&runs, 0).len(), 3);
        assert_eq!(drawn(&runs, 8), [("f", 958, 968, 2), ("l", 972, 975, 1)]);
    }

    #[test]
    fn what_is_outside_is_left_out() {
        let week = 7 * 24 * 60;
        let runs = [
            run("a", ago(2 * week), Some(ago(week)), Outcome::Succeeded),
            run("a", ago(week), Some(ago(60)), Outcome::Succeeded),
        ];
        assert_eq!(drawn(&runs, 0), [("s", 0, 958, 1)]);
    }
}
