//! `tokenrun history`: who ran when, and how it ended.

use std::collections::HashMap;

use super::status::unknown_group;
use super::{Failure, print, print_json};
use crate::exit::Exit;
use crate::report::{json, tables};
use crate::store::{HistoryQuery, Store};
use crate::token::{GroupName, Row, RunRecord};

/// Shows runs, the newest first.
///
/// # Errors
/// If the store can't be read, or the group is unknown.
pub fn history(
    store: &mut dyn Store,
    group: Option<GroupName>,
    limit: Option<u32>,
    as_json: bool,
) -> Result<Exit, Failure> {
    let query = HistoryQuery { group, limit };
    let runs = store
        .history(&query)
        .map_err(|error| Failure::of_store(&error))?;
    let listing = store.list().map_err(|error| Failure::of_store(&error))?;
    let rows: HashMap<&GroupName, &Row> =
        listing.rows.iter().map(|row| (&row.group, row)).collect();
    if let Some(group) = query
        .group
        .as_ref()
        .filter(|group| !rows.contains_key(group))
    {
        return Err(unknown_group(store.name(), group));
    }
    let row_of = |run: &RunRecord| rows.get(&run.group).copied();
    if as_json {
        let objects: Vec<_> = runs
            .iter()
            .map(|run| json::Run::of(run, row_of(run), &listing.now))
            .collect();
        return print_json(&objects);
    }
    print(&tables::runs(&runs, row_of, &listing.now))
}
