//! A run that is to be made, and what it needs: the claim, the store, the limits. A job's run and an
//! agent's have it in common.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use super::super::shared::Context;
use super::super::shared::environment::{
    default_file_to_make, tell_of_made_file, warn_of_overlay, warn_of_unknown_variables,
};
use super::super::shared::failure::Failure;
use super::super::shared::node::{client_id, nested_in, new_session};
use super::super::shared::options::{NodeOptions, StoreOptions};
use super::super::shared::stores::{StoreOfRun, keep_apart, open_in_time, store_url};
use super::hooks::{HookOptions, Hooks};
use super::narrator::{Prepared, check_report, program_name, run};
use crate::exit::Exit;
use crate::job::Leftovers;
use crate::report::message::Subject;
use crate::run::ending::{Codes, Ending, NotStarted};
use crate::run::machine::{Limits, Wait};
use crate::run::setup::{LockSettings, Setup};
use crate::store::Retention;
use crate::store::open::Opened;
use crate::sys::clock::LocalClock;
use crate::sys::process;
use crate::sys::service_manager::ServiceManager;
use crate::token::{About, Claim, GroupName, OnceKey, Timing};

/// A run that is to be made.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) group: &'a GroupName,
    pub(crate) store: &'a StoreOptions,
    pub(crate) node: &'a NodeOptions,
    pub(crate) timing: Timing,
    /// The user's name for the run.
    pub(crate) label: Option<String>,
    /// After a failed run the token prefers no client.
    pub(crate) move_on_failure: bool,
    /// The key that must not run again.
    pub(crate) once: Option<&'a OnceKey>,
    /// The store decides about the locks.
    pub(crate) limits: Limits,
    pub(crate) codes: Codes,
    pub(crate) retention: Retention,
    pub(crate) hooks: HookOptions,
    pub(crate) report: Option<PathBuf>,
    pub(crate) leftovers: Leftovers,
    /// The job does not inherit its lock.
    pub(crate) close_lock: bool,
    /// How much of the job's output is caught, if it is.
    pub(crate) capture: Option<usize>,
    /// The job: at least the program's name.
    pub(crate) command: Vec<OsString>,
}

impl Plan<'_> {
    /// A run with its hooks, or one run of an agent: then `manager` gets reports.
    pub(crate) fn run_to_its_end(
        mut self,
        manager: Option<&mut ServiceManager>,
        context: &mut Context<'_>,
    ) -> Result<(Ending, Exit)> {
        let clock = LocalClock::start();
        let hooks = std::mem::take(&mut self.hooks);
        let mut hooks = Hooks::new(hooks, self.group, context.inherited, clock);
        let ended = self.attempt(clock, manager, &mut hooks, context);
        if let Err(error) = &ended {
            hooks.after_error(error, context.log);
        }
        ended
    }

    fn attempt(
        self,
        clock: LocalClock,
        mut manager: Option<&mut ServiceManager>,
        hooks: &mut Hooks,
        context: &mut Context<'_>,
    ) -> Result<(Ending, Exit)> {
        warn_of_unknown_variables(context);
        let log = &mut *context.log;
        let url = store_url(self.store)?;
        warn_of_overlay(&url, log);
        let to_make = default_file_to_make(self.store, &url);
        let claim = self.claim()?;
        hooks.claims(&claim);
        log.about(Subject {
            group: Some(claim.group.to_string()),
            client: Some(claim.client.to_string()),
            session: Some(claim.session.to_string()),
            host: claim.about.host.clone(),
            fence: None,
        });
        let timeout = self.timing.store_timeout;
        if let Some(path) = &self.report {
            keep_apart(&url, "--report", path)?;
            check_report(path, &claim.session)?;
        }
        // Before the store is asked: a node that can't run the job must not get its token.
        let unstartable = NotStarted::foreseen(&self.command);
        let store = StoreOfRun {
            url: &url,
            timeout,
            application: &format!("tokenrun:{}", self.group),
            wait: match unstartable {
                Some(_) => Wait::No,
                None => self.limits.wait,
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
        let job = Prepared {
            claim,
            limits: Limits {
                locks: locks.is_some(),
                output: self.capture.map(|_| self.retention.outputs),
                ..self.limits
            },
            codes: self.codes,
            report: self.report,
            setup: Setup {
                clock,
                inherited: context.inherited,
                argv: self.command,
                unstartable,
                capture: self.capture,
                leftovers: self.leftovers,
                retention: self.retention,
                locks: LockSettings {
                    directory: locks,
                    inherited: !self.close_lock,
                    patience: url.file().is_none().then(|| patience_for(timeout)),
                },
            },
        };
        run(job, store, manager, hooks, log)
    }

    /// The claim of a run.
    fn claim(&self) -> Result<Claim> {
        let host = process::host_name().ok();
        Ok(Claim {
            group: self.group.clone(),
            client: client_id(self.node.client_id.as_ref(), host.as_deref())?,
            session: new_session()?,
            expected: self.node.expected.clone(),
            failback: self.node.failback,
            nested_in: nested_in(),
            timing: self.timing,
            about: About {
                host,
                pid: Some(process::pid()),
                lock_file: None,
                label: self.label.clone(),
                program: program_name(&self.command),
                once_key: self.once.map(ToString::to_string),
                move_on_failure: self.move_on_failure,
            },
        })
    }
}

/// How long a directory of locks is waited for, less than a call of the store: a waiter must send
/// its next heartbeat.
fn patience_for(store_timeout: Duration) -> Duration {
    (store_timeout / 2).min(Duration::from_secs(1))
}
