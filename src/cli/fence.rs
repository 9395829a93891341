//! The fence: whether it is current, and marks for resources that can't check it.

use clap::{Args, Subcommand};

use super::acts::RaiseFlags;
use super::shared::{LogFlags, LogRequest, StoreFlags, StoreRequest, fence_value, group_name};
use super::unusable::Unusable;
use crate::token::{Fence, GroupName, ResourceName};

#[derive(Debug, Subcommand)]
pub(super) enum FenceVerb {
    /// Check that a fencing token is the current one of its group: 0, or 76 if it is stale
    Verify(VerifyFlags),
    /// Record the highest fencing token that has used a resource: 0, or 76 if a higher one has
    Advance(AdvanceFlags),
    /// Raise the fencing token of a group that no run holds
    Raise(RaiseFlags),
}

#[derive(Debug, Args)]
pub(super) struct VerifyFlags {
    /// The group
    #[arg(short, long, value_name = "NAME", env = "TOKENRUN_GROUP")]
    group: String,
    /// The fencing token
    #[arg(short, long, value_name = "N", env = "TOKENRUN_FENCE", value_parser = fence_value)]
    fence: Fence,
    /// Print the answer as an array of one JSON object
    #[arg(long, help_heading = "Reports and messages")]
    json: bool,
    #[command(flatten)]
    store: StoreFlags,
    #[command(flatten)]
    log: LogFlags,
}

#[derive(Debug, Args)]
pub(super) struct AdvanceFlags {
    /// What the job is about to write to: any name that you choose for it
    #[arg(value_name = "RESOURCE")]
    resource: String,
    /// The fencing token
    #[arg(value_name = "N", env = "TOKENRUN_FENCE", value_parser = fence_value)]
    fence: Fence,
    /// The group that the token is of: the store must have granted it
    #[arg(short, long, value_name = "NAME", env = "TOKENRUN_GROUP")]
    group: Option<String>,
    /// Print the answer as an array of one JSON object
    #[arg(long, help_heading = "Reports and messages")]
    json: bool,
    #[command(flatten)]
    store: StoreFlags,
    #[command(flatten)]
    log: LogFlags,
}

/// A question about a fence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FenceQuestion {
    /// Whether it is this group's current fence.
    Verify(GroupName),
    /// Whether no higher fence has used this resource; this one has, from now on.
    Advance {
        resource: ResourceName,
        /// The group that the store must have granted the fence for.
        group: Option<GroupName>,
    },
}

/// A question about a fence, validated.
#[derive(Debug)]
pub struct FenceRequest {
    /// The question.
    pub question: FenceQuestion,
    pub fence: Fence,
    /// In which store.
    pub store: StoreRequest,
    /// JSON on stdout besides.
    pub json: bool,
    /// The amount and the style of messages.
    pub log: LogRequest,
}

impl TryFrom<VerifyFlags> for FenceRequest {
    type Error = Unusable;

    fn try_from(flags: VerifyFlags) -> Result<Self, Unusable> {
        Ok(Self {
            question: FenceQuestion::Verify(group_name(&flags.group)?),
            fence: flags.fence,
            store: flags.store.into(),
            json: flags.json,
            log: flags.log.into(),
        })
    }
}

impl TryFrom<AdvanceFlags> for FenceRequest {
    type Error = Unusable;

    fn try_from(flags: AdvanceFlags) -> Result<Self, Unusable> {
        let resource = ResourceName::given(&flags.resource)
            .map_err(|error| Unusable::usage(format!("the resource's name {error}")))?;
        let group = flags.group.as_deref().map(group_name).transpose()?;
        Ok(Self {
            question: FenceQuestion::Advance { resource, group },
            fence: flags.fence,
            store: flags.store.into(),
            json: flags.json,
            log: flags.log.into(),
        })
    }
}
