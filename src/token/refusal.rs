//! Why the rule refuses a session.

use std::time::Duration;

use super::document::Pause;
use super::incarnation::Doubt;
use super::names::{ClientId, SessionId};
use super::row::Row;

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
    /// New grants are stopped.
    Paused(Pause),
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
