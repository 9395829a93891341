//! `tokenrun metrics`: metrics for Prometheus.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::page::Looked;
use super::shared::failure::not_written;
use super::shared::groups::{listed, memory, unknown_group};
use super::shared::options::StoreOptions;
use super::shared::stores::known_store_beside;
use super::shared::terminal::print;
use super::shared::{Action, Context};
use crate::cli::values;
use crate::exit::Exit;
use crate::report::metrics::{Measured, text};
use crate::report::whole_file::write_whole;
use crate::store::{RunQuery, Store, StoreError};
use crate::sys::process;
use crate::token::{GroupName, Groups, Outcome, Row, RunRecord};

/// Print metrics for Prometheus
#[derive(Debug, Args)]
pub(super) struct Metrics {
    /// Only this group
    #[arg(short, long, value_name = "NAME", value_parser = values::group)]
    group: Option<GroupName>,
    #[command(flatten)]
    store: StoreOptions,
    /// Write the metrics to this file instead of stdout, for the textfile collector; the file is
    /// replaced as a whole
    #[arg(long, value_name = "PATH")]
    textfile: Option<PathBuf>,
}

impl Action for Metrics {
    /// After everything else, a row that can't be read is an error.
    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        let textfile = self.textfile.as_deref();
        let store = &mut *known_store_beside(&self.store, "--textfile", textfile, context.log)?;
        let groups = self.group.clone().map_or(Groups::All, Groups::from);
        let looked = text_of(store, &groups)?;
        let exit = match &self.textfile {
            Some(path) => {
                // The collector reads files that end in `.prom`, as no temporary name does.
                let written = write_whole(path, looked.text.as_bytes(), process::pid());
                written.map_err(|error| not_written(path.display(), &error))?;
                Exit::OK
            }
            None => print(&looked.text)?,
        };
        looked
            .unreadable
            .map_or(Ok(exit), |error| Err(error.into()))
    }
}

/// The metrics of these groups as the store is now.
pub(super) fn text_of(store: &mut dyn Store, groups: &Groups) -> Result<Looked> {
    let (listing, _) = listed(store)?;
    let memory = memory(store)?;
    let wanted = |row: &&Row| groups.has(row.group.as_str());
    let rows: Vec<&Row> = listing.rows.iter().filter(wanted).collect();
    if let (Some(group), true, true) = (
        groups.single(),
        rows.is_empty(),
        listing.unreadable.is_empty(),
    ) {
        return Err(unknown_group(store.name(), group).into());
    }
    let refusals = store.refusal_totals()?;
    let mut measured = Vec::new();
    for row in rows {
        let last_success = newest(store, &row.group, Some(Outcome::Succeeded))?;
        let last_ended = newest(store, &row.group, None)?;
        measured.push(Measured {
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
    let text = text(&measured, listing.unreadable.len(), &memory, &listing.now);
    Ok(Looked {
        text,
        unreadable: listing.unreadable.first().map(|first| first.error.clone()),
    })
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
