//! A run: its options, and the request that they make.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::claim::ClaimFlags;
use super::hooks::{HookFlags, HookRequest};
use super::shared::{
    LogFlags, LogRequest, RecordFlags, StoreFlags, StoreRequest, duration_value, group_name,
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
    /// They are ended too.
    #[default]
    Kill,
    /// They are left alone.
    Leave,
}

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)]
pub(super) struct RunFlags {
    /// The name of what must run on one node at a time
    ///
    /// 1 to 200 characters, none of them invisible, no blank at an end. This option alone has no variable: it would
    /// leak into jobs that run other groups.
    #[arg(short, long, value_name = "NAME", help_heading = "The token")]
    group: Option<String>,
    #[command(flatten)]
    claim: ClaimFlags,
    /// The job's longest run; then it is ended, exit status 124 [default: none]
    ///
    /// It is ended as by a stop: TERM, --kill-grace, KILL, with all that it has started. A job
    /// that hangs renews its lease for ever otherwise, and no other node takes over.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_TIMEOUT", value_parser = duration_value, help_heading = "The job")]
    timeout: Option<Duration>,
    /// Wait in the queue while another has the token, or it may not be taken yet; at most for so long,
    /// then exit status 75 [default: no; without a DURATION however long it takes]
    ///
    /// Those who wait come in the order of their arrival, and before those who do not wait.
    #[arg(
        long,
        value_name = "DURATION",
        env = "TOKENRUN_WAIT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = FOREVER,
        value_parser = wait_value,
        help_heading = "The token"
    )]
    wait: Option<Wait>,
    /// What happens to processes that the job leaves behind
    ///
    /// They are a part of the job: what still writes when the token is another's would be a
    /// second run. A job that starts a daemon has it left alone.
    #[arg(
        long,
        value_name = "WHAT",
        env = "TOKENRUN_LEFTOVERS",
        default_value = "kill",
        help_heading = "The job"
    )]
    leftovers: LeftoversFlag,
    /// Do not let the job inherit the lock that shows others on this host that it lives
    ///
    /// For a job that must not have a descriptor more than it was given. While it lives on
    /// without tokenrun nothing on this host shows it, so that nothing proves it dead either:
    /// others wait for --takeover-after, as on other hosts.
    #[arg(long, env = "TOKENRUN_CLOSE_LOCK", help_heading = "The job")]
    close_lock: bool,
    /// Catch what the job prints: nothing is printed if it succeeds, all if it does not; the last SIZE
    /// bytes are stored, for tokenrun output [default: no; without a SIZE 64KiB]
    ///
    /// So that cron mails the output of a failure, and of nothing else. It is printed to stderr once
    /// the token is released; messages about the end come after it. What is printed beyond SIZE is
    /// counted and dropped. A SIZE is from 1k to 1M; 0 catches nothing. The job's stdout and stderr
    /// are then one pipe and no terminal. It is stored in the store, where everybody with access to
    /// the store can read it: see that it holds no secrets.
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
    /// Run only if no run with this key has succeeded in this group: a date, a batch, a version
    ///
    /// [default: none: it runs each time].
    /// This is at-least-once with a memory, and not exactly-once: a job that died half-way, or
    /// whose success could not be recorded, is run again.
    #[arg(
        long,
        value_name = "KEY",
        env = "TOKENRUN_ONCE",
        help_heading = "The job"
    )]
    once: Option<String>,
    /// Exit status when the key is done [default: 0]
    ///
    /// Done is success, unless a script wants to know who did it.
    #[arg(
        long,
        value_name = "N",
        env = "TOKENRUN_DONE_EXIT_CODE",
        help_heading = "The job"
    )]
    done_exit_code: Option<u8>,
    /// How long keys that are done are kept, at least [default: 400d]
    ///
    /// More than a year, so that a yearly job is not run again.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_ONCE_RETAIN", value_parser = duration_value, help_heading = "Time")]
    once_retain: Option<Duration>,
    /// Exit status when another holds the token [default: 75]
    ///
    /// 0 where being refused is no failure: cron sends no mail then. It stands for every refusal:
    /// held, kept for another, too soon, paused, behind others.
    #[arg(
        short = 'E',
        long,
        value_name = "N",
        env = "TOKENRUN_CONFLICT_EXIT_CODE",
        help_heading = "The job"
    )]
    conflict_exit_code: Option<u8>,
    #[command(flatten)]
    hooks: HookFlags,
    #[command(flatten)]
    store: StoreFlags,
    #[command(flatten)]
    history: RecordFlags,
    /// Write what happened to this file as JSON, at the end
    ///
    /// [default: none]. For scripts: it tells a job's own exit status from tokenrun's. The file is
    /// replaced as a whole.
    #[arg(
        long,
        value_name = "FILE",
        env = "TOKENRUN_REPORT",
        help_heading = "Output"
    )]
    report: Option<PathBuf>,
    #[command(flatten)]
    log: LogFlags,
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
        self.claim.timing(None)
    }

    pub(super) fn store(self) -> StoreRequest {
        self.store.into()
    }
}

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
    let timing = flags.claim.timing(None)?;
    if flags.timeout.is_some_and(|timeout| timeout.is_zero()) {
        return Err(Unusable::about(
            &["--timeout"],
            "--timeout must be longer than 0; leave it out for no limit",
        ));
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
        client_id: flags.claim.client_id()?,
        expected: flags.claim.expected()?,
        failback: flags.claim.failback,
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
