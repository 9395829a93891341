//! What is said of a fence.

use super::messages::{Level, Message};
use crate::token::{Fence, ResourceName, Row};

/// It is the row's.
#[must_use]
pub fn current(row: &Row, store: &str) -> Message {
    let text = format!(
        "the fence {} of {} in {store} is the current one",
        row.fence, row.group
    );
    info("fence_current", text)
}

/// The row has another.
#[must_use]
pub fn stale(row: &Row, fence: Fence, store: &str) -> Message {
    let whose = row.client_bound().map_or_else(String::new, |client| {
        format!(", and the token is {client}'s")
    });
    warning(
        "fence_stale",
        format!(
            "the fence {fence} of {} in {store} is stale: the current one is {}{whose}; write nothing more, and end",
            row.group, row.fence
        ),
    )
}

/// No higher one has used the resource.
#[must_use]
pub fn advanced(resource: &ResourceName, fence: Fence, store: &str) -> Message {
    let text = format!("{resource} in {store} is used with the fence {fence} from now on");
    info("fence_advanced", text)
}

/// A higher one has.
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
    Message {
        level: Level::Info,
        event,
        text,
    }
}

const fn warning(event: &'static str, text: String) -> Message {
    Message {
        level: Level::Warning,
        event,
        text,
    }
}
