//! What history keeps of an act of an operator.

use serde::{Deserialize, Serialize};

use super::names::{ClientId, Fence, GroupName, Incarnation, Version};
use super::time::WallTime;

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
