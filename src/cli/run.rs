//! A run: its options, and the request that they make.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::claim::{NodeFlags, TimingFlags};
use super::hooks::{HookFlags, HookRequest};
use super::shared::{
    LogFlags, LogRequest, RecordFlags, StoreFlags, StoreRequest, code_value, duration_value,
    group_name,
};
use super::unusable::{Unusable, shell_word};
use crate::config::CAPTURED;
use crate::duration;
use crate::exit;
use crate::run::machine::Wait;
use crate::size::{self, SizeError};
use crate::token::{ClientId, GroupName, OnceKey, Timing};

/// A year and a month: a yearly job is not run again because its key was forgotten.
pub(super) const ONCE_RETAIN: Duration = Duration::from_secs(400 * 24 * 3_600);

/// What happens to processes that the job leaves behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LeftoversFlag {
    /// They are ended too
    #[default]
    Kill,
    /// They are left alone
    Leave,
}

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)]
pub(super) struct RunFlags {
    /// The group: what must run on one node at a time
    ///
    /// A name of 1 to 200 visible characters, without a blank at either end. No variable stands for
    /// this option: it would leak into jobs that run other groups.
    #[arg(
        short,
        long,
        value_name = "NAME",
        display_order = 1,
        help_heading = "Everyday options"
    )]
    group: Option<String>,
    /// Wait in the queue until the token can be taken, at most this long; then exit code 75
    /// [default: no; without a DURATION there is no limit]
    ///
    /// Waiting sessions get the token in the order of their arrival, and before sessions that do
    /// not wait.
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
    /// Run only if no run of this group with this key has succeeded: a date, a batch, a version
    /// [default: none: the job runs each time]
    ///
    /// This is at-least-once with a memory, not exactly-once: a job that died half-way, or whose
    /// success could not be recorded, runs again.
    #[arg(
        long,
        value_name = "KEY",
        env = "TOKENRUN_ONCE",
        display_order = 5,
        help_heading = "Everyday options"
    )]
    once: Option<String>,
    /// Exit code if the token can't be taken now [default: 75]
    ///
    /// It stands for every refusal: the token is held, kept for another client, granted too
    /// recently or paused, or other clients are ahead in the queue. With 0 a refusal is a success,
    /// and cron sends no mail.
    #[arg(
        short = 'E',
        long,
        value_name = "N",
        env = "TOKENRUN_CONFLICT_EXIT_CODE",
        value_parser = code_value,
        display_order = 6,
        help_heading = "Everyday options"
    )]
    conflict_exit_code: Option<u8>,
    /// End the job after this time, with exit code 124 [default: none]
    ///
    /// The job gets TERM, and KILL after --kill-grace, together with every process that it has
    /// started. Without a limit, a job that hangs renews its lease for ever, and no other node
    /// takes over.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_TIMEOUT", value_parser = duration_value, display_order = 7, help_heading = "Everyday options")]
    timeout: Option<Duration>,
    #[command(flatten)]
    times: TimingFlags,
    /// What happens to processes that the job leaves behind
    ///
    /// They are part of the job: a process that still writes when another node has the token would
    /// be a second run. Use leave for a job that starts a daemon.
    #[arg(
        long,
        value_name = "WHAT",
        env = "TOKENRUN_LEFTOVERS",
        default_value = "kill",
        help_heading = "The job"
    )]
    leftovers: LeftoversFlag,
    /// Do not let the job inherit the lock that shows other runs on this host that it is alive
    ///
    /// For a job that must have no additional file descriptor. If such a job outlives tokenrun,
    /// nothing on this host shows it, and nothing proves that it is dead: other runs on this host
    /// wait for --takeover-after, as other hosts do.
    #[arg(long, env = "TOKENRUN_CLOSE_LOCK", help_heading = "The job")]
    close_lock: bool,
    /// Catch the output of the job, print it only if the job does not succeed, and store its last
    /// SIZE bytes for tokenrun output [default: no; without a SIZE 64KiB]
    ///
    /// Under cron, a failure then sends a mail with the output, and a success sends none. The
    /// output goes to stderr once the token is released; messages about the end follow it. Output
    /// beyond SIZE is counted and dropped. SIZE is from 1k to 1M; 0 switches it off. The stdout and
    /// stderr of the job are one pipe then, and no terminal. Every user with access to the store
    /// can read the output: make sure that it holds no secrets.
    #[arg(
        long,
        value_name = "SIZE",
        env = "TOKENRUN_CAPTURE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = CAPTURED,
        value_parser = capture_value,
        help_heading = "The job"
    )]
    capture: Option<CaptureFlag>,
    /// Exit code if the key of --once is done already [default: 0]
    ///
    /// A key that is done counts as a success. Give another code if a script must know that this
    /// run did nothing.
    #[arg(
        long,
        value_name = "N",
        env = "TOKENRUN_DONE_EXIT_CODE",
        value_parser = code_value,
        help_heading = "The job"
    )]
    done_exit_code: Option<u8>,
    #[command(flatten)]
    hooks: HookFlags,
    /// Write what happened to this file as JSON when the run has ended [default: none]
    ///
    /// It tells the exit code of the job from that of tokenrun. The file is replaced as a whole.
    /// Its fields are listed by tokenrun help json.
    #[arg(
        long,
        value_name = "FILE",
        env = "TOKENRUN_REPORT",
        help_heading = "Reports and messages"
    )]
    report: Option<PathBuf>,
    #[command(flatten)]
    history: RecordFlags,
    /// How long keys that are done are kept, at least [default: 400d]
    ///
    /// The default is more than a year, so that a yearly job does not run again.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_ONCE_RETAIN", value_parser = duration_value, help_heading = "Reports and messages")]
    once_retain: Option<Duration>,
    #[command(flatten)]
    log: LogFlags,
    #[command(flatten)]
    node: NodeFlags,
    #[command(flatten, next_help_heading = "Everyday options")]
    store: StoreFlags,
    /// The job: a program and its arguments
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl RunFlags {
    /// The group, if one was given.
    pub(super) fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    pub(super) fn timing(&self) -> Result<Timing, Unusable> {
        self.times.timing(None)
    }

    pub(super) fn store(self) -> StoreRequest {
        self.store.into()
    }
}

/// The shortest longest run of a job: a job may end by itself in a shorter one before it can be ended.
const TIMEOUT_MIN: Duration = Duration::from_millis(100);

/// The meaning of `--wait` without a duration.
pub(super) const FOREVER: &str = crate::config::FOREVER;

pub(super) fn wait_value(text: &str) -> Result<Wait, duration::DurationError> {
    if text == FOREVER {
        return Ok(Wait::Forever);
    }
    duration::parse(text).map(Wait::For)
}

/// What `--capture` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CaptureFlag(Option<usize>);

fn capture_value(text: &str) -> Result<CaptureFlag, SizeError> {
    let size = match text {
        // As other variables take a yes or no.
        "0" | "false" => None,
        "true" => Some(size::parse(CAPTURED)?),
        text => Some(size::parse(text)?),
    };
    Ok(CaptureFlag(size))
}

/// A run, validated.
#[derive(Debug)]
pub struct RunRequest {
    pub group: GroupName,
    pub store: StoreRequest,
    /// The client id, if one was given.
    pub client_id: Option<ClientId>,
    /// The expected client.
    pub expected: Option<ClientId>,
    /// Whether the expected client takes the token back.
    pub failback: bool,
    pub timing: Timing,
    /// The job's longest run.
    pub timeout: Option<Duration>,
    /// How long it waits in the queue.
    pub wait: Wait,
    /// Whether the job ends as soon as the token is handed off.
    pub yields: bool,
    /// What happens to processes that the job leaves behind.
    pub leftovers: LeftoversFlag,
    /// Whether the job does not inherit its lock.
    pub close_lock: bool,
    /// How much of the job's output is caught, if it is.
    pub capture: Option<usize>,
    /// The exit code for a refusal.
    pub conflict_exit_code: u8,
    /// The key that must not run again.
    pub once: Option<OnceKey>,
    /// The exit code for a key that is done.
    pub done_exit_code: u8,
    /// How long keys are kept.
    pub once_retain: Duration,
    /// How long history is kept.
    pub history_retain: Duration,
    /// Where the report goes.
    pub report: Option<PathBuf>,
    /// The commands that are run when its end is known.
    pub hooks: HookRequest,
    /// The user's name for the run.
    pub label: Option<String>,
    /// The amount and the style of messages.
    pub log: LogRequest,
    /// The job: at least the program's name.
    pub command: Vec<OsString>,
}

pub(super) fn run_request(flags: RunFlags) -> Result<RunRequest, Unusable> {
    let Some(group) = &flags.group else {
        return Err(Unusable::usage(
            "no group: name what must run on one node at a time, as in tokenrun --group nightly -- /opt/etl/run.sh (tokenrun --help tells more)",
        ));
    };
    let group = group_name(group)?;
    if flags
        .command
        .first()
        .is_none_or(|program| program.is_empty())
    {
        return Err(Unusable::usage(format!(
            "no command: put it after --, as in tokenrun --group {} -- /opt/etl/run.sh",
            shell_word(group.as_str())
        )));
    }
    let timing = flags.times.timing(None)?;
    if let Some(timeout) = flags.timeout.filter(|it| *it < TIMEOUT_MIN) {
        let text = format!(
            "--timeout {} is too short; give at least {}, or leave it out for no limit",
            duration::exact(timeout),
            duration::exact(TIMEOUT_MIN)
        );
        return Err(Unusable::about(&["--timeout"], text));
    }
    let once = flags.once.as_deref().map(OnceKey::given).transpose();
    let once = once.map_err(|error| Unusable::about(&["--once"], format!("--once {error}")))?;
    let unexpanded = once.as_ref().filter(|key| key.as_str().contains("$("));
    if let Some(key) = unexpanded {
        // It would be done by the first run, and then no node would ever run the job.
        return Err(Unusable::about(
            &["--once"],
            format!(
                "--once {} is a variable or a command that was not expanded, so that each run would have the same key: see how it is quoted, and in Kubernetes that the container has the variable",
                key.as_str()
            ),
        ));
    }
    Ok(RunRequest {
        group,
        store: flags.store.into(),
        client_id: flags.node.client_id()?,
        expected: flags.node.expected()?,
        failback: flags.node.failback,
        timing,
        timeout: flags.timeout,
        wait: flags.wait.unwrap_or_default(),
        yields: false,
        leftovers: flags.leftovers,
        close_lock: flags.close_lock,
        capture: flags.capture.and_then(|it| it.0),
        conflict_exit_code: flags.conflict_exit_code.unwrap_or(exit::NOT_NOW),
        once,
        done_exit_code: flags.done_exit_code.unwrap_or(0),
        once_retain: flags.once_retain.unwrap_or(ONCE_RETAIN),
        history_retain: flags.history.retain(),
        report: flags.report,
        hooks: flags.hooks.try_into()?,
        label: flags.history.label()?,
        log: flags.log.into(),
        command: flags.command,
    })
}
