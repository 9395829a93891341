//! Listings of tokens and of runs.

use clap::Args;

use super::shared::{StoreFlags, StoreRequest, group_filter};
use super::unusable::Unusable;
use crate::token::GroupName;

#[derive(Debug, Args)]
pub(super) struct StatusFlags {
    /// Only this group
    #[arg(short, long, value_name = "NAME")]
    group: Option<String>,
    #[command(flatten)]
    store: StoreFlags,
    /// An array of JSON objects instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct HistoryFlags {
    /// Only this group
    #[arg(short, long, value_name = "NAME")]
    group: Option<String>,
    #[command(flatten)]
    store: StoreFlags,
    /// At most so many runs, the newest
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// An array of JSON objects instead of a table
    #[arg(long)]
    json: bool,
}

/// A listing of tokens or runs.
#[derive(Debug)]
pub struct ListRequest {
    /// Of this group only.
    pub group: Option<GroupName>,
    /// The store.
    pub store: StoreRequest,
    /// JSON instead of a table.
    pub json: bool,
    /// At most so many.
    pub limit: Option<u32>,
}

impl TryFrom<StatusFlags> for ListRequest {
    type Error = Unusable;

    fn try_from(flags: StatusFlags) -> Result<Self, Unusable> {
        Ok(Self {
            group: group_filter(flags.group.as_deref())?,
            store: flags.store.into(),
            json: flags.json,
            limit: None,
        })
    }
}

impl TryFrom<HistoryFlags> for ListRequest {
    type Error = Unusable;

    fn try_from(flags: HistoryFlags) -> Result<Self, Unusable> {
        Ok(Self {
            group: group_filter(flags.group.as_deref())?,
            store: flags.store.into(),
            json: flags.json,
            limit: Some(flags.limit),
        })
    }
}
