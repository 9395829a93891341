//! `tokenrun status`: the tokens and their holders.

use anyhow::{Context as _, Result};

use super::failure::Failure;
use super::screen::screen;
use super::watch::watch;
use super::{json_text, print};
use crate::cli::StatusRequest;
use crate::exit::{self, Exit};
use crate::report::condition::Condition;
use crate::report::details::details;
use crate::report::group::{Group, Snapshot};
use crate::report::json::{Listed, Token};
use crate::report::last_run::{Known, LastRun};
use crate::report::overview::overview;
use crate::report::printable::quoted;
use crate::report::screen::Screen;
use crate::store::{Listing, RunQuery, Store, StoreError, Unreadable};
use crate::token::operator::EVERY_GROUP;
use crate::token::{GroupName, Groups, Memory, Row};

/// Shows tokens; with an interval again and again, until the reader has gone. An unreadable row
/// hides no other: it is shown as unreadable, and the exit code says so.
///
/// # Errors
/// If the store can't be read, or a group is unknown.
pub fn status(store: &mut dyn Store, request: &StatusRequest) -> Result<Exit> {
    if let Some(every) = request.watch {
        return watch(every, request.screen, |screen| {
            look(store, request, screen).map(|shown| shown.text)
        });
    }
    let shown = look(store, request, &screen(request.screen))?;
    let exit = print(&shown.text)?;
    shown.unreadable.map_or(Ok(exit), |error| Err(error.into()))
}

struct Shown {
    text: String,
    unreadable: Option<StoreError>,
}

fn look(store: &mut dyn Store, request: &StatusRequest, screen: &Screen) -> Result<Shown> {
    let listing = store.list()?;
    let memory = memory(store)?;
    known(&listing, &request.groups, store.name())?;
    let rows: Vec<&Row> = listing.rows.iter().collect();
    let rows = rows
        .into_iter()
        .filter(|row| request.groups.has(row.group.as_str()));
    let lasts = last_runs(store, rows)?;
    let at = Snapshot {
        store: store.name(),
        memory: &memory,
        now: &listing.now,
    };
    let groups = lasts.into_iter().map(|(row, last)| {
        let waiters = listing.waiting(&row.group).collect();
        Group::new(row, last, waiters, at)
    });
    let is_in = |all: &[Condition]| {
        let asked = &request.conditions;
        asked.is_empty() || all.iter().any(|it| asked.contains(it))
    };
    let groups: Vec<Group<'_>> = groups.filter(|it| is_in(&it.conditions)).collect();
    let unreadable = listing.unreadable.iter();
    let unreadable: Vec<&Unreadable> = unreadable
        .filter(|it| request.groups.has(&it.group) && is_in(&[Condition::Unreadable]))
        .collect();
    let text = match (request.json, request.groups.single(), groups.as_slice()) {
        (true, ..) => json(&groups, &unreadable, at)?,
        (false, Some(_), [group]) if !request.wide => details(group, at, screen),
        _ => overview(&groups, &unreadable, at, request.wide, screen),
    };
    Ok(Shown {
        text,
        unreadable: unreadable.first().map(|first| first.error.clone()),
    })
}

fn json(groups: &[Group<'_>], unreadable: &[&Unreadable], at: Snapshot<'_>) -> Result<String> {
    let tokens = groups.iter().map(|group| Token::of(group, at));
    let tokens = tokens.map(Box::new).map(Listed::Token);
    let others = unreadable.iter().copied().map(Listed::unreadable);
    json_text(&tokens.chain(others).collect::<Vec<_>>())
}

/// The rows with their last finished runs. History is asked only for what a row does not say
/// itself: the store may be far away.
fn last_runs<'a>(
    store: &mut dyn Store,
    rows: impl Iterator<Item = &'a Row>,
) -> Result<Vec<(&'a Row, Option<LastRun>)>> {
    let mut found = Vec::new();
    for row in rows {
        let last = match LastRun::known(row) {
            Known::Never => None,
            Known::All(last) => Some(last),
            Known::Part(part) => {
                let query = RunQuery {
                    group: Some(row.group.clone()),
                    limit: Some(1),
                    ..RunQuery::default()
                };
                let newest = store.runs(&query)?;
                newest.first().map(LastRun::of).or(part)
            }
        };
        found.push((row, last));
    }
    Ok(found)
}

/// Refuses names of groups that have never been seen. A pattern may match nothing.
///
/// # Errors
/// If there is such a name.
pub fn known(listing: &Listing, groups: &Groups, store: &str) -> Result<()> {
    let is_known = |name: &&GroupName| {
        let readable = listing.rows.iter().any(|row| row.group == **name);
        let unreadable = listing.unreadable.iter();
        readable || unreadable.into_iter().any(|it| it.group == name.as_str())
    };
    match groups.names().find(|name| !is_known(name)) {
        Some(name) => Err(unknown_group(store, name).into()),
        None => Ok(()),
    }
}

/// What the store may have forgotten, as a run would see it now.
///
/// # Errors
/// If the store can't be read.
pub fn memory(store: &mut dyn Store) -> Result<Memory> {
    let reading = store.read(&every_group()?);
    let reading = reading?;
    Ok(reading.memory.noted(&reading.now))
}

/// The name that stands for every group, which no group has.
///
/// # Errors
/// If it is no name: a bug.
pub fn every_group() -> Result<GroupName> {
    let every = GroupName::new(EVERY_GROUP);
    every.context("a bug")
}

/// The failure of a verb whose group has never been seen.
#[must_use]
pub fn unknown_group(store: &str, group: &GroupName) -> Failure {
    Failure::new(
        exit::CONFIG,
        "unknown_group",
        format!(
            "the store {store} has no group {}; tokenrun status lists those that it has",
            quoted(group.as_str())
        ),
    )
}
