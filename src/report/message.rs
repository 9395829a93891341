//! A message, and what it may name.

use crate::token::GroupName;

/// How much a message matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// One step of many; shown with `-v`.
    Detail,
    /// What is ordinary, a refusal too; shown unless `-q`.
    Info,
    /// Something is wrong, or a job does not end by itself; shown unless `-qq`.
    Warning,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// How much it matters.
    pub level: Level,
    /// What happened, in a word for scripts.
    pub event: &'static str,
    /// What happened, in a line for people.
    pub text: String,
}

impl Message {
    pub(super) const fn new(level: Level, event: &'static str, text: String) -> Self {
        Self { level, event, text }
    }
}

/// What every message of a run may name.
#[derive(Debug)]
pub struct Context<'a> {
    pub group: &'a GroupName,
    /// The store's name.
    pub store: &'a str,
    /// The program's name.
    pub program: &'a str,
}
