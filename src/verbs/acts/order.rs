//! What an act's verb orders: which act, on which groups, and how long it is waited for.

use std::time::Duration;

use super::super::shared::options::{LogOptions, StoreOptions};
use crate::cli::values;
use crate::run::machine::Wait;
use crate::token::{Act, ClientId, Groups};

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

/// What an operator wishes: an act, or what becomes one by the row and its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// No new grants, for this long, or until they are allowed again.
    Pause(Option<Duration>),
    /// Grants again.
    Resume {
        /// Although another operator has paused them.
        others: bool,
    },
    /// The token goes to this client next, and another client that runs the job now ends it.
    Move(ClientId),
    Act(Act),
}

impl Wish {
    /// The client that is to get the token next.
    pub(crate) const fn target(&self) -> Option<&ClientId> {
        match self {
            Self::Act(Act::Handoff(to)) | Self::Move(to) => Some(to),
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
    /// The verb, for a line that the message suggests.
    pub(crate) verb: &'static str,
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
