//! Examining a store.

use clap::Args;

use super::claim::TimingFlags;
use super::settings::{Effective, Origin, Origins};
use super::shared::{StoreFlags, StoreRequest, group_filter};
use super::unusable::Unusable;
use crate::token::{GroupName, Timing};

#[derive(Debug, Args)]
pub(super) struct DoctorFlags {
    /// Also compare the durations with those of this group
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
    pub store: StoreRequest,
    /// The durations of a run, which must suit the store.
    pub timing: Timing,
    /// The settings that are not defaults, with their origins.
    pub settings: Vec<Effective>,
    /// JSON instead of lines.
    pub json: bool,
}

impl DoctorFlags {
    /// Refuses what a run would refuse.
    pub(super) fn request(self, origins: &Origins) -> Result<DoctorRequest, Unusable> {
        let mut settings = origins.all();
        settings.retain(|setting| setting.origin != Origin::Default);
        Ok(DoctorRequest {
            group: group_filter(self.group.as_deref())?,
            store: self.store.into(),
            timing: self.times.timing(None)?,
            settings,
            json: self.json,
        })
    }
}
