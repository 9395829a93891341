//! `tokenrun output`: what a job has printed, as far as it is kept.

use std::io::{IsTerminal as _, stdout};

use anyhow::Result;

use super::failure::Failure;
use super::status::unknown_group;
use super::{print_json, put_bytes, tell};
use crate::cli::OutputRequest;
use crate::exit::{self, Exit};
use crate::report::output::{Object, damaged, head, none, shown};
use crate::store::{RunQuery, Store};
use crate::token::{ClientId, OutputRecord};

/// Shows the kept output of a run. Exits with [`exit::NOTHING`] if none is kept.
///
/// # Errors
/// If the store can't be read, the group is unknown, or its record is damaged.
pub fn output(store: &mut dyn Store, request: &OutputRequest) -> Result<Exit> {
    let group = &request.group;
    let Some(row) = store.read(group)?.row else {
        return Err(unknown_group(store.name(), group).into());
    };
    let Some(record) = store.output(group, request.run)? else {
        if request.json {
            print_json::<Object<'_>>(&[])?;
        }
        let text = none(group, request.run);
        return Err(Failure::new(exit::NOTHING, "no_output", text).into());
    };
    let Some(last) = record.last_bytes() else {
        let text = damaged(&record);
        return Err(Failure::new(exit::CONFIG, "damaged", text).into());
    };
    if request.json {
        return print_json(&[Object::of(&record, &last)]);
    }
    let is_older = request.run.is_none() && record.fence < row.fence;
    if record.is_cut() || is_older {
        let client = client_of(store, &record)?;
        tell(&head(&record, client.as_ref(), is_older));
    }
    let is_terminal = stdout().is_terminal();
    let text = match is_terminal {
        true => shown(&last, is_terminal),
        // To the byte: it may be a file.
        false => last,
    };
    put_bytes(&text).map(|_| Exit::OK)
}

/// The client of the run, if history knows it.
fn client_of(store: &mut dyn Store, record: &OutputRecord) -> Result<Option<ClientId>> {
    let query = RunQuery {
        group: Some(record.group.clone()),
        ..RunQuery::default()
    };
    let runs = store.runs(&query)?;
    let own = runs.into_iter().find(|run| run.session == record.session);
    Ok(own.map(|run| run.client))
}
