//! Puts the parts of `hold` together: runs, one after the other, of a process in the place of a
//! job.

use std::ffi::{CString, OsString};
use std::io;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::logging::style;
use super::node::node_environment;
use super::run::run_to_its_end;
use crate::cli::{HoldRequest, LogFormat, STAND_IN, StandIn};
use crate::commands::failure::Failure;
use crate::commands::{hold, stand_in};
use crate::exit::Exit;
use crate::report::log::Log;
use crate::run::environment;
use crate::run::runtime_file::{Holder, RuntimeFile, default_path, make_directory};
use crate::store::url::state_directory;
use crate::sys::exec::Program;
use crate::sys::process;
use crate::sys::service_manager::ServiceManager;
use crate::sys::signals::Inherited;
use crate::token::GroupName;

/// This same program, even if its file was replaced.
const ITSELF: &str = "/proc/self/exe";

/// The agent's name in killall(1) and listings, also after it has executed itself.
const NAME: &std::ffi::CStr = c"tokenrun";

/// The name of the process in the place of a job.
const STAND_IN_NAME: &std::ffi::CStr = c"token-holder";

/// Holds the token until a stop signal. After each loss this process executes itself: a guard must
/// be forked by a process with one thread, and nothing of the last run is left.
pub(crate) fn agent(
    request: HoldRequest,
    arguments: &[OsString],
    inherited: Inherited,
    log: &mut Log,
) -> Result<Exit> {
    // For people only.
    let _ = process::set_name(NAME);
    let HoldRequest {
        mut run,
        on_change,
        runtime_file,
    } = request;
    let runtime_file = prepared(runtime_file, &run.group)?;
    let log_request = run.log;
    let order = StandIn {
        on_change,
        runtime_file,
        quiet: log_request.quiet,
        json: log_request.format == LogFormat::Json,
    };
    let order = serde_json::to_string(&order)
        .map_err(|error| Failure::new(crate::exit::USAGE, "usage", format!("{error}")))?;
    run.command = vec![ITSELF.into(), STAND_IN.into(), order.into()];
    let mut manager = ServiceManager::of_environment();
    let (ending, exit) = run_to_its_end(run, inherited, manager.as_mut(), log)?;
    if !hold::goes_on(&ending) {
        return Ok(hold::exit(&ending, exit));
    }
    std::mem::replace(log, Log::new(style(log_request))).close();
    let error = executed_again(arguments, &inherited);
    Err(error).context("tokenrun can't be executed again")
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

/// Runs the process in the place of a job.
pub(crate) fn standing_in(order: &StandIn, inherited: &Inherited, log: &mut Log) -> Result<Exit> {
    let _ = process::set_name(STAND_IN_NAME);
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let held = Holder {
        group: variable("TOKENRUN_GROUP"),
        client_id: variable("TOKENRUN_CLIENT_ID"),
        session: variable(environment::SESSION),
        fence: variable("TOKENRUN_FENCE"),
    };
    stand_in::stand_in(order, &held, inherited, log)
}

/// The runtime file's path, once it can be used.
fn prepared(given: Option<PathBuf>, group: &GroupName) -> Result<PathBuf> {
    let path = match given {
        Some(path) => std::path::absolute(&path).unwrap_or(path),
        None => {
            let path = default_runtime_file(group)?;
            make_directory(&path).map_err(|error| stand_in::unusable(&path, &error))?;
            path
        }
    };
    RuntimeFile::open(&path).map_err(|error| stand_in::unusable(&path, &error))?;
    Ok(path)
}

/// The default path of a group's runtime file.
pub(crate) fn default_runtime_file(group: &GroupName) -> Result<PathBuf> {
    let environment = node_environment();
    let runtime_directory = std::env::var_os("XDG_RUNTIME_DIR");
    let state = state_directory(&environment).ok();
    default_path(
        environment.is_root,
        runtime_directory.as_deref(),
        state,
        group,
    )
    .map_err(|error| {
        let text = format!("there is no place for a runtime file: {error}; give --runtime-file");
        Failure::new(crate::exit::CONFIG, "runtime_file", text).into()
    })
}
