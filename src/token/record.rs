//! The record that every run leaves in history.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::names::{ClientId, Fence, GroupName, SessionId};
use super::row::Row;
use super::time::StoreTime;

/// How a run ended, or that it has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It has not ended.
    Running,
    /// The job exited with 0.
    Succeeded,
    /// The job exited with another code.
    Failed,
    /// The job was killed by a signal.
    Signalled,
    /// The job was ended because it ran longer than `--timeout`.
    TimedOut,
    /// The job was ended because its token was lost or could not be guarded.
    Lost,
    /// The token was granted, the job not started.
    NotStarted,
    /// The holder vanished: nobody knows.
    Unknown,
}

/// How a client came by the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantKind {
    /// It belonged to nobody.
    Bind,
    /// It belonged to this client.
    Renew,
    /// It belonged to another.
    Takeover,
    /// It belonged to another, and this client is the expected one.
    Failback,
    /// It was handed off to this client.
    Handoff,
}

macro_rules! words {
    ($type:ty { $($variant:ident => $word:literal),+ $(,)? }) => {
        impl $type {
            /// The word for it in stores, tables and JSON.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The value that a store's word stands for.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

words!(Outcome {
    Running => "running", Succeeded => "succeeded", Failed => "failed",
    Signalled => "signalled", TimedOut => "timed_out", Lost => "lost",
    NotStarted => "not_started", Unknown => "unknown",
});
words!(GrantKind {
    Bind => "bind", Renew => "renew", Takeover => "takeover",
    Failback => "failback", Handoff => "handoff",
});

/// How a session closes its own run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RunEnd {
    /// How it ended; never [`Outcome::Running`] or [`Outcome::Unknown`].
    pub outcome: Outcome,
    /// The job's exit code, if it exited.
    pub exit_code: Option<i32>,
    /// The signal that killed the job, if one did.
    pub signal: Option<i32>,
}

/// What became of a session's own record of its run ([`crate::store::Store::record`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Recorded {
    /// History has it now, and the run's key is done if it succeeded with one.
    Written,
    /// The session had closed it before: nothing changed.
    Already,
}

/// A key of `--once` whose run has succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OnceMark {
    /// In which group.
    pub group: GroupName,
    /// The key.
    pub key: String,
    /// When, by the store's wall clock, in milliseconds since 1970.
    pub done_at_ms: i64,
    /// The fence of the run's grant.
    pub fence: Fence,
    /// Which invocation.
    pub session: SessionId,
    /// Whose.
    pub client: ClientId,
}

/// One run, as history keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunRecord {
    /// The group.
    pub group: GroupName,
    /// The fence of the run's grant; with the group it is unique in history.
    pub fence: Fence,
    /// Which invocation.
    pub session: SessionId,
    /// Whose.
    pub client: ClientId,
    /// Whose the token was before, if another's.
    pub previous_client: Option<ClientId>,
    /// The host it ran on.
    pub host: Option<String>,
    /// The supervisor's pid there.
    pub pid: Option<i32>,
    /// What the user calls the run.
    pub label: Option<String>,
    /// The program's name. Arguments are never stored: they can hold secrets.
    pub program: String,
    /// The key that `--once` gave it.
    pub once_key: Option<String>,
    /// How the client came by the token.
    pub grant: GrantKind,
    /// When it was granted, by the store's wall clock, in milliseconds since 1970.
    pub started_at_ms: i64,
    /// When its record was closed, likewise.
    pub ended_at_ms: Option<i64>,
    /// How it ended.
    pub outcome: Outcome,
    /// The job's exit code, if it exited.
    pub exit_code: Option<i32>,
    /// The signal that killed the job, if one did.
    pub signal: Option<i32>,
}

impl RunRecord {
    /// The record of this run, ended like this. The store sets the time of the end.
    #[must_use]
    pub fn ended(self, end: RunEnd) -> Self {
        Self {
            outcome: end.outcome,
            exit_code: end.exit_code,
            signal: end.signal,
            ..self
        }
    }

    /// Whether the key that `--once` gave the run is done with its end.
    #[must_use]
    pub fn makes_key_done(&self) -> bool {
        self.once_key.is_some() && self.outcome == Outcome::Succeeded
    }

    /// The mark that the run leaves if it makes its key done.
    #[must_use]
    pub fn once_mark(&self, done_at_ms: i64) -> Option<OnceMark> {
        let key = self.once_key.clone().filter(|_| self.makes_key_done())?;
        Some(OnceMark {
            group: self.group.clone(),
            key,
            done_at_ms,
            fence: self.fence,
            session: self.session.clone(),
            client: self.client.clone(),
        })
    }

    /// The outcome to show to people: a run whose session is no longer in the
    /// token, or silent for longer than it may be, is never shown as running.
    #[must_use]
    pub fn outcome_seen(&self, row: Option<&Row>, now: &StoreTime) -> Outcome {
        let alive = |row: &Row| row.session() == Some(&self.session) && !row.is_silent(now);
        match self.outcome {
            Outcome::Running if !row.is_some_and(alive) => Outcome::Unknown,
            outcome => outcome,
        }
    }

    /// Whether its session has not closed it yet: another may have called it *unknown*.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self.outcome, Outcome::Running | Outcome::Unknown)
    }
}

#[cfg(test)]
pub(crate) mod fixture {
    use super::*;
    use crate::token::row::State;

    /// The record of the run that holds the token of this row.
    pub(crate) fn run_of(row: &Row) -> RunRecord {
        let State::Running {
            client, session, ..
        } = &row.state
        else {
            panic!("{:?} has no run", row.state);
        };
        RunRecord {
            group: row.group.clone(),
            fence: row.fence,
            session: session.clone(),
            client: client.clone(),
            previous_client: None,
            host: row.host.clone(),
            pid: row.pid,
            label: row.label.clone(),
            program: "run.sh".into(),
            once_key: None,
            grant: GrantKind::Bind,
            started_at_ms: row.acquired_at.map_or(0, |stamp| stamp.wall_ms),
            ended_at_ms: None,
            outcome: Outcome::Running,
            exit_code: None,
            signal: None,
        }
    }

    /// The whole record of a run that the store knows nothing of.
    pub(crate) fn unheld_run(group: &GroupName, fence: i64) -> RunRecord {
        RunRecord {
            group: group.clone(),
            fence: Fence(fence),
            session: SessionId::new(&format!("unheld{fence}")).unwrap(),
            client: ClientId::new("a").unwrap(),
            previous_client: Some(ClientId::new("b").unwrap()),
            host: Some("host".into()),
            pid: Some(4711),
            label: Some("label".into()),
            program: "run.sh".into(),
            once_key: Some("key".into()),
            grant: GrantKind::Takeover,
            started_at_ms: 1_789_999_990_000,
            ended_at_ms: None,
            outcome: Outcome::Running,
            exit_code: None,
            signal: None,
        }
        .ended(RunEnd {
            outcome: Outcome::Succeeded,
            exit_code: Some(0),
            signal: None,
        })
    }
}
