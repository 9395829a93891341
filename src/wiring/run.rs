//! Puts the parts of a run together.

use std::time::Duration;

use anyhow::Result;

use super::environment::{
    default_file_to_make, tell_of_made_file, warn_of_overlay, warn_of_unknown_variables,
};
use super::node;
use super::stores::{StoreOfRun, keep_apart, open_in_time, store_url};
use crate::cli::{self, RunRequest};
use crate::commands;
use crate::commands::failure::Failure;
use crate::commands::hooks::Hooks;
use crate::commands::run::Run;
use crate::exit::Exit;
use crate::job::Leftovers;
use crate::report::log::Log;
use crate::report::message::Subject;
use crate::run::ending::{Codes, Ending, NotStarted};
use crate::run::machine::{Limits, Wait};
use crate::run::outside::{LockSettings, Outside};
use crate::store::Retention;
use crate::store::open::Opened;
use crate::sys::clock::LocalClock;
use crate::sys::service_manager::ServiceManager;
use crate::sys::signals::Inherited;

/// A run with its hooks, or one run of an agent: then `manager` gets reports.
pub(crate) fn run_to_its_end(
    mut request: RunRequest,
    inherited: Inherited,
    manager: Option<&mut ServiceManager>,
    log: &mut Log,
) -> Result<(Ending, Exit)> {
    let clock = LocalClock::start();
    let hooks = std::mem::take(&mut request.hooks);
    let mut hooks = Hooks::new(hooks, &request.group, inherited, clock);
    let ended = attempt(request, inherited, clock, manager, &mut hooks, log);
    if let Err(error) = &ended {
        hooks.after_error(error, log);
    }
    ended
}

fn attempt(
    request: RunRequest,
    inherited: Inherited,
    clock: LocalClock,
    mut manager: Option<&mut ServiceManager>,
    hooks: &mut Hooks,
    log: &mut Log,
) -> Result<(Ending, Exit)> {
    warn_of_unknown_variables(log);
    let url = store_url(&request.store)?;
    warn_of_overlay(&url, log);
    let to_make = default_file_to_make(&request.store, &url);
    let claim = node::claim(&request)?;
    hooks.claims(&claim);
    log.about(Subject {
        group: Some(claim.group.to_string()),
        client: Some(claim.client.to_string()),
        session: Some(claim.session.to_string()),
        host: claim.about.host.clone(),
        fence: None,
    });
    let timeout = request.timing.store_timeout;
    if let Some(path) = &request.report {
        keep_apart(&url, "--report", path)?;
        commands::run::check_report(path, &claim.session)?;
    }
    // Before the store is asked: a node that can't run the job must not get its token.
    let unstartable = NotStarted::foreseen(&request.command);
    let store = StoreOfRun {
        url: &url,
        timeout,
        application: &format!("tokenrun:{}", request.group),
        wait: match unstartable {
            Some(_) => Wait::No,
            None => request.wait,
        },
        clock,
    };
    let opened = open_in_time(&store, log, || {
        if let Some(manager) = manager.as_deref_mut() {
            manager.at_work();
        }
    });
    let Opened { store, locks } = match (opened, &unstartable) {
        // There is no place for a record of it.
        (Err(_), Some(why)) => {
            let text = why.reason().unwrap_or_default();
            return Err(Failure::new(why.code(), "not_started", text).into());
        }
        (opened, _) => opened?,
    };
    if let Some(path) = to_make {
        tell_of_made_file(path, log);
    }
    let job = Run {
        claim,
        limits: Limits {
            timeout: request.timeout,
            wait: request.wait,
            locks: locks.is_some(),
            yields: request.yields,
        },
        codes: Codes {
            not_now: request.conflict_exit_code,
            done: request.done_exit_code,
            once: request.once.is_some(),
        },
        report: request.report,
        outside: Outside {
            clock,
            inherited,
            argv: request.command,
            unstartable,
            capture: request.capture,
            leftovers: match request.leftovers {
                cli::LeftoversFlag::Kill => Leftovers::Kill,
                cli::LeftoversFlag::Leave => Leftovers::Leave,
            },
            retention: Retention {
                history: request.history_retain,
                once: request.once_retain,
            },
            locks: LockSettings {
                directory: locks,
                inherited: !request.close_lock,
                patience: url.file().is_none().then(|| patience_for(timeout)),
            },
        },
    };
    commands::run::run(job, store, manager, hooks, log)
}

/// How long a directory of locks is waited for, less than a call of the store: a waiter must send
/// its next heartbeat.
fn patience_for(store_timeout: Duration) -> Duration {
    (store_timeout / 2).min(Duration::from_secs(1))
}
