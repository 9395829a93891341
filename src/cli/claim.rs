//! The claimant of a token and its terms: the common options of a run and `hold`; `doctor` has the
//! durations.

use std::time::Duration;

use clap::Args;

use super::shared::{client, duration_value};
use super::unusable::Unusable;
use crate::token::{ClientId, Timing, Wishes};

// The durations of a run.
#[derive(Debug, Args)]
pub(super) struct TimingFlags {
    /// Time between two heartbeats [default: 10s]
    ///
    /// A heartbeat is a small write to the store. With a shorter time, a holder notices sooner that
    /// its token is gone, or that an operator wants it.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_HEARTBEAT", value_parser = duration_value, help_heading = "Lease and timing")]
    heartbeat: Option<Duration>,
    /// How long a holder may be silent before another node takes over [default: 5m]
    ///
    /// A holder that can't reach the store ends its job before this time is over. A shorter time
    /// replaces a dead node sooner. A longer time lets jobs survive a longer outage of the store.
    /// The value of the holder counts, not that of the node that takes over.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_TAKEOVER_AFTER", value_parser = duration_value, help_heading = "Lease and timing")]
    takeover_after: Option<Duration>,
    /// How long after a run other nodes are refused; 0 releases the token when the job ends
    /// [default: 5m]
    ///
    /// A node with a late clock does not run the job again in this time, so it must be longer than
    /// the clocks of the nodes differ. For tokenrun hold the default is 0.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_KEEP", value_parser = duration_value, display_order = 4, help_heading = "Everyday options")]
    keep: Option<Duration>,
    /// How long a node other than the last one waits before it takes an open token [default: 10s]
    ///
    /// It keeps the job on its node: cron starts on all nodes in the same second, and the node of
    /// the last run takes the token first.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_HEAD_START", value_parser = duration_value, help_heading = "Lease and timing")]
    head_start: Option<Duration>,
    /// The least time from the start of this run to the start of the next, on any node [default: 0]
    ///
    /// For a job that must not run twice in a night, however late a clock is. The time counts from
    /// the grant, for this node too, and however the run ends: a job that crashed is not repeated
    /// within it. Leave it out if a crashed job should be repeated sooner.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_AT_LEAST", value_parser = duration_value, help_heading = "Lease and timing")]
    at_least: Option<Duration>,
    /// Time between TERM and KILL when the job is ended [default: 10s]
    ///
    /// The job can clean up in this time. A lease that can't be renewed is given up earlier by this
    /// time, so that the job is gone before another node may start.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_KILL_GRACE", value_parser = duration_value, help_heading = "Lease and timing")]
    kill_grace: Option<Duration>,
    /// How long one call of the store may take [default: 10s, at most a tenth of takeover-after]
    ///
    /// After this time tokenrun gives the call up and closes the connection: a store that hangs
    /// counts as a store that is gone.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_STORE_TIMEOUT", value_parser = duration_value, help_heading = "Lease and timing")]
    store_timeout: Option<Duration>,
}

// This node, and the one that the token is meant for.
#[derive(Debug, Args)]
pub(super) struct NodeFlags {
    /// The name of this node [default: $CLIENT_ID, else the host name]
    ///
    /// The token stays with this name from run to run, so the name must outlive the process: use
    /// the name of a cluster, not the name of a pod.
    #[arg(
        long,
        value_name = "ID",
        env = "TOKENRUN_CLIENT_ID",
        help_heading = "Identity"
    )]
    client_id: Option<String>,
    /// The client that gets the token first; recorded when the group is first used [default: none:
    /// the first client that comes gets the token]
    ///
    /// A failover does not change it; tokenrun expect does. Other clients wait --takeover-after for
    /// its first run.
    #[arg(
        long,
        value_name = "ID",
        env = "TOKENRUN_EXPECTED",
        help_heading = "Identity"
    )]
    expected: Option<String>,
    /// If this node is the expected client, take the token back when it is idle
    ///
    /// Without it the token stays where a failover has brought it, because each move is a risk. A
    /// job that runs on another node is never interrupted.
    #[arg(long, env = "TOKENRUN_FAILBACK", help_heading = "Identity")]
    pub(super) failback: bool,
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

impl NodeFlags {
    pub(super) fn client_id(&self) -> Result<Option<ClientId>, Unusable> {
        client("--client-id", self.client_id.as_deref())
    }

    pub(super) fn expected(&self) -> Result<Option<ClientId>, Unusable> {
        client("--expected", self.expected.as_deref())
    }
}
