//! Messages of `hold` about its token.

use std::path::Path;
use std::process::ExitStatus;

use super::message::Message;
use super::printable::quoted;
use crate::run::runtime_file::Holder;

/// A change of the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// This node has the token.
    Gain,
    /// This node has the token no more, or is about to lose it; no other node has it yet.
    Loss,
}

impl Change {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gain => "gain",
            Self::Loss => "loss",
        }
    }
}

/// The message for a change.
pub fn changed(change: Change, held: &Holder) -> Message {
    let has = match change {
        Change::Gain => "has",
        Change::Loss => "no longer has",
    };
    let (client, group, fence) = (&held.client_id, quoted(held.group.as_str()), &held.fence);
    let text = format!("{client} {has} the token of {group} (fence {fence})");
    Message::info(change.as_str(), text)
}

/// The command of `--on-change` could not be started, or failed.
pub fn command_failed(change: Change, ended: std::io::Result<ExitStatus>) -> Message {
    let how = match ended {
        Ok(status) => format!("ended with {status}"),
        Err(error) => format!("could not be started: {error}"),
    };
    let change = change.as_str();
    let text = format!("the command of --on-change for the {change} {how}");
    Message::warning("on_change_failed", text)
}

/// The runtime file can't be used.
pub fn runtime_file_failed(path: &Path, error: &std::io::Error) -> String {
    let path = path.display();
    format!("the runtime file {path} can't be used: {error}; give another with --runtime-file")
}

/// The message that another process has the runtime file's lock.
pub fn runtime_file_busy(path: &Path) -> String {
    format!(
        "the runtime file {} is used by another tokenrun hold; give each its own with --runtime-file",
        path.display()
    )
}
