//! What an act's verb orders: which act, on which groups, and how long it is waited for.

use std::time::Duration;

use super::super::shared::options::{LogOptions, StoreOptions};
use crate::cli::values;
use crate::run::machine::Wait;
use crate::token::{ClientId, Fence, Groups, OnceKey};

use clap::Args;

// The store that records an act, and the form of its report.
#[derive(Debug, Args)]
pub(crate) struct RecordOptions {
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    /// The reason, which is recorded and shown in history
    #[arg(long, value_name = "TEXT", value_parser = values::line)]
    pub(crate) reason: Option<String>,
    /// Print what was done as an array of JSON objects
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) log: LogOptions,
}

/// An operator's wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// No new grants, for this long, or until they are allowed again.
    Pause(Option<Duration>),
    /// Grants again.
    Resume {
        /// Although another operator has paused them.
        others: bool,
    },
    /// The token goes to this client next.
    Handoff(ClientId),
    /// The token goes to this client next, and another client that runs the job now ends it.
    Move(ClientId),
    /// This client is the configured primary.
    Expect(Option<ClientId>),
    /// The holder ends its job and frees the token.
    Revoke,
    /// This key of `--once` is no longer done.
    Forget(OnceKey),
    /// The fence is at least this high.
    Raise(Option<Fence>),
    /// The token is freed.
    Release {
        /// Although a job may be running.
        force: bool,
    },
}

impl Wish {
    /// The verb that asks for it.
    pub(crate) const fn verb(&self) -> &'static str {
        match self {
            Self::Pause(_) => "pause",
            Self::Resume { .. } => "resume",
            Self::Handoff(_) => "move --when-idle",
            Self::Move(_) => "move",
            Self::Expect(_) => "expect",
            Self::Revoke => "revoke",
            Self::Forget(_) => "once forget",
            Self::Raise(_) => "fence raise",
            Self::Release { .. } => "release",
        }
    }

    /// The client that is to get the token next.
    pub(crate) const fn target(&self) -> Option<&ClientId> {
        match self {
            Self::Handoff(to) | Self::Move(to) => Some(to),
            _ => None,
        }
    }
}

/// How long an act waits for its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// However long it takes if a person sees it on a terminal, else not at all.
    OnTerminal,
    /// This long.
    Given(Wait),
}

/// An act on one or several groups.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    pub(crate) groups: Groups,
    /// Ask no question.
    pub(crate) yes: bool,
    pub(crate) wish: Wish,
    pub(crate) patience: Patience,
    pub(crate) record: &'a RecordOptions,
}

impl Order<'_> {
    /// How the line names groups without their names; `None` if it gives each name.
    pub(crate) fn broad(&self) -> Option<String> {
        match &self.groups {
            Groups::All => Some("--all".to_owned()),
            Groups::Matching(patterns) => {
                let pattern = patterns.iter().find(|it| it.name().is_none())?;
                Some(format!("--group {:?}", pattern.as_str()))
            }
        }
    }
}
