//! A swap, inside a transaction.

use rusqlite::{Transaction, params_from_iter};

use super::kept::Kept;
use super::{incarnation, rows, write};
use crate::token::{StoreTime, Swap, Swapped, Version};

/// Carries a swap out, or says why not. The lock is held.
pub(super) fn carry_out(
    transaction: &Transaction<'_>,
    swap: &Swap,
    now: &StoreTime,
) -> rusqlite::Result<Kept<Swapped>> {
    let group = swap.group();
    // The statement of the look before: preparing another would cost more than running it.
    let mut statement = transaction.prepare_cached(sql!("token_read"))?;
    let mut rows = statement.query([group.as_str()])?;
    let (mut found, mut note) = (None, None);
    while let Some(row) = rows.next()? {
        let version = Some(Version::from_stored(row.get("version")?));
        match row.get_ref(0)?.as_str()? == incarnation::NOTE {
            true => note = version,
            false => found = version,
        }
    }
    let of_note = swap.note.as_ref().map(|note| note.version);
    if found != swap.from || (of_note.is_some() && of_note != note) {
        return Ok(Kept::No(Swapped::Conflict));
    }
    if now.is_past(&swap.expiry) {
        return Ok(Kept::No(Swapped::Expired(now.clone())));
    }
    let statement = match found {
        Some(_) => sql!("token_update"),
        None => sql!("token_insert"),
    };
    // Kept for the next swap of this run: parsing the statement costs more than running it.
    let mut statement = transaction.prepare_cached(statement)?;
    statement.execute(params_from_iter(rows::to_values(&swap.written(now))))?;
    if let Some(session) = &swap.leaves {
        write::leave(transaction, group, session)?;
    }
    if let Some(run) = &swap.ended {
        write::write_run(transaction, run, now)?;
    }
    if let Some(act) = &swap.act {
        write::write_act(transaction, act, now)?;
    }
    Ok(Kept::Yes(Swapped::Done(now.clone())))
}
