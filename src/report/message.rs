//! A message, and the names that it may use.

use std::ffi::OsString;
use std::time::Duration;

use serde::Serialize;

use super::printable::quoted;
use crate::token::{ClientId, Fence, GroupName};

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
    /// The cause, in a word for scripts: why a run was refused, lost or not started.
    pub reason: Option<&'static str>,
    /// The client that holds the token, where that is the cause.
    pub holder: Option<String>,
}

impl Message {
    /// A message without a cause.
    pub const fn new(level: Level, event: &'static str, text: String) -> Self {
        Self {
            level,
            event,
            text,
            reason: None,
            holder: None,
        }
    }

    /// A step, without a cause.
    pub(super) const fn detail(event: &'static str, text: String) -> Self {
        Self::new(Level::Detail, event, text)
    }

    /// An ordinary event, without a cause.
    pub(super) const fn info(event: &'static str, text: String) -> Self {
        Self::new(Level::Info, event, text)
    }

    /// A fault, without a cause.
    pub(super) const fn warning(event: &'static str, text: String) -> Self {
        Self::new(Level::Warning, event, text)
    }

    /// Adds the cause, in a word.
    pub const fn because(mut self, reason: &'static str) -> Self {
        self.reason = Some(reason);
        self
    }

    /// Adds the client that holds the token.
    pub(super) fn held_by(mut self, holder: Option<&ClientId>) -> Self {
        self.holder = holder.map(ToString::to_string);
        self
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
    /// The command as it was given.
    pub command: &'a [OsString],
    /// This node.
    pub client: &'a ClientId,
    /// The name of this host, if the message is about a run here.
    pub host: Option<&'a str>,
    /// The job's longest run.
    pub timeout: Option<Duration>,
    /// How long the job has run; `None` without one, and for what stands in for a job: that reports
    /// its failures itself.
    pub ran: Option<Duration>,
}

impl Context<'_> {
    /// The group, as a sentence names it.
    pub(super) fn group(&self) -> String {
        quoted(self.group.as_str())
    }
}

/// What the messages of one process are about, as fields of JSON messages. A field without a value
/// is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Subject {
    /// The group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// This node's client id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// This invocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The fence of the grant, once there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,
    /// This host's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}
