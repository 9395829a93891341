//! A message, and the names that it may use.

use crate::token::GroupName;

/// How much a message matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// One step of many; shown with `-v`.
    Detail,
    /// Ordinary events, including refusals; shown unless `-q`.
    Info,
    /// A fault, or a job that does not end by itself; shown unless `-qq`.
    Warning,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// How much it matters.
    pub level: Level,
    /// The event's word for scripts.
    pub event: &'static str,
    /// The event in a line for people.
    pub text: String,
}

impl Message {
    pub(super) const fn new(level: Level, event: &'static str, text: String) -> Self {
        Self { level, event, text }
    }
}

/// The names that every message of a run may use.
#[derive(Debug)]
pub struct Context<'a> {
    pub group: &'a GroupName,
    /// The store's name.
    pub store: &'a str,
    /// The program's name.
    pub program: &'a str,
}
