//! What history keeps: the record of every run, the end of its output, and acts of operators.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::document::{Others, millis};
use super::names::{ClientId, Fence, GroupName, Incarnation, SessionId, Version};
use super::outcome::{GrantKind, Outcome};
use super::row::{Row, State};
use super::time::{StoreTime, WallTime};

/// How a run ended, reported by its own session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunEnd {
    /// How it ended; never [`Outcome::Running`] or [`Outcome::Unknown`].
    pub outcome: Outcome,
    /// The job's exit code, if it exited.
    pub exit_code: Option<i32>,
    /// The signal that killed the job, if one did.
    pub signal: Option<i32>,
    /// An operator revoked the token: such a loss is not counted as one.
    pub revoked: bool,
    /// Why the job could not be started.
    pub reason: Option<String>,
}

/// The result of writing a session's own record of its run ([`crate::store::Records::record`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Recorded {
    /// History has the record, and the run's key is done if the run succeeded with one.
    Written,
    /// The session had written the record before: nothing changed.
    Already,
}

/// A key of `--once` whose run has succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OnceMark {
    #[serde(rename = "token_group")]
    pub group: GroupName,
    #[serde(rename = "once_key")]
    pub key: String,
    /// The time, by the store's wall clock.
    #[serde(rename = "done_at_ms")]
    pub done_at: WallTime,
    /// The fence of the run's grant.
    pub fence: Fence,
    pub session: SessionId,
    pub client: ClientId,
}

/// One run. While it runs, the token is its record ([`RunRecord::of`]); afterwards history keeps
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunRecord {
    #[serde(rename = "token_group")]
    pub group: GroupName,
    /// The fence of the run's grant. It may repeat after a failover to a clock that is behind.
    pub fence: Fence,
    /// The invocation. With the fence it is unique in a group's history.
    pub session: SessionId,
    pub client: ClientId,
    /// The client that the token belonged to before, if another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_client: Option<ClientId>,
    /// The host of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The supervisor's pid on that host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// The user's name for the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The program's name. Arguments are never stored: they can hold secrets.
    pub program: String,
    /// The key of `--once`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub once_key: Option<String>,
    /// How the client got the token.
    pub grant: GrantKind,
    /// When it was granted, by the store's wall clock.
    #[serde(rename = "started_at_ms")]
    pub started_at: WallTime,
    /// The time of the end, or of the last heartbeat, likewise. `None` in a record to be written:
    /// the store sets its own time.
    #[serde(
        default,
        rename = "ended_at_ms",
        skip_serializing_if = "Option::is_none"
    )]
    pub ended_at: Option<WallTime>,
    /// How it ended.
    pub outcome: Outcome,
    /// The job's exit code, if it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that killed the job, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The run lost its token because an operator revoked it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub revoked: bool,
    /// Why the job could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The limits within which its output is kept, if that was caught.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputLimits>,
    /// The run failed with `--move-on-failure`: its end left the token to any other client.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub moved_on: bool,
    /// What a newer program has added.
    #[serde(flatten)]
    pub other: Others,
}

/// How long the outputs of a group are kept, and how many of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OutputLimits {
    #[serde(rename = "retain_ms", with = "millis")]
    pub retain: Duration,
    /// At most so many, the newest.
    pub count: u32,
}

impl RunRecord {
    /// The run that holds a token; `None` if none does.
    pub fn of(row: &Row) -> Option<Self> {
        let State::Running { client, run } = &row.state else {
            return None;
        };
        let document = &row.document;
        Some(Self {
            group: row.group.clone(),
            fence: row.fence,
            session: run.session.clone(),
            client: client.clone(),
            previous_client: run.previous_client.clone(),
            host: document.host.clone(),
            pid: document.pid,
            label: document.label.clone(),
            program: run.program.clone(),
            once_key: run.once_key.clone(),
            grant: run.grant,
            started_at: row.acquired_at().map_or(WallTime(0), |stamp| stamp.wall),
            ended_at: None,
            outcome: Outcome::Running,
            exit_code: None,
            signal: None,
            revoked: false,
            reason: None,
            output: None,
            moved_on: false,
            other: run.other.clone(),
        })
    }

    /// The run that loses the token to another session: its own session has not reported its end.
    /// The last heartbeat is all that is known.
    pub fn vanished(row: &Row) -> Option<Self> {
        let heard_at = row.heartbeat_at()?;
        Self::of(row).map(|run| Self {
            outcome: Outcome::Unknown,
            ended_at: Some(heard_at.wall),
            ..run
        })
    }

    /// The record of this run with this end. The store sets the time of the end.
    pub fn ended(self, end: RunEnd) -> Self {
        Self {
            outcome: end.outcome,
            exit_code: end.exit_code,
            signal: end.signal,
            revoked: end.revoked,
            reason: end.reason,
            ..self
        }
    }

    /// True if the run's end makes its key of `--once` done.
    pub fn makes_key_done(&self) -> bool {
        self.once_key.is_some() && self.outcome == Outcome::Succeeded
    }

    /// The mark of the run's key, if the run makes it done.
    pub fn once_mark(&self, done_at: WallTime) -> Option<OnceMark> {
        let key = self.once_key.clone().filter(|_| self.makes_key_done())?;
        Some(OnceMark {
            group: self.group.clone(),
            key,
            done_at,
            fence: self.fence,
            session: self.session.clone(),
            client: self.client.clone(),
        })
    }

    /// The run as the store keeps it, written at `now`.
    pub fn written(self, now: &StoreTime) -> Self {
        Self {
            ended_at: self.ended_at.or(Some(now.stamp.wall)),
            ..self
        }
    }

    /// True if the run's own session has reported the end: then no other record replaces it.
    /// Another session records *unknown*, which the session's own record replaces.
    pub const fn is_final(&self) -> bool {
        !matches!(self.outcome, Outcome::Running | Outcome::Unknown)
    }
}

/// The end of a job's output.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OutputRecord {
    #[serde(rename = "token_group")]
    pub group: GroupName,
    /// The fence of the run's grant.
    pub fence: Fence,
    /// The run's session.
    pub session: SessionId,
    /// When it was written, by the store's wall clock. The store sets it.
    #[serde(rename = "written_at_ms")]
    pub written_at: WallTime,
    /// The number of bytes that the job printed, of which only the last are kept.
    pub printed: u64,
    /// The last bytes, in base64: a job may print anything.
    pub last: String,
    /// What a newer program has added.
    #[serde(flatten)]
    pub other: Others,
}

impl OutputRecord {
    /// The record of a run whose job printed so many bytes, the last of them these. The store sets
    /// the time.
    pub fn new(
        group: GroupName,
        fence: Fence,
        session: SessionId,
        printed: u64,
        last: &[u8],
    ) -> Self {
        Self {
            group,
            fence,
            session,
            written_at: WallTime::default(),
            printed,
            last: STANDARD.encode(last),
            other: Others::new(),
        }
    }

    /// The last bytes; `None` if the record is damaged.
    pub fn last_bytes(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.last).ok()
    }

    /// True if the job printed more than is kept.
    pub fn is_cut(&self) -> bool {
        let kept = self.last_bytes().map_or(0, |last| last.len());
        self.printed > u64::try_from(kept).unwrap_or(u64::MAX)
    }
}

/// The operator of an act.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Actor {
    /// The user's name.
    pub by: String,
    /// The host that the act comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The word for an act that changes the fence.
pub(super) const RAISE: &str = "fence_raise";

/// An act of an operator that happened, as history keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ActRecord {
    #[serde(rename = "token_group")]
    pub group: GroupName,
    /// When, by the store's wall clock. The store sets it, in the same
    /// swap.
    #[serde(rename = "at_ms")]
    pub at: WallTime,
    pub version: Version,
    /// What was done: the word of [`super::operator::Act`] or [`super::operator::Judgement`].
    pub act: String,
    /// The client that the act concerns: the new expected client, the target of the hand-off, or
    /// the client that lost the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientId>,
    /// Until when a pause lasts.
    #[serde(default, rename = "until_ms", skip_serializing_if = "Option::is_none")]
    pub until: Option<WallTime>,
    /// The key of `--once` that the same swap forgets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub once_key: Option<String>,
    /// The store's incarnation that the act concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Incarnation>,
    /// The fence that the row had; the new one, if the act raised it.
    pub fence: Fence,
    /// The operator, the host, and the reason.
    #[serde(flatten)]
    pub actor: Actor,
}

impl ActRecord {
    pub fn raised_fence(&self) -> bool {
        self.act == RAISE
    }
}

#[cfg(test)]
pub(crate) mod fixture {
    use super::*;

    /// The end of a run that has succeeded.
    pub(crate) const SUCCESS: RunEnd = RunEnd {
        outcome: Outcome::Succeeded,
        exit_code: Some(0),
        signal: None,
        revoked: false,
        reason: None,
    };

    /// The record of the run that holds the token of this row.
    pub(crate) fn run_of(row: &Row) -> RunRecord {
        RunRecord::of(row).unwrap()
    }

    /// The whole record of a run that the store does not know.
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
            started_at: WallTime(1_789_999_990_000),
            ended_at: None,
            outcome: Outcome::Running,
            exit_code: None,
            signal: None,
            revoked: false,
            reason: None,
            output: Some(OutputLimits {
                retain: Duration::from_mins(1),
                count: 7,
            }),
            moved_on: false,
            other: Others::new(),
        }
        .ended(SUCCESS)
    }

    /// The act with this word on the group `g`, which forgets a key.
    pub(crate) fn act(word: &str) -> ActRecord {
        ActRecord {
            group: GroupName::new("g").unwrap(),
            at: WallTime(1_790_000_000_000),
            version: Version::from_stored(3),
            act: word.to_owned(),
            client: None,
            until: None,
            once_key: Some("forgotten".into()),
            incarnation: None,
            fence: Fence(7),
            actor: Actor {
                by: "root".into(),
                host: None,
                reason: None,
            },
        }
    }

    /// The output of a run with this fence, with every field.
    pub(crate) fn output(group: &str, fence: i64, last: &str) -> OutputRecord {
        OutputRecord {
            group: GroupName::new(group).unwrap(),
            fence: Fence(fence),
            session: SessionId::new(&format!("s{fence}")).unwrap(),
            written_at: WallTime(0),
            printed: 1 << 40,
            last: last.to_owned(),
            other: Others::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_can_be_kept() {
        let bytes: Vec<u8> = (0..=255).collect();
        let group = GroupName::new("g").unwrap();
        let session = SessionId::from_random(1);
        let mut record = OutputRecord::new(group, Fence(1), session, 256, &bytes);
        assert_eq!(record.last_bytes(), Some(bytes));
        assert!(!record.is_cut());
        record.printed = 257;
        assert!(record.is_cut());
        record.last = "?".to_owned();
        assert_eq!(record.last_bytes(), None);
    }

    #[test]
    fn only_a_success_makes_a_key_done() {
        use crate::token::rule::tests::fixture::running;
        let with = |key: Option<&str>, outcome| RunRecord {
            once_key: key.map(str::to_owned),
            outcome,
            ..RunRecord::of(&running("a")).unwrap()
        };
        assert!(with(Some("k"), Outcome::Succeeded).makes_key_done());
        assert!(!with(Some("k"), Outcome::Failed).makes_key_done());
        assert!(!with(None, Outcome::Succeeded).makes_key_done());
    }
}
