//! What a group's token is in, for a reader who looks for trouble first. Pure.

use super::last_run::LastRun;
use super::screen::Tint;
use crate::token::{Memory, Row, State, StoreTime};

/// A condition of a group; the gravest comes first. Several can hold at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// Its row can't be read.
    Unreadable,
    /// Nothing is granted, because the store may have forgotten a grant.
    Observed,
    /// Its holder has been silent for longer than allowed.
    Silent,
    /// Its last finished run was no success.
    Failed,
    /// An operator has stopped new grants.
    Paused,
    Running,
    Idle,
    Free,
}

impl Condition {
    /// All that hold for a token, the gravest first.
    #[must_use]
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
