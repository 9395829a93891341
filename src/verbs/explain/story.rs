//! `tokenrun explain --at` and `--since`: what happened to a group then.

use anyhow::Result;

use super::super::shared::failure::Failure;
use super::super::shared::groups::unknown_group;
use super::super::shared::printing::{print, print_json};
use super::super::shared::span::Span;
use crate::exit::{self, Exit};
use crate::report::rfc3339;
use crate::report::screen::Times;
use crate::report::story::Story;
use crate::store::history::runs;
use crate::store::{ActQuery, RefusalQuery, RunQuery, Store};
use crate::token::{ActRecord, GroupName, RunRecord, WallTime};

/// At most so many runs, refusals and acts are read.
const MOST: u32 = 1_000;

/// Tells what happened to a group in a span of time. `span` is computed from the store's time.
///
/// # Errors
/// If the store can't be read, or the group is unknown.
pub(crate) fn story(
    store: &mut dyn Store,
    group: &GroupName,
    span: impl FnOnce(WallTime) -> Result<Span, Failure>,
    times: &Times,
    as_json: bool,
) -> Result<Exit> {
    let listing = store.list()?;
    let is_known = listing.rows.iter().any(|row| row.group == *group);
    let now = listing.now.stamp.wall;
    let span = span(now)?;
    let (from, until) = (span.since.unwrap_or(now), span.until.unwrap_or(now));
    if from > now {
        let text = format!("{} lies ahead; give a time in the past", rfc3339(from));
        return Err(Failure::new(exit::USAGE, "usage", text).into());
    }
    let query = RunQuery {
        group: Some(group.clone()),
        until: Some(until),
        limit: Some(MOST),
        ..RunQuery::default()
    };
    let over = store.runs(&query)?;
    let begun = runs(&listing, over, &query);
    let refusals = store.refusals(&RefusalQuery {
        group: Some(group.clone()),
        since: Some(from),
        until: Some(until),
        limit: Some(MOST),
    })?;
    if !is_known && begun.is_empty() && refusals.is_empty() {
        return Err(unknown_group(store.name(), group).into());
    }
    let went_on = |run: &&RunRecord| run.ended_at.is_none_or(|at| at >= from);
    let story = Story {
        group,
        from,
        until: until.min(now),
        now,
        runs: begun.iter().rev().filter(went_on).cloned().collect(),
        refusals: refusals.into_iter().rev().collect(),
        acts: acts(store, group, Some(from), until)?,
        paused: pause_before(store, group, from)?,
        before: begun.iter().find(|run| !went_on(run)).cloned(),
        after: first_after(store, group, until)?,
    };
    match as_json {
        true => print_json(&[story.object()]),
        false => print(&story.text(times)),
    }
}

/// The acts on a group, the oldest first.
fn acts(
    store: &mut dyn Store,
    group: &GroupName,
    since: Option<WallTime>,
    until: WallTime,
) -> Result<Vec<ActRecord>> {
    let mut found = store.acts(&ActQuery {
        group: Some(group.clone()),
        since,
        until: Some(until),
        limit: Some(MOST),
    })?;
    found.reverse();
    Ok(found)
}

/// The pause that is in effect at a time.
fn pause_before(
    store: &mut dyn Store,
    group: &GroupName,
    at: WallTime,
) -> Result<Option<ActRecord>> {
    let acts = acts(store, group, None, at)?;
    let last = (acts.into_iter().rev()).find(|act| act.act == "pause" || act.act == "resume");
    let lasts = |act: &ActRecord| act.act == "pause" && act.until.is_none_or(|until| until > at);
    Ok(last.filter(lasts))
}

/// The first run that began at a time or later.
fn first_after(
    store: &mut dyn Store,
    group: &GroupName,
    at: WallTime,
) -> Result<Option<RunRecord>> {
    let runs = store.runs(&RunQuery {
        group: Some(group.clone()),
        since: Some(at),
        limit: Some(MOST),
        ..RunQuery::default()
    })?;
    // If there are more, the first is not among them.
    let has_all = u32::try_from(runs.len()).is_ok_and(|count| count < MOST);
    Ok(runs.into_iter().next_back().filter(|_| has_all))
}
