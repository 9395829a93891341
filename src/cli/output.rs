//! What a job has printed.

use clap::Args;

use super::shared::{StoreFlags, StoreRequest, fence_value, group_name};
use super::unusable::Unusable;
use crate::token::{Fence, GroupName};

#[derive(Debug, Args)]
pub(super) struct OutputFlags {
    /// The group
    #[arg(short, long, value_name = "NAME")]
    group: String,
    /// The run with this fencing token, as history shows it [default: the newest run with stored
    /// output]
    #[arg(long, value_name = "FENCE", value_parser = fence_value)]
    run: Option<Fence>,
    #[command(flatten)]
    store: StoreFlags,
    /// An array with one JSON object instead of the plain output
    #[arg(long)]
    json: bool,
}

/// A request for what a job has printed.
#[derive(Debug)]
pub struct OutputRequest {
    pub group: GroupName,
    /// The run's fence; `None` for the newest run whose output is kept.
    pub run: Option<Fence>,
    pub store: StoreRequest,
    /// JSON instead of the output itself.
    pub json: bool,
}

impl TryFrom<OutputFlags> for OutputRequest {
    type Error = Unusable;

    fn try_from(flags: OutputFlags) -> Result<Self, Unusable> {
        Ok(Self {
            group: group_name(&flags.group)?,
            run: flags.run,
            store: flags.store.into(),
            json: flags.json,
        })
    }
}
