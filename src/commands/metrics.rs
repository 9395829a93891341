//! `tokenrun metrics`: metrics for Prometheus.

use std::io;
use std::path::Path;

use anyhow::Result;

use super::failure::Failure;
use super::print;
use super::status::{memory, unknown_group};
use crate::cli::MetricsRequest;
use crate::exit::{self, Exit};
use crate::report::metrics::{Measured, text};
use crate::report::whole_file::write_whole;
use crate::store::{RunQuery, Store, StoreError};
use crate::sys::process;
use crate::token::{GroupName, Outcome, Row, RunRecord};

/// Prints metrics, or writes them to a file as a whole.
///
/// # Errors
/// If the store can't be read, a group is unknown, or the file can't be written; after
/// everything else, if a row can't be read.
pub fn metrics(store: &mut dyn Store, request: &MetricsRequest) -> Result<Exit> {
    let listing = store.list()?;
    let memory = memory(store)?;
    let wanted = |row: &Row| {
        request
            .group
            .as_ref()
            .is_none_or(|group| row.group == *group)
    };
    let rows: Vec<&Row> = listing.rows.iter().filter(|row| wanted(row)).collect();
    if let (Some(group), true, true) = (
        &request.group,
        rows.is_empty(),
        listing.unreadable.is_empty(),
    ) {
        return Err(unknown_group(store.name(), group).into());
    }
    let refusals = store.refusal_totals()?;
    let mut groups = Vec::new();
    for row in rows {
        let last_success = newest(store, &row.group, Some(Outcome::Succeeded))?;
        let last_ended = newest(store, &row.group, None)?;
        groups.push(Measured {
            row: row.clone(),
            waiters: listing.waiters(&row.group),
            last_success,
            last_ended,
            refusals: (refusals.iter())
                .filter(|total| total.group == row.group)
                .cloned()
                .collect(),
        });
    }
    let text = text(&groups, listing.unreadable.len(), &memory, &listing.now);
    let exit = match &request.textfile {
        Some(path) => {
            // The collector reads files that end in `.prom`, as no temporary name does.
            let written = write_whole(path, text.as_bytes(), process::pid());
            written.map_err(|error| not_written(path, &error))?;
            Exit::OK
        }
        None => print(&text)?,
    };
    match listing.unreadable.first() {
        Some(first) => Err(first.error.clone().into()),
        None => Ok(exit),
    }
}

/// The newest run that has ended, of this outcome if one is given.
fn newest(
    store: &mut dyn Store,
    group: &GroupName,
    outcome: Option<Outcome>,
) -> Result<Option<RunRecord>, StoreError> {
    let query = RunQuery {
        group: Some(group.clone()),
        outcomes: outcome.into_iter().collect(),
        // The newest ones may have vanished.
        limit: Some(if outcome.is_some() { 1 } else { 5 }),
        ..RunQuery::default()
    };
    let runs = store.runs(&query)?;
    Ok(runs.into_iter().find(RunRecord::is_final))
}

fn not_written(path: &Path, error: &io::Error) -> Failure {
    let text = format!("{} can't be written: {error}", path.display());
    Failure::new(exit::DENIED, "not_written", text)
}
