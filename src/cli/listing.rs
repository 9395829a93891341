//! Listings of tokens and of runs.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::shared::{StoreFlags, StoreRequest, client, duration_value, group_filter};
use super::unusable::Unusable;
use crate::token::{ClientId, GroupName, Outcome};

/// The least pause between two reads of a store.
const LEAST_WATCH: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
pub(super) struct StatusFlags {
    /// Only this group
    #[arg(short, long, value_name = "NAME")]
    group: Option<String>,
    #[command(flatten)]
    store: StoreFlags,
    /// Show it anew every so often, until it is interrupted [default: 2s]
    #[arg(long, value_name = "DURATION", value_parser = duration_value, num_args = 0..=1, require_equals = true, default_missing_value = "2s")]
    watch: Option<Duration>,
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
    /// Only runs of this client
    #[arg(long, value_name = "ID")]
    client: Option<String>,
    /// Only runs that ended like this
    #[arg(long, value_name = "OUTCOME")]
    outcome: Option<OutcomeFlag>,
    /// Only what began in this time: 12h, 7d
    #[arg(long, value_name = "DURATION", value_parser = duration_value)]
    since: Option<Duration>,
    /// At most so many runs and acts of operators, the newest
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// A picture of who ran when, as wide as the terminal
    #[arg(long, conflicts_with = "json")]
    timeline: bool,
    /// An array of JSON objects instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum OutcomeFlag {
    Running,
    Succeeded,
    Failed,
    Signalled,
    TimedOut,
    Lost,
    NotStarted,
    Unknown,
}

impl From<OutcomeFlag> for Outcome {
    fn from(flag: OutcomeFlag) -> Self {
        match flag {
            OutcomeFlag::Running => Self::Running,
            OutcomeFlag::Succeeded => Self::Succeeded,
            OutcomeFlag::Failed => Self::Failed,
            OutcomeFlag::Signalled => Self::Signalled,
            OutcomeFlag::TimedOut => Self::TimedOut,
            OutcomeFlag::Lost => Self::Lost,
            OutcomeFlag::NotStarted => Self::NotStarted,
            OutcomeFlag::Unknown => Self::Unknown,
        }
    }
}

/// A listing of tokens.
#[derive(Debug)]
pub struct StatusRequest {
    /// In this group only.
    pub group: Option<GroupName>,
    pub store: StoreRequest,
    /// Anew after this long, until it is interrupted.
    pub watch: Option<Duration>,
    /// JSON instead of a table.
    pub json: bool,
}

/// A listing of runs, and of acts of operators.
#[derive(Debug)]
pub struct HistoryRequest {
    /// In this group only.
    pub group: Option<GroupName>,
    pub store: StoreRequest,
    /// By this client only.
    pub client: Option<ClientId>,
    /// With this outcome only, as it is shown.
    pub outcome: Option<Outcome>,
    /// Begun in this time.
    pub since: Option<Duration>,
    /// At most so many.
    pub limit: u32,
    /// A picture instead of a table.
    pub timeline: bool,
    /// JSON instead of a table.
    pub json: bool,
}

impl TryFrom<StatusFlags> for StatusRequest {
    type Error = Unusable;

    fn try_from(flags: StatusFlags) -> Result<Self, Unusable> {
        Ok(Self {
            group: group_filter(flags.group.as_deref())?,
            store: flags.store.into(),
            watch: flags.watch.map(|every| every.max(LEAST_WATCH)),
            json: flags.json,
        })
    }
}

impl TryFrom<HistoryFlags> for HistoryRequest {
    type Error = Unusable;

    fn try_from(flags: HistoryFlags) -> Result<Self, Unusable> {
        Ok(Self {
            group: group_filter(flags.group.as_deref())?,
            store: flags.store.into(),
            client: client("--client", flags.client.as_deref())?,
            outcome: flags.outcome.map(Outcome::from),
            since: flags.since,
            limit: flags.limit,
            timeline: flags.timeline,
            json: flags.json,
        })
    }
}
