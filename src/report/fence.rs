//! Messages about fences.

use serde::Serialize;

use super::message::{Level, Message};
use super::printable::quoted;
use crate::token::{Fence, GroupName, ResourceName, Row};

/// Whether a fence is current, as `fence verify --json` shows it.
#[derive(Debug, Serialize)]
pub struct Verified<'a> {
    pub group: &'a str,
    /// The fence in question.
    pub fence: i64,
    /// The group's current one.
    pub current: i64,
    /// Whether they are the same.
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
    /// Whether that is a higher one.
    pub is_stale: bool,
}

/// The message for the row's current fence.
#[must_use]
pub fn current(row: &Row, store: &str) -> Message {
    let text = format!(
        "the fence {} of {} in {store} is the current one",
        row.fence,
        quoted(row.group.as_str())
    );
    info("fence_current", text)
}

/// The message for a fence that is not the row's.
#[must_use]
pub fn stale(row: &Row, fence: Fence, store: &str) -> Message {
    let whose = row.client_bound().map_or_else(String::new, |client| {
        format!(", and the token is {client}'s")
    });
    let what = match fence > row.fence {
        true => "was not granted",
        false => "is stale",
    };
    warning(
        "fence_stale",
        format!(
            "the fence {fence} of {} in {store} {what}: the current one is {}{whose}; write nothing more, and end",
            quoted(row.group.as_str()),
            row.fence
        ),
    )
}

/// The text for a fence that the store has not granted.
#[must_use]
pub fn not_granted(group: &GroupName, fence: Fence, store: &str) -> String {
    format!(
        "{store} has not granted the fence {fence} of {}: name the store of the run with --store or \
         TOKENRUN_STORE",
        quoted(group.as_str())
    )
}

/// The message that no higher fence has used the resource.
#[must_use]
pub fn advanced(resource: &ResourceName, fence: Fence, store: &str) -> Message {
    let text = format!("{resource} in {store} is used with the fence {fence} from now on");
    info("fence_advanced", text)
}

/// The message that a higher fence has used it.
#[must_use]
pub fn behind(resource: &ResourceName, fence: Fence, mark: Fence, store: &str) -> Message {
    warning(
        "fence_stale",
        format!(
            "the fence {fence} is stale: {resource} in {store} has been used with {mark}; write nothing to it, and end"
        ),
    )
}

const fn info(event: &'static str, text: String) -> Message {
    Message::new(Level::Info, event, text)
}

const fn warning(event: &'static str, text: String) -> Message {
    Message::new(Level::Warning, event, text)
}
