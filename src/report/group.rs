//! A group as `status` shows it, in any format: the conditions that it is in, and its last finished run
//! in a narrow column: `ok 23h ago (4m)`, `failed (3) 1h ago`. Pure.

use serde::Serialize;

use super::records::{time_if_any, word};
use super::screen::Tint;
use crate::duration::brief;
use crate::sys::signals;
use crate::token::{
    ClientId, Memory, Outcome, Row, RunRecord, StampOf, State, StoreTime, Waiter, WallTime,
};

/// What a store said, and when.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    /// The store's name.
    pub store: &'a str,
    /// What the store may have forgotten.
    pub memory: &'a Memory,
    /// The store's time.
    pub now: &'a StoreTime,
}

/// A group as it is shown.
#[derive(Debug, Clone)]
pub struct Group<'a> {
    pub row: &'a Row,
    /// The last finished run.
    pub last: Option<LastRun>,
    /// Why the last try ran no job: that of the last run, or of a client that came later and could not start
    /// the job.
    pub unstarted: Option<String>,
    /// When the last run that succeeded ended, as far as history knows.
    pub last_success: Option<WallTime>,
    /// The waiters, in order.
    pub waiters: Vec<&'a Waiter>,
    /// What it is in, the gravest first.
    pub conditions: Vec<Condition>,
}

impl<'a> Group<'a> {
    /// The group whose last try ran no job, for this reason: its last run counts as failed.
    pub fn with_unstarted(mut self, reason: Option<String>) -> Self {
        if reason.is_some() && !self.conditions.contains(&Condition::Failed) {
            self.conditions.push(Condition::Failed);
            self.conditions.sort();
        }
        self.unstarted = reason;
        self
    }

    /// True if a person must look: the last run was no success, or the holder is silent.
    pub fn is_in_trouble(&self) -> bool {
        let troubles = [Condition::Failed, Condition::Silent];
        self.unstarted.is_some() || troubles.iter().any(|it| self.conditions.contains(it))
    }

    /// True if this client has the token, is expected to have it, gets it next or waits for it.
    pub fn concerns(&self, client: &ClientId) -> bool {
        let row = self.row;
        let named = [
            row.client_bound(),
            row.expected_client.as_ref(),
            row.next_client(),
        ];
        named.contains(&Some(client)) || self.waiters.iter().any(|it| it.client == *client)
    }

    /// The group of this row.
    pub fn new(
        row: &'a Row,
        last: Option<LastRun>,
        waiters: Vec<&'a Waiter>,
        at: Snapshot<'_>,
    ) -> Self {
        let conditions = Condition::all(row, last.as_ref(), at.memory, at.now);
        Self {
            row,
            last,
            unstarted: None,
            last_success: None,
            waiters,
            conditions,
        }
    }
}

/// A condition of a group; the gravest comes first. Several can hold at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// The row can't be read.
    Unreadable,
    /// Nothing is granted, because the store may have forgotten a grant.
    Observed,
    /// The holder has been silent for longer than allowed.
    Silent,
    /// The last finished run was no success.
    Failed,
    /// An operator has stopped new grants.
    Paused,
    Running,
    Idle,
    Free,
}

/// The words that qualify the state of a row.
pub fn qualities(row: &Row, memory: &Memory, now: &StoreTime) -> Vec<&'static str> {
    let all = [
        (row.is_silent(now), "silent"),
        (row.pause_at(now).is_some(), "paused"),
        (
            memory.observation(row.longest_lease(), now).is_some(),
            "observed",
        ),
    ];
    let true_ones = all.into_iter().filter(|(is, _)| *is);
    true_ones.map(|(_, word)| word).collect()
}

impl Condition {
    /// All that hold for a token, the gravest first.
    pub fn all(row: &Row, last: Option<&LastRun>, memory: &Memory, now: &StoreTime) -> Vec<Self> {
        let observed = memory.observation(row.longest_lease(), now).is_some();
        let failed = last.is_some_and(LastRun::is_trouble);
        let state = match row.state {
            State::Free => Self::Free,
            State::Idle { .. } => Self::Idle,
            State::Running { .. } => Self::Running,
        };
        let conditions = [
            (Self::Observed, observed),
            (Self::Silent, row.is_silent(now)),
            (Self::Failed, failed),
            (Self::Paused, row.pause_at(now).is_some()),
            (state, true),
        ];
        let held = conditions.into_iter().filter(|(_, holds)| *holds);
        held.map(|(condition, _)| condition).collect()
    }

    /// The colour of the state of a token in these conditions.
    pub(super) fn tint(all: &[Self]) -> Tint {
        let has = |condition| all.contains(&condition);
        if has(Self::Unreadable) || has(Self::Observed) {
            Tint::Bad
        } else if has(Self::Silent) || has(Self::Paused) {
            Tint::Stopped
        } else if has(Self::Running) {
            Tint::Good
        } else {
            Tint::Plain
        }
    }
}

/// A run that is over, also as an object of `status --json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LastRun {
    #[serde(serialize_with = "word")]
    outcome: Outcome,
    exit_code: Option<i32>,
    signal: Option<i32>,
    revoked: bool,
    #[serde(serialize_with = "time_if_any")]
    started_at: Option<WallTime>,
    /// The last heartbeat, if the run vanished.
    #[serde(serialize_with = "time_if_any")]
    ended_at: Option<WallTime>,
}

/// What a row says about the group's last finished run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// There was none.
    Never,
    /// All of it.
    All(LastRun),
    /// Only history has all of it.
    Part(Option<LastRun>),
}

impl LastRun {
    /// The run as history has it.
    pub const fn of(run: &RunRecord) -> Self {
        Self {
            outcome: run.outcome,
            revoked: run.revoked,
            exit_code: run.exit_code,
            signal: run.signal,
            started_at: Some(run.started_at),
            ended_at: run.ended_at,
        }
    }

    /// The run as far as its token says it.
    pub fn known(row: &Row) -> Known {
        let document = &row.document;
        let counters = document.counters;
        let none_before = counters.runs <= i64::from(row.run().is_some());
        let Some(outcome) = document.last_outcome else {
            return match none_before {
                true => Known::Never,
                false => Known::Part(None),
            };
        };
        let run = Self {
            outcome,
            revoked: false,
            exit_code: (outcome == Outcome::Succeeded).then_some(0),
            signal: None,
            started_at: None,
            ended_at: None,
        };
        let released = document.stamp_of == StampOf::Released;
        if released && !matches!(row.state, State::Running { .. }) && outcome == Outcome::Succeeded
        {
            return Known::All(Self {
                started_at: row.acquired_at().map(|stamp| stamp.wall),
                ended_at: Some(row.stamped.stamp.wall),
                ..run
            });
        }
        Known::Part(Some(run))
    }

    /// True if it ended without success, except by an act of an operator.
    pub const fn is_trouble(&self) -> bool {
        !self.revoked && !matches!(self.outcome, Outcome::Succeeded | Outcome::Running)
    }

    /// The run in a few words.
    pub fn text(&self, now: WallTime) -> String {
        let mut text = self.word();
        let Some(ended_at) = self.ended_at else {
            return text;
        };
        let age = now.since(ended_at).unwrap_or_default();
        text.push_str(&format!(" {} ago", brief(age)));
        // Of a run that was cut off, or vanished, its length says little.
        let took = self.started_at.and_then(|start| ended_at.since(start));
        let took = took.filter(|_| self.outcome == Outcome::Succeeded);
        if let Some(took) = took {
            text.push_str(&format!(" ({})", brief(took)));
        }
        text
    }

    fn word(&self) -> String {
        match (self.outcome, self.exit_code, self.signal) {
            (Outcome::Succeeded, ..) => "ok".to_owned(),
            (Outcome::Failed, Some(code), _) => format!("failed ({code})"),
            (Outcome::Signalled, _, Some(signal)) => format!("killed ({})", signals::name(signal)),
            (Outcome::Signalled, ..) => "killed".to_owned(),
            (Outcome::TimedOut, ..) => "timed out".to_owned(),
            (Outcome::NotStarted, ..) => "not started".to_owned(),
            (Outcome::Lost, ..) if self.revoked => "revoked".to_owned(),
            (outcome, ..) => outcome.to_string(),
        }
    }

    /// When it ended, if it succeeded.
    pub fn succeeded_at(&self) -> Option<WallTime> {
        self.ended_at.filter(|_| self.outcome == Outcome::Succeeded)
    }

    /// When it began, if that is known.
    pub const fn started_at(&self) -> Option<WallTime> {
        self.started_at
    }

    pub const fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// The colour of its text.
    pub const fn tint(&self) -> Tint {
        match self.is_trouble() {
            true => Tint::Bad,
            false => Tint::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::record::fixture::run_of;
    use crate::token::rule::tests::fixture::{but, free, idle, running};

    #[test]
    fn a_run_is_told_in_a_few_words() {
        let run = |outcome, exit_code, signal, revoked| {
            let record = RunRecord {
                outcome,
                exit_code,
                signal,
                revoked,
                started_at: WallTime(0),
                ended_at: Some(WallTime(240_000)),
                ..run_of(&running("a"))
            };
            LastRun::of(&record).text(WallTime(240_000 + 23 * 3_600_000))
        };
        assert_eq!(
            run(Outcome::Succeeded, Some(0), None, false),
            "ok 23h ago (4m)"
        );
        assert_eq!(
            run(Outcome::Failed, Some(3), None, false),
            "failed (3) 23h ago"
        );
        assert_eq!(
            run(Outcome::Signalled, None, Some(9), false),
            "killed (SIGKILL) 23h ago"
        );
        assert_eq!(
            run(Outcome::TimedOut, None, Some(15), false),
            "timed out 23h ago"
        );
        assert_eq!(run(Outcome::Lost, None, None, false), "lost 23h ago");
        assert_eq!(run(Outcome::Lost, None, None, true), "revoked 23h ago");
        assert_eq!(run(Outcome::Unknown, None, None, false), "unknown 23h ago");
        let unstarted = run(Outcome::NotStarted, None, None, false);
        assert_eq!(unstarted, "not started 23h ago");
    }

    #[test]
    fn a_token_says_all_of_a_success_after_which_it_is_not_held() {
        let ended = |row: Row, outcome| {
            but(row, |row| {
                row.document.last_outcome = Some(outcome);
                row.document.stamp_of = StampOf::Released;
                row.document.counters.runs = 2;
            })
        };
        let known = LastRun::known(&ended(idle("a"), Outcome::Succeeded));
        assert!(matches!(known, Known::All(_)), "{known:?}");
        for row in [
            ended(running("a"), Outcome::Succeeded),
            ended(idle("a"), Outcome::Failed),
        ] {
            let known = LastRun::known(&row);
            assert!(matches!(known, Known::Part(Some(_))), "{known:?}");
        }
        let new = but(free(), |row| row.document.counters.runs = 0);
        assert_eq!(LastRun::known(&new), Known::Never);
        let first = but(running("a"), |row| row.document.counters.runs = 1);
        assert_eq!(LastRun::known(&first), Known::Never);
    }
}
