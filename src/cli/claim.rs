//! Who asks for a token, and on which terms: what a run and `hold` have in common; `doctor`
//! has the durations.

use std::time::Duration;

use clap::Args;

use super::shared::{client, duration_value};
use super::unusable::Unusable;
use crate::token::{ClientId, Timing, Wishes};

#[derive(Debug, Args)]
pub(super) struct ClaimFlags {
    /// Who this node is [default: $CLIENT_ID, else the host name]
    #[arg(
        long,
        value_name = "ID",
        env = "TOKENRUN_CLIENT_ID",
        help_heading = "The token"
    )]
    client_id: Option<String>,
    /// The client that shall have the token first; recorded when the group is first seen
    #[arg(
        long,
        value_name = "ID",
        env = "TOKENRUN_EXPECTED",
        help_heading = "The token"
    )]
    expected: Option<String>,
    /// As the expected client, take the token back when it is idle
    #[arg(long, env = "TOKENRUN_FAILBACK", help_heading = "The token")]
    pub(super) failback: bool,
    #[command(flatten)]
    times: TimingFlags,
}

/// The durations of a run.
#[derive(Debug, Args)]
pub(super) struct TimingFlags {
    /// Time between two signs of life [default: 10s]
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_HEARTBEAT", value_parser = duration_value, help_heading = "Time")]
    heartbeat: Option<Duration>,
    /// How long a holder may be silent before another takes over [default: 5m]
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_TAKEOVER_AFTER", value_parser = duration_value, help_heading = "Time")]
    takeover_after: Option<Duration>,
    /// How long after a run other nodes are refused, so that a late clock does not run the job
    /// again; 0 releases at exit [default: 5m]
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_KEEP", value_parser = duration_value, help_heading = "Time")]
    keep: Option<Duration>,
    /// How long a node other than the last waits before it takes an open token [default: 10s]
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_HEAD_START", value_parser = duration_value, help_heading = "Time")]
    head_start: Option<Duration>,
    /// The least time from this run's start to the next one's, on whichever node [default: 0]
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_AT_LEAST", value_parser = duration_value, help_heading = "Time")]
    at_least: Option<Duration>,
    /// Time between the job's TERM and its KILL [default: 10s]
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_KILL_GRACE", value_parser = duration_value, help_heading = "Time")]
    kill_grace: Option<Duration>,
    /// How long one call of the store may take [default: 10s, at most a tenth of takeover-after]
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_STORE_TIMEOUT", value_parser = duration_value, help_heading = "Time")]
    store_timeout: Option<Duration>,
}

impl TimingFlags {
    /// The durations, with this `--keep` if none was given.
    pub(super) fn timing(&self, keep: Option<Duration>) -> Result<Timing, Unusable> {
        Timing::new(&Wishes {
            heartbeat: self.heartbeat,
            takeover_after: self.takeover_after,
            keep: self.keep.or(keep),
            head_start: self.head_start,
            at_least: self.at_least,
            kill_grace: self.kill_grace,
            store_timeout: self.store_timeout,
        })
        .map_err(|error| Unusable::usage(error.to_string()))
    }
}

impl ClaimFlags {
    /// The durations, with this `--keep` if none was given.
    pub(super) fn timing(&self, keep: Option<Duration>) -> Result<Timing, Unusable> {
        self.times.timing(keep)
    }

    pub(super) fn client_id(&self) -> Result<Option<ClientId>, Unusable> {
        client("--client-id", self.client_id.as_deref())
    }

    pub(super) fn expected(&self) -> Result<Option<ClientId>, Unusable> {
        client("--expected", self.expected.as_deref())
    }
}
