//! Metrics for Prometheus.

use std::path::PathBuf;

use clap::Args;

use super::shared::{StoreFlags, StoreRequest, group_filter};
use super::unusable::Unusable;
use crate::token::GroupName;

#[derive(Debug, Args)]
pub(super) struct MetricsFlags {
    /// Only this group
    #[arg(short, long, value_name = "NAME")]
    group: Option<String>,
    #[command(flatten)]
    store: StoreFlags,
    /// Write the metrics to this file instead of stdout, for the textfile collector; the file is
    /// replaced as a whole
    #[arg(long, value_name = "PATH")]
    textfile: Option<PathBuf>,
}

#[derive(Debug)]
pub struct MetricsRequest {
    /// In this group only.
    pub group: Option<GroupName>,
    pub store: StoreRequest,
    /// Where they go.
    pub textfile: Option<PathBuf>,
}

impl TryFrom<MetricsFlags> for MetricsRequest {
    type Error = Unusable;

    fn try_from(flags: MetricsFlags) -> Result<Self, Unusable> {
        Ok(Self {
            group: group_filter(flags.group.as_deref())?,
            store: flags.store.into(),
            textfile: flags.textfile,
        })
    }
}
