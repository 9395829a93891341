//! The clients that a store has seen: `tokenrun clients` for a shell that completes a line.

use std::collections::BTreeSet;

use anyhow::Result;

use super::print;
use crate::exit::Exit;
use crate::store::{RefusalQuery, RunQuery, Store, StoreError};
use crate::token::hidden::is_hidden;
use crate::token::{ClientId, Row};

/// How many runs, and how many refusals, a completion looks at.
const RECENT: u32 = 500;

/// Prints the id of each client, a line each. Ids that no option accepts are left out.
///
/// # Errors
/// If the store can't be read, or the ids can't be printed.
pub fn clients(store: &mut dyn Store) -> Result<Exit> {
    let mut all = of_tokens(store)?;
    let query = RunQuery {
        limit: Some(RECENT),
        ..RunQuery::default()
    };
    all.extend(store.runs(&query)?.into_iter().map(|run| run.client));
    all.extend(refused(store, Some(RECENT))?);
    let ids = all.iter().map(ClientId::as_str);
    let ids = ids.filter(|id| !id.contains(is_hidden));
    print(&ids.map(|id| format!("{id}\n")).collect::<String>())
}

/// Whether the store has seen a client: it has or expects a token, waits for one, has run, or was
/// refused. The target of a hand-off need not exist.
///
/// # Errors
/// If the store can't be read.
pub fn is_known(store: &mut dyn Store, client: &ClientId) -> Result<bool, StoreError> {
    if of_tokens(store)?.contains(client) {
        return Ok(true);
    }
    let query = RunQuery {
        client: Some(client.clone()),
        limit: Some(1),
        ..RunQuery::default()
    };
    Ok(!store.runs(&query)?.is_empty() || refused(store, None)?.contains(client))
}

/// The clients in the tokens and the queues.
fn of_tokens(store: &mut dyn Store) -> Result<BTreeSet<ClientId>, StoreError> {
    let listing = store.list()?;
    let of_row = |row: &Row| {
        let expected = row.expected_client.clone();
        row.client_bound().cloned().into_iter().chain(expected)
    };
    let tokens = listing.rows.iter().flat_map(of_row);
    let waiters = listing.queues.iter();
    let waiters = waiters.map(|(_, entry)| entry.waiter.client.clone());
    Ok(tokens.chain(waiters).collect())
}

fn refused(store: &mut dyn Store, limit: Option<u32>) -> Result<BTreeSet<ClientId>, StoreError> {
    let query = RefusalQuery {
        limit,
        ..RefusalQuery::default()
    };
    let refusals = store.refusals(&query)?;
    Ok(refusals.into_iter().map(|it| it.client).collect())
}
