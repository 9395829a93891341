//! A run: `tokenrun --group NAME -- CMD`.

pub(super) mod hooks;
mod narrator;
pub(super) mod plan;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use self::hooks::HookOptions;
use self::plan::Plan;
use super::shared::options::{KeptOptions, LogOptions, NodeOptions, StoreOptions, TimingOptions};
use super::shared::{Action, Context};
use crate::cli::Unusable;
use crate::cli::values::{self, Word};
use crate::duration;
use crate::exit::{self, Exit};
use crate::job::Leftovers;
use crate::report::log::Style;
use crate::report::printable::shell_word;
use crate::run::ending::Codes;
use crate::run::machine::{Limits, Wait};
use crate::store::Retention;
use crate::token::{GroupName, OnceKey, Timing};

/// A year and a month: a yearly job is not run again because its key was forgotten.
pub(super) const ONCE_RETAIN: Duration = Duration::from_secs(400 * 24 * 3_600);

/// The shortest longest run of a job: a job may end by itself in a shorter one before it can be ended.
const TIMEOUT_MIN: Duration = Duration::from_millis(100);

/// The words of `--leftovers`.
static LEFTOVERS: [Word<Leftovers>; 2] = [
    ("kill", Leftovers::Kill, "They are ended too"),
    ("leave", Leftovers::Leave, "They are left alone"),
];

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)]
#[command(next_help_heading = "Everyday options")]
pub(super) struct Run {
    /// The group: what must run on one node at a time
    ///
    /// A name of 1 to 200 visible characters, without a blank at either end. No variable stands for
    /// this option: it would leak into jobs that run other groups.
    #[arg(short, long, value_name = "NAME", value_parser = values::group, display_order = 1)]
    group: Option<GroupName>,
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
        default_missing_value = values::FOREVER,
        value_parser = values::wait,
        display_order = 3
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
        value_parser = values::once,
        display_order = 5
    )]
    once: Option<OnceKey>,
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
        value_parser = values::code,
        display_order = 6
    )]
    conflict_exit_code: Option<u8>,
    /// End the job after this time, with exit code 124 [default: none]
    ///
    /// The job gets TERM, and KILL after --kill-grace, together with every process that it has
    /// started. Without a limit, a job that hangs renews its lease for ever, and no other node
    /// takes over.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_TIMEOUT", value_parser = values::duration, display_order = 7)]
    timeout: Option<Duration>,
    #[command(flatten, next_help_heading = "Lease and timing")]
    times: TimingOptions,
    /// After a failed run, let another client run the job next
    ///
    /// Without it the token stays with its client, however often the job fails there. With it, a run
    /// that fails, is killed or times out leaves the token to the first client that comes; its own
    /// client waits --head-start. Other clients are still refused within --keep, unless they wait in
    /// the queue.
    #[arg(
        long,
        env = "TOKENRUN_MOVE_ON_FAILURE",
        help_heading = "Lease and timing"
    )]
    move_on_failure: bool,
    /// What happens to processes that the job leaves behind
    ///
    /// They are part of the job: a process that still writes when another node has the token would
    /// be a second run. Use leave for a job that starts a daemon.
    #[arg(
        long,
        value_name = "WHAT",
        env = "TOKENRUN_LEFTOVERS",
        default_value = "kill",
        value_parser = values::one_of(&LEFTOVERS),
        help_heading = "The job"
    )]
    leftovers: Leftovers,
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
        default_missing_value = values::CAPTURED,
        value_parser = values::capture,
        help_heading = "The job"
    )]
    capture: Option<values::Capture>,
    /// Exit code if the key of --once is done already [default: 0]
    ///
    /// A key that is done counts as a success. Give another code if a script must know that this
    /// run did nothing.
    #[arg(
        long,
        value_name = "N",
        env = "TOKENRUN_DONE_EXIT_CODE",
        value_parser = values::code,
        help_heading = "The job"
    )]
    done_exit_code: Option<u8>,
    #[command(flatten, next_help_heading = "Hooks")]
    hooks: HookOptions,
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
    #[command(flatten, next_help_heading = "Reports and messages")]
    history: KeptOptions,
    /// How long keys that are done are kept, at least [default: 400d]
    ///
    /// The default is more than a year, so that a yearly job does not run again.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_ONCE_RETAIN", value_parser = values::duration, help_heading = "Reports and messages")]
    once_retain: Option<Duration>,
    #[command(flatten)]
    log: LogOptions,
    #[command(flatten, next_help_heading = "Identity")]
    node: NodeOptions,
    #[command(flatten, next_help_heading = "Everyday options")]
    pub(super) store: StoreOptions,
    /// The job: a program and its arguments
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl Run {
    pub(super) fn timing(&self) -> Result<Timing, Unusable> {
        self.times.timing(None)
    }

    /// The group, which a run must have.
    fn named(&self) -> Result<&GroupName, Unusable> {
        self.group.as_ref().ok_or_else(|| Unusable::usage(
            "no group: name what must run on one node at a time, as in tokenrun --group nightly -- /opt/etl/run.sh (tokenrun --help tells more)",
        ))
    }

    pub(super) fn plan(&self) -> Result<Plan<'_>, Unusable> {
        Ok(Plan {
            group: self.named()?,
            store: &self.store,
            node: &self.node,
            timing: self.timing()?,
            label: self.history.label.clone(),
            move_on_failure: self.move_on_failure,
            once: self.once.as_ref(),
            limits: Limits {
                timeout: self.timeout,
                wait: self.wait.unwrap_or_default(),
                ..Limits::default()
            },
            codes: Codes {
                not_now: self.conflict_exit_code.unwrap_or(exit::NOT_NOW),
                done: self.done_exit_code.unwrap_or(0),
                once: self.once.is_some(),
            },
            retention: Retention {
                history: self.history.retain(),
                outputs: self.history.outputs(),
                once: self.once_retain.unwrap_or(ONCE_RETAIN),
            },
            hooks: self.hooks.clone(),
            report: self.report.clone(),
            leftovers: self.leftovers,
            close_lock: self.close_lock,
            capture: self.capture.unwrap_or_default().0,
            command: self.command.clone(),
        })
    }
}

impl Action for Run {
    fn check(&self) -> Result<(), Unusable> {
        let group = self.named()?;
        if self
            .command
            .first()
            .is_none_or(|program| program.is_empty())
        {
            return Err(Unusable::usage(format!(
                "no command: put it after --, as in tokenrun --group {} -- /opt/etl/run.sh",
                shell_word(group.as_str())
            )));
        }
        self.timing()?;
        if let Some(timeout) = self.timeout.filter(|it| *it < TIMEOUT_MIN) {
            let text = format!(
                "--timeout {} is too short; give at least {}, or leave it out for no limit",
                duration::exact(timeout),
                duration::exact(TIMEOUT_MIN)
            );
            return Err(Unusable::about(&["--timeout"], text));
        }
        self.hooks.check()
    }

    fn style(&self) -> Style {
        self.log.style()
    }

    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        let plan = self.plan()?;
        plan.run_to_its_end(None, context).map(|(_, exit)| exit)
    }
}
