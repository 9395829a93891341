//! Asking whether a node may run now, and whether a run has succeeded.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use super::shared::{
    LogRequest, StoreFlags, StoreRequest, duration_value, group_name, quiet_value,
};
use super::unusable::Unusable;
use crate::token::GroupName;

#[derive(Debug, Args)]
pub(super) struct CheckFlags {
    /// The group
    #[arg(short, long, value_name = "NAME")]
    group: String,
    #[command(flatten)]
    store: StoreFlags,
    /// The lease must be good for this much longer [default: 0]
    #[arg(long = "for", value_name = "DURATION", value_parser = duration_value)]
    lasts: Option<Duration>,
    /// For monitoring: whether a run on any node has succeeded in this time
    #[arg(long, value_name = "DURATION", value_parser = duration_value, conflicts_with = "lasts")]
    succeeded_within: Option<Duration>,
    /// The runtime file of tokenrun hold [default: the file that hold writes for this group]
    #[arg(long, value_name = "FILE", env = "TOKENRUN_RUNTIME_FILE")]
    runtime_file: Option<PathBuf>,
    /// An array of one JSON object on stdout
    #[arg(long)]
    json: bool,
    /// Print only what is wrong; twice: print nothing, only the exit code tells
    #[arg(short, long, action = ArgAction::Count, value_parser = quiet_value)]
    quiet: u8,
}

/// A question about a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// May this process's node run, for so much longer?
    MayRun(Duration),
    /// Has a run succeeded in this time?
    SucceededWithin(Duration),
}

/// A question, validated.
#[derive(Debug)]
pub struct CheckRequest {
    pub group: GroupName,
    /// The store.
    pub store: StoreRequest,
    pub question: Question,
    /// The runtime file of an agent, if one was given.
    pub runtime_file: Option<PathBuf>,
    /// Answer in JSON, too.
    pub json: bool,
    /// The amount of messages.
    pub log: LogRequest,
}

impl TryFrom<CheckFlags> for CheckRequest {
    type Error = Unusable;

    fn try_from(flags: CheckFlags) -> Result<Self, Unusable> {
        let question = match (flags.succeeded_within, flags.lasts) {
            (Some(within), _) if within.is_zero() => {
                return Err(Unusable::about(
                    &["--succeeded-within"],
                    "--succeeded-within must be longer than 0",
                ));
            }
            (Some(within), _) => Question::SucceededWithin(within),
            (None, lasts) => Question::MayRun(lasts.unwrap_or_default()),
        };
        Ok(Self {
            group: group_name(&flags.group)?,
            store: flags.store.into(),
            question,
            runtime_file: flags.runtime_file,
            json: flags.json,
            log: LogRequest {
                quiet: flags.quiet,
                ..LogRequest::default()
            },
        })
    }
}
