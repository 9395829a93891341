//! Examining a store.

use clap::Args;

use super::claim::TimingFlags;
use super::shared::{StoreFlags, StoreRequest, group_filter};
use super::unusable::Unusable;
use crate::token::{GroupName, Timing};

#[derive(Debug, Args)]
pub(super) struct DoctorFlags {
    /// Compare the durations with those of this group, too
    #[arg(short, long, value_name = "NAME")]
    group: Option<String>,
    #[command(flatten)]
    store: StoreFlags,
    #[command(flatten)]
    times: TimingFlags,
    /// An array of JSON objects instead of lines
    #[arg(long)]
    json: bool,
}

/// An examination of a store.
#[derive(Debug)]
pub struct DoctorRequest {
    /// The group whose durations are compared.
    pub group: Option<GroupName>,
    /// The store.
    pub store: StoreRequest,
    /// The durations of a run, which are to suit the store.
    pub timing: Timing,
    /// JSON instead of lines.
    pub json: bool,
}

impl TryFrom<DoctorFlags> for DoctorRequest {
    type Error = Unusable;

    fn try_from(flags: DoctorFlags) -> Result<Self, Unusable> {
        Ok(Self {
            group: group_filter(flags.group.as_deref())?,
            store: flags.store.into(),
            timing: flags.times.timing(None)?,
            json: flags.json,
        })
    }
}
