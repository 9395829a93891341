//! `tokenrun check`: whether this node may run now, and whether a run has succeeded.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{ArgAction, Args};

use super::hold::default_runtime_file;
use super::hold::stand_in::unusable;
use super::shared::groups::unknown_group;
use super::shared::node::{about, runs_inside};
use super::shared::options::{LogOptions, StoreOptions};
use super::shared::stores::known_store;
use super::shared::terminal::print_json;
use super::shared::{Action, Context};
use crate::cli::{Unusable, values};
use crate::exit::{self, Exit};
use crate::report::check::{Answer, Succeeded, not_succeeded, succeeded};
use crate::report::log::{Log, Style};
use crate::run::runtime_file::held_session;
use crate::store::{Reading, RunQuery, Store};
use crate::sys::clock::LocalClock;
use crate::token::timing::margin_of;
use crate::token::{GroupName, Outcome, Row, SessionId, StoreTime};

/// The exit code of a monitoring question whose answer is no.
const NO: u8 = 1;

/// Check whether this node may run now, or whether a run has succeeded
#[derive(Debug, Args)]
pub(super) struct Check {
    /// The group
    #[arg(short, long, value_name = "NAME", value_parser = values::group)]
    group: GroupName,
    #[command(flatten)]
    store: StoreOptions,
    /// The lease must be good for this much longer [default: 0]
    #[arg(long = "for", value_name = "DURATION", value_parser = values::duration)]
    lasts: Option<Duration>,
    /// For monitoring: whether a run on any node has succeeded in this time
    #[arg(long, value_name = "DURATION", value_parser = values::duration, conflicts_with = "lasts")]
    succeeded_within: Option<Duration>,
    /// The runtime file of tokenrun hold [default: the file that hold writes for this group]
    #[arg(long, value_name = "FILE", env = "TOKENRUN_RUNTIME_FILE")]
    runtime_file: Option<PathBuf>,
    /// An array of one JSON object on stdout
    #[arg(long)]
    json: bool,
    /// Print only what is wrong; twice: print nothing, only the exit code tells
    #[arg(short, long, action = ArgAction::Count, value_parser = values::quiet)]
    quiet: u8,
}

impl Action for Check {
    fn check(&self) -> Result<(), Unusable> {
        match self.succeeded_within {
            Some(Duration::ZERO) => Err(Unusable::about(
                &["--succeeded-within"],
                "--succeeded-within must be longer than 0",
            )),
            _ => Ok(()),
        }
    }

    fn style(&self) -> Style {
        LogOptions::of_quiet(self.quiet).style()
    }

    /// An unknown group ends it with exit code 75, as any other no.
    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        let log = &mut *context.log;
        log.about(about(&self.group));
        let mut store = known_store(&self.store, log)?;
        let agents = self.agents_session()?;
        let clock = LocalClock::start();
        let Reading { row, now, .. } = store.read(&self.group)?;
        let Some(row) = row else {
            let mut failure = unknown_group(store.name(), &self.group);
            failure.code = exit::NOT_NOW;
            return Err(failure.into());
        };
        if let Some(within) = self.succeeded_within {
            return has_succeeded(store.as_mut(), self, &now, within, log);
        }
        let needed = self.lasts.unwrap_or_default();
        let session = runs_inside(&row).or(agents.filter(|it| row.session() == Some(it)));
        let left = trusted_for(&row, &now).saturating_sub(clock.now().0);
        let why_not = why_not(&row, session.as_ref(), left, needed);
        let answer = Answer::of(&row, why_not, left, needed);
        log.write(&answer.message(store.name()), false);
        if self.json {
            print_json(&[&answer])?;
        }
        Ok(match why_not {
            None => Exit::OK,
            Some(_) => Exit::Code(exit::NOT_NOW),
        })
    }
}

impl Check {
    /// The session that an agent on this host holds, as its runtime file proves it.
    fn agents_session(&self) -> Result<Option<SessionId>> {
        // Where there is no place for such a file, there is none.
        let by_default = || default_runtime_file(&self.group).ok();
        let path = self.runtime_file.clone().or_else(by_default);
        match path.as_deref().map(|path| (path, held_session(path))) {
            Some((path, Err(error))) if self.runtime_file.is_some() => {
                Err(unusable(path, &error).into())
            }
            Some((_, Ok(session))) => Ok(session),
            _ => Ok(None),
        }
    }
}

/// Why this process may not run now.
fn why_not(
    row: &Row,
    session: Option<&SessionId>,
    left: Duration,
    needed: Duration,
) -> Option<&'static str> {
    match session {
        _ if row.session().is_none() => Some("not_held"),
        None => Some("not_ours"),
        Some(_) if row.document.revoke_requested => Some("revoked"),
        Some(_) if left.is_zero() || left < needed => Some("ends_too_soon"),
        Some(_) => None,
    }
}

/// How long the holder trusts its lease at least, according to its row. The holder counts from
/// sending its heartbeat, which the store stamped a little later: hence the margin again.
fn trusted_for(row: &Row, now: &StoreTime) -> Duration {
    let Some(age) = row.run().and_then(|_| row.age(now)) else {
        return Duration::ZERO;
    };
    let margin = margin_of(row.document.takeover_after).saturating_mul(2);
    row.document
        .takeover_after
        .saturating_sub(margin)
        .saturating_sub(age)
}

fn has_succeeded(
    store: &mut dyn Store,
    options: &Check,
    now: &StoreTime,
    within: Duration,
    log: &mut Log,
) -> Result<Exit> {
    let query = RunQuery {
        group: Some(options.group.clone()),
        outcomes: vec![Outcome::Succeeded],
        limit: Some(1),
        ..RunQuery::default()
    };
    let last = store.runs(&query)?.pop();
    let ended_at = last.as_ref().and_then(|run| run.ended_at);
    let recent = ended_at.is_some_and(|at| at >= now.wall_before(within));
    let message = match (&last, recent) {
        (Some(run), true) => succeeded(run, now, store.name()),
        _ => not_succeeded(&options.group, last.as_ref(), within, store.name()),
    };
    log.write(&message, false);
    if options.json {
        print_json(&[Succeeded::of(&options.group, last.as_ref(), recent)])?;
    }
    Ok(if recent { Exit::OK } else { Exit::Code(NO) })
}
