//! `tokenrun fence verify` and `tokenrun fence advance`: whether a job may go on writing.

use anyhow::Result;
use clap::{Args, Subcommand};

use super::acts::Raise;
use super::shared::failure::Failure;
use super::shared::groups::known_row;
use super::shared::options::{LogOptions, StoreOptions};
use super::shared::stores::known_store;
use super::shared::terminal::print_json;
use super::shared::{Action, Context};
use crate::cli::values;
use crate::exit::{self, Exit};
use crate::report::check::{Marked, Verified, advanced, behind, current, not_granted, stale};
use crate::report::log::{Log, Style};
use crate::report::message::Message;
use crate::store::{Advanced, Store};
use crate::token::{Fence, GroupName, ResourceName};

#[derive(Debug, Subcommand)]
pub(super) enum FenceVerb {
    Verify(Verify),
    Advance(Advance),
    Raise(Raise),
}

// The store that answers, and the form of the answer.
#[derive(Debug, Args)]
struct AnswerOptions {
    /// Print the answer as an array of one JSON object
    #[arg(long, help_heading = "Reports and messages")]
    json: bool,
    #[command(flatten)]
    store: StoreOptions,
    #[command(flatten)]
    log: LogOptions,
}

/// Check that a fencing token is the current one of its group: 0, or 76 if it is stale
#[derive(Debug, Args)]
pub(super) struct Verify {
    /// The group
    #[arg(short, long, value_name = "NAME", env = "TOKENRUN_GROUP", value_parser = values::group)]
    group: GroupName,
    /// The fencing token
    #[arg(short, long, value_name = "N", env = "TOKENRUN_FENCE", value_parser = values::fence)]
    fence: Fence,
    #[command(flatten)]
    answer: AnswerOptions,
}

/// Record the highest fencing token that has used a resource: 0, or 76 if a higher one has
#[derive(Debug, Args)]
pub(super) struct Advance {
    /// What the job is about to write to: any name that you choose for it
    #[arg(value_name = "RESOURCE", value_parser = values::resource_word)]
    resource: ResourceName,
    /// The fencing token
    #[arg(value_name = "N", env = "TOKENRUN_FENCE", value_parser = values::fence)]
    fence: Fence,
    /// The group that the token is of: the store must have granted it
    #[arg(short, long, value_name = "NAME", env = "TOKENRUN_GROUP", value_parser = values::group)]
    group: Option<GroupName>,
    #[command(flatten)]
    answer: AnswerOptions,
}

impl Action for Verify {
    fn style(&self) -> Style {
        self.answer.log.style()
    }

    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        let mut store = known_store(&self.answer.store, context.log)?;
        let row = known_row(store.as_mut(), &self.group)?;
        let is_current = row.fence == self.fence;
        if self.answer.json {
            print_json(&[Verified {
                group: row.group.as_str(),
                fence: self.fence.0,
                current: row.fence.0,
                is_current,
            }])?;
        }
        let message = match is_current {
            true => current(&row, store.name()),
            false => stale(&row, self.fence, store.name()),
        };
        Ok(answered(is_current, &message, context.log))
    }
}

impl Action for Advance {
    fn style(&self) -> Style {
        self.answer.log.style()
    }

    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        let mut store = known_store(&self.answer.store, context.log)?;
        let (resource, fence) = (&self.resource, self.fence);
        if let Some(group) = &self.group {
            check_origin(store.as_mut(), group, fence)?;
        }
        let answer = store.advance(resource, fence)?;
        let highest = match answer {
            Advanced::Stored => fence,
            Advanced::Behind(mark) => mark,
        };
        if self.answer.json {
            print_json(&[Marked {
                resource: resource.as_str(),
                fence: fence.0,
                highest: highest.0,
                is_stale: highest != fence,
            }])?;
        }
        let (is_good, message) = match answer {
            Advanced::Stored => (true, advanced(resource, fence, store.name())),
            Advanced::Behind(mark) => (false, behind(resource, fence, mark, store.name())),
        };
        Ok(answered(is_good, &message, context.log))
    }
}

/// The exit code of an answer: 0, or 76 if the fence is stale.
fn answered(is_good: bool, message: &Message, log: &mut Log) -> Exit {
    log.write(message, false);
    match is_good {
        true => Exit::OK,
        false => Exit::Code(exit::LOST),
    }
}

/// A mark in another store than the run's keeps no late job from writing.
fn check_origin(store: &mut dyn Store, group: &GroupName, fence: Fence) -> Result<()> {
    let row = store.read(group)?.row;
    if row.is_some_and(|row| row.fence >= fence) {
        return Ok(());
    }
    let text = not_granted(group, fence, store.name());
    Err(Failure::new(exit::CONFIG, "fence_not_granted", text).into())
}
