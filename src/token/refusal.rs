//! Why the rule refuses a session, and what history keeps of a refused run.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::document::Others;
use super::document::Pause;
use super::incarnation::Doubt;
use super::names::{ClientId, Fence, GroupName, SessionId};
use super::outcome::Outcome;
use super::row::Row;
use super::time::WallTime;

/// Why a session is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Another session holds the token.
    Held {
        by: ClientId,
        session: SessionId,
        /// The holder has this session's own client id: two live instances share one.
        same_client: bool,
        /// The age of the holder's last heartbeat.
        silent_for: Duration,
        /// How long until it could be taken over.
        takeover_in: Duration,
    },
    /// The holder is silent, but processes of its run are alive on this host.
    AliveHere(Vec<String>),
    /// New grants of the group are stopped.
    Paused(Pause),
    /// New grants to the claimant's client are stopped, in every group.
    ClientPaused(Pause),
    /// The last grant is too recent.
    TooSoon {
        /// How long until the next is allowed.
        wait: Duration,
    },
    /// The store may have forgotten a grant, and has not been observed for long enough. The rule
    /// observes; a session reports this when its waiting time is over.
    Forgetful {
        /// How much longer it must be observed.
        wait: Duration,
        doubt: Doubt,
    },
    /// The token is open, and another client has a head start. The rule waits; a session reports this
    /// when its waiting time is over.
    HeadStart {
        of: Option<ClientId>,
        /// How long until this session may have it.
        wait: Duration,
    },
    /// The age of the token is unknown. The rule observes; a session reports this when its waiting time
    /// is over.
    Observed {
        /// How much longer it must stand unchanged.
        wait: Duration,
    },
    /// Others are in the queue.
    Behind { ahead: usize },
    /// The token belongs to a client that ran a short while ago.
    Bound {
        to: ClientId,
        /// How long until others may have it.
        wait: Duration,
    },
    /// The group is new, and another client is expected to have it first.
    Reserved {
        to: ClientId,
        /// How long until others may have it.
        wait: Duration,
    },
}

impl Refusal {
    /// The reason in a word for scripts.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Held { .. } => "held",
            Self::AliveHere(_) => "alive_here",
            Self::Paused(_) => "paused",
            Self::ClientPaused(_) => "client_paused",
            Self::TooSoon { .. } => "too_soon",
            Self::Behind { .. } => "behind",
            Self::Bound { .. } => "bound",
            Self::Reserved { .. } => "reserved",
            Self::Forgetful { .. } => "store_observed",
            Self::HeadStart { .. } => "head_start",
            Self::Observed { .. } => "observed",
        }
    }

    /// The client that the token belongs to, where that is the reason. `seen`: the row that was
    /// judged.
    pub fn holder<'a>(&'a self, seen: Option<&'a Row>) -> Option<&'a ClientId> {
        match self {
            Self::Held { by, .. } => Some(by),
            Self::Bound { to, .. } => Some(to),
            Self::HeadStart { of, .. } => of.as_ref(),
            Self::AliveHere(_) => seen.and_then(Row::client_bound),
            _ => None,
        }
    }
}

/// Refusals that are this close to the one before belong to one record.
pub const SAME_RECORD: Duration = Duration::from_hours(1);

/// A record grows at most once in this time: a loop that asks every second writes no more often.
pub const LEAST_PAUSE: Duration = Duration::from_mins(1);

/// The longest cause, in characters.
const CAUSE_MAX: usize = 200;

/// Refusals of one client for one cause, close to each other in time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RefusalRecord {
    #[serde(rename = "token_group")]
    pub group: GroupName,
    /// The refused client.
    pub client: ClientId,
    /// The reason in a word for scripts, as messages and the report have it: `held`, `alive_here`,
    /// `paused`, `client_paused`, `too_soon`, `behind`, `bound`, `reserved`, `store_observed`, `head_start`, `observed`;
    /// `not_started` if the job could not be started on the client's node. A newer program may have
    /// others.
    pub reason: String,
    /// The reason with the names in it, as [`Self::with_cause`] makes it: refusals with another cause have
    /// another record.
    pub cause: String,
    /// The first of them, by the store's wall clock. The store sets it.
    #[serde(rename = "first_at_ms")]
    pub first_at: WallTime,
    /// The last of them, likewise.
    #[serde(rename = "last_at_ms")]
    pub last_at: WallTime,
    /// The number of them. A loop that is refused more often than once a minute counts once a
    /// minute.
    pub count: u64,
    /// The token's fence at the last of them; 0 if the group had no row.
    pub fence: Fence,
    /// The host of the last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The client that holds the token, that it belongs to, or that it is reserved for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<ClientId>,
    /// The operator that paused the group, or the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_by: Option<String>,
    /// The operator's reason for the pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_reason: Option<String>,
    /// The end of the pause, by the store's wall clock.
    #[serde(
        default,
        rename = "paused_until_ms",
        skip_serializing_if = "Option::is_none"
    )]
    pub paused_until: Option<WallTime>,
    /// The number of waiters ahead in the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u64>,
    /// Why the job could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What a newer program has added.
    #[serde(flatten)]
    pub other: Others,
}

/// The number of refusals of a group's runs for one reason, since the store was made. Pruning takes
/// none of them back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RefusalTotal {
    #[serde(rename = "token_group")]
    pub group: GroupName,
    /// The word of [`RefusalRecord::reason`].
    pub reason: String,
    /// Counted as [`RefusalRecord::count`].
    pub total: u64,
}

/// When the refusals of a record happened, and their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeats {
    pub first_at: WallTime,
    pub last_at: WallTime,
    pub count: u64,
}

impl RefusalRecord {
    /// The record with the cause that follows from its other fields.
    pub fn with_cause(mut self) -> Self {
        let holder = self.holder.as_ref().map(ToString::to_string);
        let until = self.paused_until.map(|until| until.0.to_string());
        let names = [
            holder,
            self.paused_by.clone(),
            until,
            self.paused_reason.clone(),
            self.error.clone(),
        ];
        let parts = [Some(self.reason.clone())]
            .into_iter()
            .chain(names)
            .flatten();
        let cause = parts.collect::<Vec<_>>().join(" / ");
        // It is part of a key, which databases limit; an operator's reason may be long.
        self.cause = cause.chars().take(CAUSE_MAX).collect();
        self
    }

    /// True if the client could not start its job, which is no refusal of the rule.
    pub fn is_unstarted(&self) -> bool {
        self.reason == Outcome::NotStarted.as_str()
    }

    /// When its refusals happened.
    pub const fn repeats(&self) -> Repeats {
        Repeats {
            first_at: self.first_at,
            last_at: self.last_at,
            count: self.count,
        }
    }

    /// The record to write for this refusal, which happens at `now`. `before`: the newest record of
    /// the same client for the same cause, if its last refusal is not after `now`. `None`: it is
    /// too close to that one to be written.
    pub fn after(&self, before: Option<Repeats>, now: WallTime) -> Option<Self> {
        let new = Self {
            first_at: now,
            last_at: now,
            count: 1,
            ..self.clone()
        };
        let Some(before) = before else {
            return Some(new);
        };
        match now.since(before.last_at) {
            Some(age) if age < LEAST_PAUSE => None,
            Some(age) if age < SAME_RECORD => Some(Self {
                first_at: before.first_at,
                count: before.count.saturating_add(1),
                ..new
            }),
            _ => Some(new),
        }
    }
}

#[cfg(test)]
pub(crate) mod fixture {
    use super::*;

    /// A refusal of this client, with every field.
    pub(crate) fn refused(group: &str, client: &str, reason: &str) -> RefusalRecord {
        RefusalRecord {
            group: GroupName::new(group).unwrap(),
            client: ClientId::new(client).unwrap(),
            reason: reason.to_owned(),
            cause: String::new(),
            first_at: WallTime(0),
            last_at: WallTime(0),
            count: 1,
            fence: Fence(7),
            host: Some("host".into()),
            holder: Some(ClientId::new("holder").unwrap()),
            paused_by: Some("root".into()),
            paused_reason: Some("100 % \"quoted\"".into()),
            paused_until: Some(WallTime(1_790_000_000_000)),
            ahead: Some(2),
            error: (reason == "not_started").then(|| "could not start x: no such file".to_owned()),
            other: Others::new(),
        }
        .with_cause()
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::refused;
    use super::*;

    #[test]
    fn repeats_within_an_hour_are_one_record_that_grows_once_a_minute() {
        let refusal = refused("g", "a", "held");
        let at = |minutes: i64| WallTime(1_790_000_000_000 + minutes * 60_000);
        let first = refusal.after(None, at(0)).unwrap();
        assert_eq!(
            (first.first_at, first.last_at, first.count),
            (at(0), at(0), 1)
        );
        let just_before = WallTime(at(1).0 - 1);
        assert_eq!(refusal.after(Some(first.repeats()), at(0)), None);
        assert_eq!(refusal.after(Some(first.repeats()), just_before), None);
        let second = refusal.after(Some(first.repeats()), at(1)).unwrap();
        assert_eq!(
            (second.first_at, second.last_at, second.count),
            (at(0), at(1), 2)
        );
        let third = refusal.after(Some(second.repeats()), at(60)).unwrap();
        assert_eq!(
            (third.first_at, third.last_at, third.count),
            (at(0), at(60), 3)
        );
        let later = refusal.after(Some(third.repeats()), at(120)).unwrap();
        assert_eq!((later.first_at, later.count), (at(120), 1));
    }

    #[test]
    fn a_record_from_the_future_is_no_reason_to_write_nothing() {
        let refusal = refused("g", "a", "held");
        let future = refusal.after(None, WallTime(2_000_000_000_000)).unwrap();
        let now = WallTime(1_790_000_000_000);
        assert_eq!(
            refusal.after(Some(future.repeats()), now).unwrap().first_at,
            now
        );
    }

    #[test]
    fn a_refusal_names_the_holder_where_that_is_the_reason() {
        use crate::token::rule::tests::fixture::{client, running};
        let bound = Refusal::Bound {
            to: client("a"),
            wait: std::time::Duration::ZERO,
        };
        assert_eq!(bound.holder(None), Some(&client("a")));
        let alive = Refusal::AliveHere(Vec::new());
        assert_eq!(alive.holder(Some(&running("b"))), Some(&client("b")));
        assert_eq!(alive.holder(None), None);
    }

    #[test]
    fn a_job_that_could_not_start_is_no_refusal_of_the_rule() {
        assert!(refused("g", "a", Outcome::NotStarted.as_str()).is_unstarted());
        assert!(!refused("g", "a", "held").is_unstarted());
    }
}
