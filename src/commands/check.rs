//! `tokenrun check`: whether this node may run now, and whether a run has succeeded.

use std::time::Duration;

use anyhow::Result;

use super::print_json;
use crate::cli::{CheckRequest, Question};
use crate::exit::{self, Exit};
use crate::report::check::{Answer, Succeeded, not_succeeded, succeeded};
use crate::report::log::Log;
use crate::store::{Reading, RunQuery, Store};
use crate::sys::clock::LocalClock;
use crate::token::timing::margin_of;
use crate::token::{Outcome, Row, SessionId, StoreTime};

/// The exit code of a monitoring question whose answer is no.
const NO: u8 = 1;

/// Answers a question. `inside` returns the session that this process can prove: under its guard,
/// or an agent's by its runtime file.
///
/// # Errors
/// If the store can't be read, or the group is unknown: exit code 75, as for any other no.
pub fn check(
    store: &mut dyn Store,
    request: &CheckRequest,
    inside: impl FnOnce(&Row) -> Option<SessionId>,
    log: &mut Log,
) -> Result<Exit> {
    let clock = LocalClock::start();
    let Reading { row, now, .. } = store.read(&request.group)?;
    let Some(row) = row else {
        let mut failure = super::status::unknown_group(store.name(), &request.group);
        failure.code = exit::NOT_NOW;
        return Err(failure.into());
    };
    match request.question {
        Question::SucceededWithin(within) => has_succeeded(store, request, &now, within, log),
        Question::MayRun(needed) => {
            let session = inside(&row);
            let left = trusted_for(&row, &now).saturating_sub(clock.now().0);
            let why_not = why_not(&row, session.as_ref(), left, needed);
            let answer = Answer::of(&row, why_not, left, needed);
            log.write(&answer.message(store.name()), false);
            if request.json {
                print_json(&[&answer])?;
            }
            Ok(match why_not {
                None => Exit::OK,
                Some(_) => Exit::Code(exit::NOT_NOW),
            })
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
    request: &CheckRequest,
    now: &StoreTime,
    within: Duration,
    log: &mut Log,
) -> Result<Exit> {
    let query = RunQuery {
        group: Some(request.group.clone()),
        outcomes: vec![Outcome::Succeeded],
        limit: Some(1),
        ..RunQuery::default()
    };
    let last = store.runs(&query)?.pop();
    let ended_at = last.as_ref().and_then(|run| run.ended_at);
    let recent = ended_at.is_some_and(|at| at >= now.wall_before(within));
    let message = match (&last, recent) {
        (Some(run), true) => succeeded(run, now, store.name()),
        _ => not_succeeded(&request.group, last.as_ref(), within, store.name()),
    };
    log.write(&message, false);
    if request.json {
        print_json(&[Succeeded::of(&request.group, last.as_ref(), recent)])?;
    }
    Ok(if recent { Exit::OK } else { Exit::Code(NO) })
}
