//! The agent that keeps a token without a job.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::claim::{NodeFlags, TimingFlags};
use super::hooks::HookRequest;
use super::run::{FOREVER, LeftoversFlag, ONCE_RETAIN, RunRequest, wait_value};
use super::shared::{LogFlags, RecordFlags, StoreFlags, group_name};
use super::unusable::Unusable;
use crate::exit;
use crate::run::machine::Wait;

/// The first word of the process in the place of a job. No person writes it.
pub const STAND_IN: &str = "hold:stand-in";

#[derive(Debug, Args)]
pub(super) struct HoldFlags {
    /// The group: what must be on one node at a time
    #[arg(
        short,
        long,
        value_name = "NAME",
        display_order = 1,
        help_heading = "Everyday options"
    )]
    group: String,
    /// Wait for the token at most this long, each time; then exit code 75 [default: no limit]
    #[arg(
        long,
        value_name = "DURATION",
        env = "TOKENRUN_WAIT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = FOREVER,
        value_parser = wait_value,
        display_order = 3, help_heading = "Everyday options"
    )]
    wait: Option<Wait>,
    /// A shell command to run at each gain and each loss of the token [default: none]
    ///
    /// TOKENRUN_CHANGE is gain or loss. TOKENRUN_GROUP, TOKENRUN_CLIENT_ID, TOKENRUN_SESSION and
    /// TOKENRUN_FENCE are set as for a job. At a loss the command has --kill-grace to end, before
    /// another client can have the token; then it is killed with every process that it has started.
    #[arg(
        long,
        value_name = "CMD",
        env = "TOKENRUN_ON_CHANGE",
        help_heading = "Gains and losses"
    )]
    on_change: Option<String>,
    /// The file that shows tokenrun check that this node has the token [default: by the name of the
    /// group]
    ///
    /// The default is the name of the group and .json, in /run/tokenrun for root, in
    /// $XDG_RUNTIME_DIR/tokenrun for other users, otherwise in the state directory.
    #[arg(
        long,
        value_name = "FILE",
        env = "TOKENRUN_RUNTIME_FILE",
        help_heading = "Gains and losses"
    )]
    runtime_file: Option<PathBuf>,
    #[command(flatten)]
    times: TimingFlags,
    #[command(flatten)]
    history: RecordFlags,
    #[command(flatten)]
    log: LogFlags,
    #[command(flatten)]
    node: NodeFlags,
    #[command(flatten, next_help_heading = "Everyday options")]
    store: StoreFlags,
}

/// An agent, validated.
#[derive(Debug)]
pub struct HoldRequest {
    /// The run by which it has the token; its command is made later.
    pub run: RunRequest,
    /// What is run at each gain and loss.
    pub on_change: Option<String>,
    /// The runtime file, if one was given.
    pub runtime_file: Option<PathBuf>,
}

/// The order to the process in the place of a job, as JSON in its second word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandIn {
    /// What is run at each gain and loss.
    pub on_change: Option<String>,
    /// The runtime file.
    pub runtime_file: PathBuf,
    /// How quiet it is.
    pub quiet: u8,
    /// Messages are JSON.
    pub json: bool,
}

impl StandIn {
    /// The order in a command line, if the line belongs to such a process.
    pub(super) fn of(arguments: &[OsString]) -> Option<Self> {
        let [_, word, order] = arguments else {
            return None;
        };
        (word == STAND_IN)
            .then(|| serde_json::from_str(order.to_str()?).ok())
            .flatten()
    }
}

impl TryFrom<HoldFlags> for HoldRequest {
    type Error = Unusable;

    fn try_from(flags: HoldFlags) -> Result<Self, Unusable> {
        let run = RunRequest {
            group: group_name(&flags.group)?,
            store: flags.store.into(),
            client_id: flags.node.client_id()?,
            expected: flags.node.expected()?,
            failback: flags.node.failback,
            // No job is repeated by a late clock: the next waiter gets it at once.
            timing: flags.times.timing(Some(Duration::ZERO))?,
            timeout: None,
            wait: flags.wait.unwrap_or(Wait::Forever),
            yields: true,
            leftovers: LeftoversFlag::Kill,
            close_lock: false,
            capture: None,
            conflict_exit_code: exit::NOT_NOW,
            once: None,
            done_exit_code: 0,
            once_retain: ONCE_RETAIN,
            history_retain: flags.history.retain(),
            report: None,
            hooks: HookRequest::default(),
            label: flags.history.label()?,
            log: flags.log.into(),
            command: Vec::new(),
        };
        Ok(Self {
            run,
            on_change: flags.on_change,
            runtime_file: flags.runtime_file,
        })
    }
}
