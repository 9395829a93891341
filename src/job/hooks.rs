//! A hook: a shell command that reports a run's end. It is no part of the job, and nothing of the
//! run's rules depends on it.
//!
//! A *keeper* (`hook-keeper`) is executed for each hook: this program again, in a session of its own
//! and with one thread. It is a child subreaper, so that it finds every process of the hook, and
//! ends them all at the limit. It goes on when its starter is gone: the limit holds all the same.

mod keeper;
mod process;

pub use keeper::keep;
pub use process::{HookProcess, Input};

use serde::{Deserialize, Serialize};

use crate::sys::wait::Status;

/// The order to a keeper, as JSON in its command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The command, for `/bin/sh -c`.
    pub command: String,
    /// How long it may take, in milliseconds.
    pub limit_ms: u64,
}

/// How a hook ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum HookEnd {
    /// Its shell ended with this status, and no process of it is left.
    Ended(Status),
    /// It was killed at its limit.
    TimedOut,
    /// It was killed because its starter, or its keeper, received a stop signal.
    Stopped,
    /// It could not be started.
    NotStarted(String),
    /// Its keeper ended without a word, or does not answer.
    Lost,
}
