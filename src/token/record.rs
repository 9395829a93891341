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
    /// With that the key in the run's record is done.
    pub marks_once: bool,
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

/// Which of a group's runs: the fence of its grant finds it, the session shows whose
/// it is. An operator may raise the row's fence meanwhile; this one stays.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunId {
    /// The fence of the run's grant.
    pub fence: Fence,
    /// Which invocation.
    pub session: SessionId,
}

/// One run, as history keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunRecord {
    /// The group.
    pub group: GroupName,
    /// The fence of the run's grant; with the group it is unique.
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
    /// The mark that the success of this run leaves, if it has a key.
    #[must_use]
    pub fn once_mark(&self, done_at_ms: i64) -> Option<OnceMark> {
        Some(OnceMark {
            group: self.group.clone(),
            key: self.once_key.clone()?,
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

    /// Closes the record, unless its session has done so already.
    /// Returns whether it was open.
    pub fn close(&mut self, end: &RunEnd, now: &StoreTime) -> bool {
        let open = matches!(self.outcome, Outcome::Running | Outcome::Unknown);
        if open {
            self.outcome = end.outcome;
            self.exit_code = end.exit_code;
            self.signal = end.signal;
            self.ended_at_ms = Some(now.stamp.wall_ms);
        }
        open
    }
}
