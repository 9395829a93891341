//! `tokenrun history`: the runs with their outcomes, and the acts of operators.

use anyhow::Result;

use super::status::unknown_group;
use super::{print, print_json};
use crate::cli::HistoryRequest;
use crate::exit::Exit;
use crate::report::history::{Entry, Object, table};
use crate::report::timeline::timeline;
use crate::store::history::runs;
use crate::store::{ActQuery, Listing, RunQuery, Store};
use crate::sys::terminal;
use crate::token::{ActRecord, GroupName};

/// How wide a picture is where there is no terminal.
const PLAIN_WIDTH: usize = 80;

/// Shows runs and acts of operators, the newest first.
///
/// # Errors
/// If the store can't be read, or the group is unknown.
pub fn history(store: &mut dyn Store, request: &HistoryRequest) -> Result<Exit> {
    let listing = store.list()?;
    if let Some(group) = &request.group
        && !is_known(&listing, group)
    {
        return Err(unknown_group(store.name(), group).into());
    }
    let since = request.since.map(|since| listing.now.wall_before(since));
    let query = RunQuery {
        group: request.group.clone(),
        client: request.client.clone(),
        outcomes: request.outcome.into_iter().collect(),
        since,
        until: None,
        limit: Some(request.limit),
    };
    let over = store.runs(&query)?;
    let runs = runs(&listing, over, &query);
    if request.timeline {
        let columns = terminal::columns_of_stdout();
        let (width, colours) = (columns.unwrap_or(PLAIN_WIDTH), columns.is_some());
        return print(&timeline(&runs, &listing.now, width, colours));
    }
    let runs = runs.into_iter().map(Box::new);
    let mut entries: Vec<Entry> = runs.map(Entry::Run).collect();
    if request.client.is_none() && request.outcome.is_none() {
        let query = ActQuery {
            group: request.group.clone(),
            since,
            until: None,
            limit: Some(request.limit),
        };
        let acts = store.acts(&query)?;
        entries = merged(entries, acts);
    }
    entries.truncate(usize::try_from(request.limit).unwrap_or(usize::MAX));
    if request.json {
        let objects: Vec<_> = entries.iter().map(Object::of).collect();
        return print_json(&objects);
    }
    print(&table(&entries, &listing.now))
}

/// Merges both, the newest first, each in the store's own order: the order of a group's runs is
/// right even where a clock went back.
fn merged(runs: Vec<Entry>, acts: Vec<ActRecord>) -> Vec<Entry> {
    let mut merged = Vec::with_capacity(runs.len() + acts.len());
    let mut acts = acts.into_iter().map(Box::new).map(Entry::Act).peekable();
    for run in runs {
        while let Some(act) = acts.next_if(|act| act.at() > run.at()) {
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
