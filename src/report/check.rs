//! The answers of `check` and of `fence`.

use std::time::Duration;

use serde::Serialize;

use super::json::millis;
use super::message::Message;
use super::printable::quoted;
use super::rfc3339;
use crate::duration::rounded;
use crate::token::{Fence, GroupName, ResourceName, Row, RunRecord, StoreTime};

/// One group's answer, as `check --json` shows it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Shown<'a> {
    MayRun(Answer<'a>),
    Succeeded(Succeeded),
}

/// The answer to "may this node run now".
#[derive(Debug, Serialize)]
pub struct Answer<'a> {
    pub group: &'a str,
    /// True if it may.
    pub may_run: bool,
    /// The reason if not: `not_held`, `not_ours`, `revoked`, `ends_too_soon` or `unknown_group`.
    pub why_not: Option<&'static str>,
    /// The client that holds the token.
    pub client: Option<&'a str>,
    /// The fencing token.
    pub fence: Option<i64>,
    /// How long the holder may trust its lease, at least.
    pub trusted_for_ms: u64,
    /// The requested time.
    #[serde(skip)]
    needed: Duration,
}

impl<'a> Answer<'a> {
    /// The answer for a row.
    pub fn of(
        row: &'a Row,
        why_not: Option<&'static str>,
        left: Duration,
        needed: Duration,
    ) -> Self {
        Self {
            group: row.group.as_str(),
            may_run: why_not.is_none(),
            why_not,
            client: row.client_bound().map(|client| client.as_str()),
            fence: Some(row.fence.0),
            trusted_for_ms: millis(left),
            needed,
        }
    }

    /// The answer for a group that the store does not have.
    pub const fn unknown(group: &'a str, why_not: &'static str) -> Self {
        Self {
            group,
            may_run: false,
            why_not: Some(why_not),
            client: None,
            fence: None,
            trusted_for_ms: 0,
            needed: Duration::ZERO,
        }
    }

    /// The answer as a line.
    pub fn message(&self, store: &str) -> Message {
        let group = format!("{} in {store}", quoted(self.group));
        let client = self.client.unwrap_or("no client");
        let left = rounded(Duration::from_millis(self.trusted_for_ms));
        let text = match self.why_not {
            None => format!("{group} is held by this session ({client}), for {left} at least"),
            Some("not_held") => format!("{group} is not running: no node may run now"),
            Some("revoked") => format!("{group} was revoked from this session: end the job"),
            Some("ends_too_soon") => format!(
                "{group} is held by this session for only {left} more, not for {}",
                rounded(self.needed)
            ),
            Some(_) => format!("{group} is held by another session, of {client}"),
        };
        let event = match self.why_not {
            None => "may_run",
            Some(why) => why,
        };
        Message::info(event, text)
    }
}

/// The last success of a group, with `--succeeded-within`.
#[derive(Debug, Serialize)]
pub struct Succeeded {
    pub group: String,
    /// True if a run has succeeded within that time.
    pub succeeded: bool,
    /// When the last known successful run ended.
    pub last_success_at: Option<String>,
    /// The run's client.
    pub client: Option<String>,
}

impl Succeeded {
    /// The answer from the last run that succeeded.
    pub fn of(group: &str, last: Option<&RunRecord>, succeeded: bool) -> Self {
        let ended = last.and_then(|run| run.ended_at);
        Self {
            group: group.to_owned(),
            succeeded,
            last_success_at: ended.map(rfc3339),
            client: last.map(|run| run.client.to_string()),
        }
    }
}

/// The message that a run has succeeded.
pub fn succeeded(run: &RunRecord, now: &StoreTime, store: &str) -> Message {
    let ended = run.ended_at.unwrap_or(run.started_at);
    let ago = now.stamp.wall.since(ended).unwrap_or_default();
    let (group, client, ago) = (quoted(run.group.as_str()), &run.client, rounded(ago));
    let text = format!("{group} in {store} succeeded on {client} {ago} ago");
    Message::info("succeeded", text)
}

/// The message that no run has succeeded.
pub fn not_succeeded(
    group: &GroupName,
    last: Option<&RunRecord>,
    within: Duration,
    store: &str,
) -> Message {
    let last = last.and_then(|run| run.ended_at).map_or_else(
        || "history knows of none".to_owned(),
        |ended| format!("the last did at {}", rfc3339(ended)),
    );
    let (group, within) = (quoted(group.as_str()), rounded(within));
    let text = format!("no run of {group} in {store} has succeeded in the last {within}; {last}");
    Message::warning("not_succeeded", text)
}

/// A fence beside the current one, as `fence verify --json` shows it.
#[derive(Debug, Serialize)]
pub struct Verified<'a> {
    pub group: &'a str,
    /// The fence in question.
    pub fence: i64,
    /// The group's current one.
    pub current: i64,
    /// True if they are the same.
    pub is_current: bool,
}

/// A resource's mark, as `fence advance --json` shows it.
#[derive(Debug, Serialize)]
pub struct Marked<'a> {
    pub resource: &'a str,
    /// The fence that was given.
    pub fence: i64,
    /// The highest fence that has used the resource.
    pub highest: i64,
    /// True if that is a higher one.
    pub is_stale: bool,
}

/// The message for the row's current fence.
pub fn current(row: &Row, store: &str) -> Message {
    let (group, fence) = (quoted(row.group.as_str()), row.fence);
    let text = format!("the fence {fence} of {group} in {store} is the current one");
    Message::info("fence_current", text)
}

/// The message for a fence that is not the row's.
pub fn stale(row: &Row, fence: Fence, store: &str) -> Message {
    let holder = row.client_bound();
    let whose = holder.map_or_else(String::new, |it| format!(", and the token is {it}'s"));
    let what = match fence > row.fence {
        true => "was not granted",
        false => "is stale",
    };
    let (group, current) = (quoted(row.group.as_str()), row.fence);
    let text = format!(
        "the fence {fence} of {group} in {store} {what}: the current one is {current}{whose}; write nothing more, and end"
    );
    Message::warning("fence_stale", text)
}

/// The text for a fence that the store has not granted.
pub fn not_granted(group: &GroupName, fence: Fence, store: &str) -> String {
    let group = quoted(group.as_str());
    format!(
        "{store} has not granted the fence {fence} of {group}: name the store of the run with --store or TOKENRUN_STORE"
    )
}

/// The message that no higher fence has used the resource.
pub fn advanced(resource: &ResourceName, fence: Fence, store: &str) -> Message {
    let text = format!("{resource} in {store} is used with the fence {fence} from now on");
    Message::info("fence_advanced", text)
}

/// The message that a higher fence has used it.
pub fn behind(resource: &ResourceName, fence: Fence, mark: Fence, store: &str) -> Message {
    let text = format!(
        "the fence {fence} is stale: {resource} in {store} has been used with {mark}; write nothing to it, and end"
    );
    Message::warning("fence_stale", text)
}
