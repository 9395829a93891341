//! The claimant of a token and its terms: the common options of a run and `hold`; `doctor` has the
//! durations.

use std::time::Duration;

use clap::Args;

use super::shared::{client, duration_value};
use super::unusable::Unusable;
use crate::token::{ClientId, Timing, Wishes};

#[derive(Debug, Args)]
pub(super) struct ClaimFlags {
    /// Who this node is [default: $CLIENT_ID, else the host name]
    ///
    /// The token stays with this name from run to run, so that it has to outlive the process: a
    /// cluster's name rather than a pod's.
    #[arg(
        long,
        value_name = "ID",
        env = "TOKENRUN_CLIENT_ID",
        help_heading = "The token"
    )]
    client_id: Option<String>,
    /// The client that gets the token first; recorded when the group is first seen
    ///
    /// [default: none: the first to come has it]. A failover does not change it, tokenrun expect
    /// does. Others leave it --takeover-after to come for the first time.
    #[arg(
        long,
        value_name = "ID",
        env = "TOKENRUN_EXPECTED",
        help_heading = "The token"
    )]
    expected: Option<String>,
    /// As the expected client, take the token back when it is idle
    ///
    /// Without it the token stays where a failover has brought it: each move is a risk. A job that
    /// runs elsewhere is never interrupted.
    #[arg(long, env = "TOKENRUN_FAILBACK", help_heading = "The token")]
    pub(super) failback: bool,
    #[command(flatten)]
    times: TimingFlags,
}

// The durations of a run.
#[derive(Debug, Args)]
pub(super) struct TimingFlags {
    /// Time between two heartbeats [default: 10s]
    ///
    /// Each is a small write to the store. The shorter, the sooner a holder hears that its token is
    /// gone, or that an operator wants it.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_HEARTBEAT", value_parser = duration_value, help_heading = "Time")]
    heartbeat: Option<Duration>,
    /// How long a holder may be silent before another takes over [default: 5m]
    ///
    /// A holder that can't reach the store for so long has ended its job by then. The shorter,
    /// the sooner a dead node is replaced; the longer, the longer an outage of the store may last
    /// that no job notices. It is the holder's own value that counts.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_TAKEOVER_AFTER", value_parser = duration_value, help_heading = "Time")]
    takeover_after: Option<Duration>,
    /// How long after a run other nodes are refused, so that a late clock does not run the job
    /// again; 0 releases at exit [default: 5m]
    ///
    /// More than clocks of nodes may differ. It is 0 for tokenrun hold.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_KEEP", value_parser = duration_value, help_heading = "Time")]
    keep: Option<Duration>,
    /// How long a node other than the last waits before it takes an open token [default: 10s]
    ///
    /// So that the job stays on its node: entries of cron's on several nodes start at the same
    /// second, and the last node's comes first.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_HEAD_START", value_parser = duration_value, help_heading = "Time")]
    head_start: Option<Duration>,
    /// The least time from this run's start to the next one's, on whichever node [default: 0]
    ///
    /// For a job that must not run twice in a night however late a clock is. It is counted from
    /// the grant, holds for the same node too, and holds however the run ended: one that crashed
    /// is not repeated within it. Leave it out for a job that another run should repeat then.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_AT_LEAST", value_parser = duration_value, help_heading = "Time")]
    at_least: Option<Duration>,
    /// Time between the job's TERM and its KILL [default: 10s]
    ///
    /// What the job needs to clean up. A lease that can't be renewed is given up earlier by so
    /// much, so that the job is gone when another may start.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_KILL_GRACE", value_parser = duration_value, help_heading = "Time")]
    kill_grace: Option<Duration>,
    /// How long one call of the store may take [default: 10s, at most a tenth of takeover-after]
    ///
    /// A call that takes longer is given up, and the connection closed: a store that hangs counts
    /// as one that is gone.
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
        .map_err(|error| Unusable::about(&error.options(), error.to_string()))
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
