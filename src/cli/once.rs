//! The keys of `--once`.

use clap::{Args, Subcommand};

use super::acts::ForgetFlags;
use super::screen::{ScreenFlags, ScreenRequest};
use super::shared::{StoreFlags, StoreRequest, group_filter};
use super::unusable::Unusable;
use crate::token::GroupName;

#[derive(Debug, Subcommand)]
pub(super) enum OnceVerb {
    /// List the keys that are done
    List(OnceListFlags),
    /// Forget a key: the next run with it runs the job again
    Forget(ForgetFlags),
}

#[derive(Debug, Args)]
pub(super) struct OnceListFlags {
    /// Only this group
    #[arg(short, long, value_name = "NAME")]
    group: Option<String>,
    #[command(flatten)]
    store: StoreFlags,
    #[command(flatten)]
    screen: ScreenFlags,
    /// An array of JSON objects instead of a table
    #[arg(long)]
    json: bool,
}

/// A listing of keys.
#[derive(Debug)]
pub struct OnceListRequest {
    /// In this group only.
    pub group: Option<GroupName>,
    pub store: StoreRequest,
    pub screen: ScreenRequest,
    /// JSON instead of a table.
    pub json: bool,
}

impl TryFrom<OnceListFlags> for OnceListRequest {
    type Error = Unusable;

    fn try_from(flags: OnceListFlags) -> Result<Self, Unusable> {
        Ok(Self {
            group: group_filter(flags.group.as_deref())?,
            store: flags.store.into(),
            screen: flags.screen.into(),
            json: flags.json,
        })
    }
}
