//! `tokenrun hold`: keeps a token without a job. It makes runs, one after the other, of a process in
//! the place of a job.

pub(super) mod stand_in;

use std::ffi::{CString, OsString};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;

use self::stand_in::{STAND_IN, StandIn, unusable};
use super::run::ONCE_RETAIN;
use super::run::hooks::HookOptions;
use super::run::plan::Plan;
use super::shared::failure::Failure;
use super::shared::node::{node_environment, state};
use super::shared::options::{
    KeptOptions, LogFormat, LogOptions, NodeOptions, StoreOptions, TimingOptions,
};
use super::shared::{Action, Context};
use crate::cli::{Unusable, values};
use crate::exit::{self, Exit};
use crate::job::Leftovers;
use crate::report::log::{Log, Style};
use crate::run::ending::{Codes, Ending, JobEnd, NotStarted, Unstarted};
use crate::run::machine::{Limits, Wait};
use crate::run::runtime_file::{RuntimeFile, default_path, make_directory};
use crate::store::Retention;
use crate::sys::exec::Program;
use crate::sys::process;
use crate::sys::service_manager::ServiceManager;
use crate::sys::signals::Inherited;
use crate::sys::wait::Status;
use crate::token::{GroupName, Timing};

/// This same program, even if its file was replaced.
const ITSELF: &str = "/proc/self/exe";

/// The agent's name in killall(1) and listings, also after it has executed itself.
const NAME: &std::ffi::CStr = c"tokenrun";

/// Hold the token without a job, and report each gain and loss
#[derive(Debug, Args)]
#[command(next_help_heading = "Gains and losses")]
pub(super) struct Hold {
    /// The group: what must be on one node at a time
    #[arg(
        short,
        long,
        value_name = "NAME",
        value_parser = values::group,
        display_order = 1,
        help_heading = "Everyday options"
    )]
    group: GroupName,
    /// Wait for the token at most this long, each time; then exit code 75 [default: no limit]
    #[arg(
        long,
        value_name = "DURATION",
        env = "TOKENRUN_WAIT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = values::FOREVER,
        value_parser = values::wait,
        display_order = 3, help_heading = "Everyday options"
    )]
    wait: Option<Wait>,
    /// A shell command to run at each gain and each loss of the token [default: none]
    ///
    /// TOKENRUN_CHANGE is gain or loss. TOKENRUN_GROUP, TOKENRUN_CLIENT_ID, TOKENRUN_SESSION and
    /// TOKENRUN_FENCE are set as for a job. At a loss the command has --kill-grace to end, before
    /// another client can have the token; then it is killed with every process that it has started.
    #[arg(long, value_name = "CMD", env = "TOKENRUN_ON_CHANGE")]
    on_change: Option<String>,
    /// The file that shows tokenrun check that this node has the token [default: by the name of the
    /// group]
    ///
    /// The default is the name of the group and .json, in /run/tokenrun for root, in
    /// $XDG_RUNTIME_DIR/tokenrun for other users, otherwise in the state directory.
    #[arg(long, value_name = "FILE", env = "TOKENRUN_RUNTIME_FILE")]
    runtime_file: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Lease and timing")]
    times: TimingOptions,
    #[command(flatten, next_help_heading = "Reports and messages")]
    history: KeptOptions,
    #[command(flatten)]
    log: LogOptions,
    #[command(flatten, next_help_heading = "Identity")]
    node: NodeOptions,
    #[command(flatten, next_help_heading = "Everyday options")]
    store: StoreOptions,
}

impl Action for Hold {
    fn check(&self) -> Result<(), Unusable> {
        self.timing().map(drop)
    }

    fn style(&self) -> Style {
        self.log.style()
    }

    /// Holds the token until a stop signal. After each loss this process executes itself: a guard must
    /// be forked by a process with one thread, and nothing of the last run is left.
    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        // For people only.
        let _ = process::set_name(NAME);
        let order = StandIn {
            on_change: self.on_change.clone(),
            runtime_file: prepared(self.runtime_file.clone(), &self.group)?,
            quiet: self.log.quiet,
            json: self.log.log_format == LogFormat::Json,
        };
        let order = serde_json::to_string(&order)
            .map_err(|error| Failure::new(exit::USAGE, "usage", format!("{error}")))?;
        let plan = self.plan(vec![ITSELF.into(), STAND_IN.into(), order.into()])?;
        let mut manager = ServiceManager::of_environment();
        let (ending, exit) = plan.run_to_its_end(manager.as_mut(), context)?;
        if !goes_on(&ending) {
            return Ok(exit_of(&ending, exit));
        }
        std::mem::replace(context.log, Log::new(self.style())).close();
        let error = executed_again(context.arguments, &context.inherited);
        Err(error).context("tokenrun can't be executed again")
    }
}

impl Hold {
    /// No job is repeated by a late clock: the next waiter gets the token at once.
    fn timing(&self) -> Result<Timing, Unusable> {
        self.times.timing(Some(Duration::ZERO))
    }

    /// The run by which it has the token.
    fn plan(&self, command: Vec<OsString>) -> Result<Plan<'_>> {
        Ok(Plan {
            group: &self.group,
            store: &self.store,
            node: &self.node,
            timing: self.timing()?,
            label: self.history.label.clone(),
            move_on_failure: false,
            once: None,
            limits: Limits {
                wait: self.wait.unwrap_or(Wait::Forever),
                yields: true,
                ..Limits::default()
            },
            codes: Codes {
                not_now: exit::NOT_NOW,
                done: 0,
                once: false,
            },
            retention: Retention {
                history: self.history.retain(),
                outputs: self.history.outputs(),
                once: ONCE_RETAIN,
            },
            hooks: HookOptions::default(),
            report: None,
            leftovers: Leftovers::Kill,
            close_lock: false,
            capture: None,
            command,
        })
    }
}

/// Executes this program again. A stop signal that has come since ends this process here: it holds
/// nothing.
fn executed_again(arguments: &[OsString], inherited: &Inherited) -> io::Error {
    let itself = CString::new(ITSELF).map_err(io::Error::from);
    match itself.and_then(|itself| Ok(Program::new(arguments)?.from_file(&itself))) {
        Ok(program) => {
            inherited.restore();
            program.exec()
        }
        Err(error) => error,
    }
}

/// The runtime file's path, once it can be used.
fn prepared(given: Option<PathBuf>, group: &GroupName) -> Result<PathBuf> {
    let path = match given {
        Some(path) => std::path::absolute(&path).unwrap_or(path),
        None => {
            let path = default_runtime_file(group)?;
            make_directory(&path).map_err(|error| unusable(&path, &error))?;
            path
        }
    };
    RuntimeFile::open(&path).map_err(|error| unusable(&path, &error))?;
    Ok(path)
}

/// The default path of a group's runtime file.
pub(crate) fn default_runtime_file(group: &GroupName) -> Result<PathBuf> {
    let runtime_directory = std::env::var_os("XDG_RUNTIME_DIR");
    let is_root = node_environment().is_root;
    let path = default_path(is_root, runtime_directory.as_deref(), state(), group);
    path.map_err(|error| {
        let text = format!("there is no place for a runtime file: {error}; give --runtime-file");
        Failure::new(exit::CONFIG, "runtime_file", text).into()
    })
}

/// The agent goes on, and waits for its token again.
const fn goes_on(ending: &Ending) -> bool {
    match ending {
        Ending::Ran {
            stopped_by: Some(_),
            ..
        }
        | Ending::Refused { .. }
        | Ending::Done(_)
        | Ending::Stopped(_)
        | Ending::StoreFailed { .. }
        | Ending::NoGuard
        | Ending::Unstartable(_) => false,
        Ending::Ran { end, .. } => match end {
            JobEnd::Lost(_) | JobEnd::TimedOut(_) => true,
            // Another process stopped or killed it.
            JobEnd::Itself(Status::Exited(0) | Status::Signalled(_)) => true,
            // It has reported why it can't go on.
            JobEnd::Itself(Status::Exited(_)) => false,
            JobEnd::NotStarted(Unstarted::Guard(NotStarted::TooLate)) => true,
            JobEnd::NotStarted(_) => false,
        },
    }
}

/// How the agent ends. A requested stop is a success.
fn exit_of(ending: &Ending, as_a_run: Exit) -> Exit {
    match ending {
        Ending::Ran {
            stopped_by: Some(_),
            end: JobEnd::Itself(Status::Signalled(_)),
            ..
        } => Exit::OK,
        _ => as_a_run,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::ending::Loss;

    fn ran(end: JobEnd, stopped_by: Option<i32>) -> Ending {
        Ending::Ran {
            end,
            stopped_by,
            recorded: true,
        }
    }

    #[test]
    fn an_agent_waits_again_for_a_lost_token() {
        assert!(goes_on(&ran(JobEnd::Lost(Loss::Untrusted), None)));
        assert!(goes_on(&ran(JobEnd::Itself(Status::Exited(0)), None)));
        assert!(goes_on(&ran(JobEnd::Itself(Status::Signalled(9)), None)));
    }

    #[test]
    fn an_agent_that_was_stopped_or_cannot_go_on_ends() {
        assert!(!goes_on(&ran(JobEnd::Itself(Status::Exited(0)), Some(15))));
        assert!(!goes_on(&ran(JobEnd::Lost(Loss::Taken), Some(15))));
        assert!(!goes_on(&ran(JobEnd::Itself(Status::Exited(78)), None)));
        assert!(!goes_on(&Ending::Stopped(15)));
    }
}
