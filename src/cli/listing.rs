//! Listings of tokens and of runs.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::instant::{GivenTime, TimeError};
use super::screen::{ScreenFlags, ScreenRequest};
use super::shared::{StoreFlags, StoreRequest, client, duration_value, groups};
use super::unusable::Unusable;
use crate::report::condition::Condition;
use crate::token::{ClientId, Groups, Outcome};

/// The least pause between two reads of a store.
const LEAST_WATCH: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
pub(super) struct StatusFlags {
    /// Only this group, or the groups that match a pattern such as 'etl-*'; can be repeated
    ///
    /// A single name shows every value of its token.
    #[arg(short, long, value_name = "NAME")]
    group: Vec<String>,
    #[command(flatten)]
    store: StoreFlags,
    /// Only groups in one of these states
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<StateFlag>,
    /// wide: a table with every column, however wide; or json
    #[arg(short, long, value_name = "FORMAT", conflicts_with = "json")]
    output: Option<OutputFlag>,
    #[command(flatten)]
    screen: ScreenFlags,
    /// Show it again after each DURATION, until it is interrupted [default: no; without a DURATION
    /// 2s]
    #[arg(long, value_name = "DURATION", value_parser = duration_value, num_args = 0..=1, require_equals = true, default_missing_value = "2s")]
    watch: Option<Duration>,
    /// An array of JSON objects instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct HistoryFlags {
    /// Only this group, or the groups that match a pattern such as 'etl-*'; can be repeated
    #[arg(short, long, value_name = "NAME")]
    group: Vec<String>,
    #[command(flatten)]
    store: StoreFlags,
    #[command(flatten)]
    screen: ScreenFlags,
    /// Only runs of this client
    #[arg(long, value_name = "ID")]
    client: Option<String>,
    /// Only runs with one of these outcomes, such as failed,lost
    #[arg(long, value_name = "OUTCOME", value_delimiter = ',')]
    outcome: Vec<OutcomeFlag>,
    /// Only what began at this time or later: 12h (ago), 02:00, yesterday, 2026-11-21, '2026-11-21
    /// 02:00'
    ///
    /// Times are in the zone of this host (TZ); with --utc they are in UTC. A day stands for its
    /// begin. A time of the day stands for the last time that the clock showed it.
    #[arg(long, value_name = "TIME", value_parser = time_value)]
    since: Option<GivenTime>,
    /// Only what began before this time, given as for --since
    #[arg(long, value_name = "TIME", value_parser = time_value)]
    until: Option<GivenTime>,
    /// Show refused runs too: the client, the reason, and how often
    #[arg(long, conflicts_with_all = ["outcome", "timeline"])]
    refusals: bool,
    /// The newest N runs, refusals and acts of operators
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Draw which node ran when, as wide as the terminal
    #[arg(long, conflicts_with = "json")]
    timeline: bool,
    /// An array of JSON objects instead of a table
    #[arg(long)]
    json: bool,
}

fn time_value(text: &str) -> Result<GivenTime, TimeError> {
    GivenTime::parse(text)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputFlag {
    Wide,
    Json,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StateFlag {
    Running,
    Idle,
    Free,
    /// The holder has been silent for longer than --takeover-after
    Silent,
    Paused,
    /// The last run was not a success
    Failed,
    /// Nothing is granted, because the store may have forgotten a grant
    Observed,
    Unreadable,
}

impl From<StateFlag> for Condition {
    fn from(flag: StateFlag) -> Self {
        match flag {
            StateFlag::Running => Self::Running,
            StateFlag::Idle => Self::Idle,
            StateFlag::Free => Self::Free,
            StateFlag::Silent => Self::Silent,
            StateFlag::Paused => Self::Paused,
            StateFlag::Failed => Self::Failed,
            StateFlag::Observed => Self::Observed,
            StateFlag::Unreadable => Self::Unreadable,
        }
    }
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
    /// In these groups only.
    pub groups: Groups,
    pub store: StoreRequest,
    /// In one of these conditions only; empty: in any.
    pub conditions: Vec<Condition>,
    /// Every column, however wide.
    pub wide: bool,
    pub screen: ScreenRequest,
    /// Anew after this long, until it is interrupted.
    pub watch: Option<Duration>,
    /// JSON instead of a table.
    pub json: bool,
}

/// A listing of runs, and of acts of operators.
#[derive(Debug)]
pub struct HistoryRequest {
    /// In these groups only.
    pub groups: Groups,
    pub store: StoreRequest,
    pub screen: ScreenRequest,
    /// By this client only.
    pub client: Option<ClientId>,
    /// With one of these outcomes only, as they are shown; empty: with any.
    pub outcomes: Vec<Outcome>,
    /// Begun at this time or later.
    pub since: Option<GivenTime>,
    /// Begun before this time.
    pub until: Option<GivenTime>,
    /// Refused runs too.
    pub refusals: bool,
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
            groups: groups(&flags.group)?,
            store: flags.store.into(),
            conditions: flags.state.into_iter().map(Condition::from).collect(),
            wide: flags.output == Some(OutputFlag::Wide),
            screen: flags.screen.into(),
            watch: flags.watch.map(|every| every.max(LEAST_WATCH)),
            json: flags.json || flags.output == Some(OutputFlag::Json),
        })
    }
}

impl TryFrom<HistoryFlags> for HistoryRequest {
    type Error = Unusable;

    fn try_from(flags: HistoryFlags) -> Result<Self, Unusable> {
        Ok(Self {
            groups: groups(&flags.group)?,
            store: flags.store.into(),
            screen: flags.screen.into(),
            client: client("--client", flags.client.as_deref())?,
            outcomes: flags.outcome.into_iter().map(Outcome::from).collect(),
            since: flags.since,
            until: flags.until,
            refusals: flags.refusals,
            limit: flags.limit,
            timeline: flags.timeline,
            json: flags.json,
        })
    }
}
