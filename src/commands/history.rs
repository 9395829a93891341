//! `tokenrun history`: who ran when, and how it ended; and what operators did.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::status::unknown_group;
use super::{Failure, print, print_json};
use crate::cli::HistoryRequest;
use crate::exit::Exit;
use crate::report::history::{Entry, Object, table};
use crate::report::timeline::timeline;
use crate::store::{ActQuery, HistoryQuery, Listing, Store, StoreError};
use crate::sys::terminal;
use crate::token::{ActRecord, GroupName, Outcome, Row, RunRecord};

/// How wide a picture is where there is no terminal.
const PLAIN_WIDTH: usize = 80;

/// Shows runs, and what operators did, the newest first.
///
/// # Errors
/// If the store can't be read, or the group is unknown.
pub fn history(store: &mut dyn Store, request: &HistoryRequest) -> Result<Exit, Failure> {
    let failed = |error: StoreError| Failure::of_store(&error);
    let listing = store.list().map_err(failed)?;
    if let Some(group) = &request.group
        && !is_known(&listing, group)
    {
        return Err(unknown_group(store.name(), group));
    }
    let rows: HashMap<&GroupName, &Row> =
        listing.rows.iter().map(|row| (&row.group, row)).collect();
    let row_of = |run: &RunRecord| rows.get(&run.group).copied();
    let seen = |run: &RunRecord| run.outcome_seen(row_of(run), &listing.now);
    let since_ms = request.since.map(|since| listing.now.wall_ms_before(since));
    let mut entries = runs(store, request, since_ms, seen).map_err(failed)?;
    if request.timeline {
        let runs: Vec<RunRecord> = entries.into_iter().filter_map(Entry::run).collect();
        let columns = terminal::columns_of_stdout();
        let (width, colours) = (columns.unwrap_or(PLAIN_WIDTH), columns.is_some());
        return print(&timeline(&runs, row_of, &listing.now, width, colours));
    }
    if request.client.is_none() && request.outcome.is_none() {
        let query = ActQuery {
            group: request.group.clone(),
            since_ms,
            limit: Some(request.limit),
        };
        let acts = store.acts(&query).map_err(failed)?;
        entries = merged(entries, acts);
    }
    entries.truncate(usize::try_from(request.limit).unwrap_or(usize::MAX));
    if request.json {
        let row = |entry: &Entry| match entry {
            Entry::Run(run) => row_of(run),
            Entry::Act(_) => None,
        };
        let objects: Vec<_> = entries
            .iter()
            .map(|entry| Object::of(entry, row(entry), &listing.now))
            .collect();
        return print_json(&objects);
    }
    print(&table(&entries, row_of, &listing.now))
}

/// Both, the newest first, each in the store's own order: that of a group's runs is right
/// even where a clock went back.
fn merged(runs: Vec<Entry>, acts: Vec<ActRecord>) -> Vec<Entry> {
    let mut merged = Vec::with_capacity(runs.len() + acts.len());
    let mut acts = acts.into_iter().map(Box::new).map(Entry::Act).peekable();
    for run in runs {
        while let Some(act) = acts.next_if(|act| act.at_ms() > run.at_ms()) {
            merged.push(act);
        }
        merged.push(run);
    }
    merged.extend(acts);
    merged
}

fn is_known(listing: &Listing, group: &GroupName) -> bool {
    let unreadable = listing.unreadable.iter().map(|it| it.group.as_str());
    let readable = listing.rows.iter().map(|row| row.group.as_str());
    readable.chain(unreadable).any(|it| it == group.as_str())
}

/// Runs of the outcome that is asked for, as it is seen: an open record may be of a run
/// that vanished, so that whoever asks for such is given from the open ones too.
fn runs(
    store: &mut dyn Store,
    request: &HistoryRequest,
    since_ms: Option<i64>,
    seen: impl Fn(&RunRecord) -> Outcome,
) -> Result<Vec<Entry>, StoreError> {
    let query = HistoryQuery {
        group: request.group.clone(),
        client: request.client.clone(),
        outcome: request.outcome,
        since_ms,
        limit: Some(request.limit),
    };
    let mut runs = match request.outcome {
        // The open ones are few, and which are alive only their rows tell.
        Some(Outcome::Running) => Vec::new(),
        _ => store.history(&query)?,
    };
    if let Some(outcome @ (Outcome::Running | Outcome::Unknown)) = request.outcome {
        let open = HistoryQuery {
            outcome: Some(Outcome::Running),
            limit: None,
            ..query
        };
        let open = store.history(&open)?.into_iter();
        runs.extend(open.filter(|run| seen(run) == outcome));
        runs.sort_by_key(|run| Reverse((run.started_at_ms, run.fence)));
    }
    Ok(runs
        .into_iter()
        .map(|run| Entry::Run(Box::new(run)))
        .collect())
}
