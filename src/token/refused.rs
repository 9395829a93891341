//! What history keeps of a refused run.

use serde::{Deserialize, Serialize};

use super::document::Others;
use super::names::{ClientId, GroupName};
use super::time::WallTime;

/// Refusals of one client for one reason, close to each other in time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RefusalRecord {
    #[serde(rename = "token_group")]
    pub group: GroupName,
    /// The refused client.
    pub client: ClientId,
    /// The reason in a word for scripts, as messages and the report have it: `held`, `alive_here`,
    /// `paused`, `too_soon`, `behind`, `bound`, `reserved`, `store_observed`. A newer program may
    /// have others.
    pub reason: String,
    /// The first of them, by the store's wall clock. The store sets it.
    #[serde(rename = "first_at_ms")]
    pub first_at: WallTime,
    /// The last of them, likewise.
    #[serde(rename = "last_at_ms")]
    pub last_at: WallTime,
    /// The number of them. A loop that is refused more often than once a minute counts once a
    /// minute.
    pub count: u64,
    /// The host of the last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The client that holds the token, that it belongs to, or that it is reserved for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<ClientId>,
    /// The operator that paused the group.
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
    /// What a newer program has added.
    #[serde(flatten)]
    pub other: Others,
}
