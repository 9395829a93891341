//! `tokenrun history`: the runs with their outcomes, the refused ones, and the acts of operators.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use anyhow::Result;

use super::screen::{screen, zone};
use super::span::Span;
use super::status::known;
use super::{print, print_json};
use crate::cli::HistoryRequest;
use crate::exit::Exit;
use crate::report::history::{Entry, Object, history as table};
use crate::report::timeline::timeline;
use crate::store::history::runs as with_present;
use crate::store::{ActQuery, Listing, RefusalQuery, RunQuery, Store};
use crate::token::{ActRecord, GroupName, Groups, Outcome, RefusalRecord, RunRecord};

/// Shows runs, acts of operators, and on request refusals, the newest first. A run whose job could
/// not start is one of them.
///
/// # Errors
/// If the store can't be read, or a group is unknown.
pub fn history(store: &mut dyn Store, request: &HistoryRequest) -> Result<Exit> {
    let listing = store.list()?;
    let now = listing.now.stamp.wall;
    let zone = zone(request.screen);
    let span = Span::between(request.since, request.until, now, &zone)?;
    let groups = wanted(&listing, &request.groups);
    let refusals = refusals(store, request, &groups, span)?;
    if !refusals
        .iter()
        .any(|it| request.groups.single() == Some(&it.group))
    {
        // A group that no node could run yet has no token.
        known(&listing, &request.groups, store.name())?;
    }
    let runs = runs(store, &listing, request, &groups, span)?;
    let screen = screen(request.screen);
    if request.timeline {
        return print(&timeline(&runs, &listing.now, &screen));
    }
    let runs = runs.into_iter().map(Box::new);
    let mut entries: Vec<Entry> = runs.map(Entry::Run).collect();
    if request.client.is_none() && request.outcomes.is_empty() {
        let acts = acts(store, request.limit, &groups, span)?;
        let acts = acts.into_iter().map(Box::new).map(Entry::Act);
        entries = merged(entries, acts.collect());
    }
    let refusals = refusals.into_iter().map(Box::new).map(Entry::Refusal);
    entries = merged(entries, refusals.collect());
    entries.truncate(usize::try_from(request.limit).unwrap_or(usize::MAX));
    if request.json {
        let objects: Vec<_> = entries.iter().map(Object::of).collect();
        return print_json(&objects);
    }
    print(&table(&entries, &listing.now, &screen))
}

/// The groups to ask the store about, one by one; a single `None` stands for all at once.
fn wanted(listing: &Listing, groups: &Groups) -> Vec<Option<GroupName>> {
    if *groups == Groups::All {
        return vec![None];
    }
    let readable = listing.rows.iter().map(|row| row.group.clone());
    let unreadable = listing.unreadable.iter();
    let unreadable = unreadable.filter_map(|it| GroupName::new(&it.group).ok());
    let all = readable.chain(unreadable);
    let all = all.filter(|it| groups.has(it.as_str()));
    let all: BTreeSet<GroupName> = all.chain(groups.single().cloned()).collect();
    all.into_iter().map(Some).collect()
}

/// The newest runs in the span, present ones too.
fn runs(
    store: &mut dyn Store,
    listing: &Listing,
    request: &HistoryRequest,
    groups: &[Option<GroupName>],
    span: Span,
) -> Result<Vec<RunRecord>> {
    let mut found = Vec::new();
    for group in groups {
        let query = RunQuery {
            group: group.clone(),
            client: request.client.clone(),
            outcomes: request.outcomes.clone(),
            since: span.since,
            until: span.until,
            limit: Some(request.limit),
        };
        let over = store.runs(&query)?;
        found.extend(with_present(listing, over, &query));
    }
    // The order of one query is right even where a clock went back.
    if groups.len() > 1 {
        found.sort_by_key(|run| Reverse((run.started_at, run.fence)));
        found.truncate(usize::try_from(request.limit).unwrap_or(usize::MAX));
    }
    Ok(found)
}

/// The newest acts in the span.
fn acts(
    store: &mut dyn Store,
    limit: u32,
    groups: &[Option<GroupName>],
    span: Span,
) -> Result<Vec<ActRecord>> {
    let mut found = Vec::new();
    for group in groups {
        found.extend(store.acts(&ActQuery {
            group: group.clone(),
            since: span.since,
            until: span.until,
            limit: Some(limit),
        })?);
    }
    if groups.len() > 1 {
        found.sort_by_key(|act| Reverse(act.at));
    }
    Ok(found)
}

/// The newest refusals in the span, if they are wanted; otherwise those runs alone that could not start
/// their job: each is a failure, although it left no run.
fn refusals(
    store: &mut dyn Store,
    request: &HistoryRequest,
    groups: &[Option<GroupName>],
    span: Span,
) -> Result<Vec<RefusalRecord>> {
    let outcomes = &request.outcomes;
    let fails = outcomes.is_empty() || outcomes.contains(&Outcome::NotStarted);
    let is_wanted = |it: &RefusalRecord| {
        let client = request.client.as_ref();
        client.is_none_or(|client| *client == it.client)
            && (request.refusals || fails && it.is_unstarted())
    };
    let mut found = Vec::new();
    for group in groups {
        let refusals = store.refusals(&RefusalQuery {
            group: group.clone(),
            since: span.since,
            until: span.until,
            // Some of them are picked here.
            limit: (request.refusals && request.client.is_none()).then_some(request.limit),
        })?;
        found.extend(refusals.into_iter().filter(is_wanted));
    }
    if groups.len() > 1 {
        found.sort_by_key(|refusal| Reverse(refusal.last_at));
    }
    Ok(found)
}

/// Merges both, the newest first, each in the store's own order: the order of a group's runs is
/// right even where a clock went back.
fn merged(entries: Vec<Entry>, others: Vec<Entry>) -> Vec<Entry> {
    let mut merged = Vec::with_capacity(entries.len() + others.len());
    let mut others = others.into_iter().peekable();
    for entry in entries {
        while let Some(other) = others.next_if(|other| other.at() > entry.at()) {
            merged.push(other);
        }
        merged.push(entry);
    }
    merged.extend(others);
    merged
}
