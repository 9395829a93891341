//! A swap, inside a transaction.

use rusqlite::{Transaction, params_from_iter};

use super::kept::Kept;
use super::{rows, write};
use crate::token::{StoreTime, Swap, Swapped, Version};

/// Carries a swap out, or says why not. The lock is held.
pub(super) fn carry_out(
    transaction: &Transaction<'_>,
    swap: &Swap,
    now: &StoreTime,
) -> rusqlite::Result<Kept<Swapped>> {
    let group = swap.group();
    // The statement of the look before: preparing another would cost more than running it.
    let found = transaction
        .prepare_cached(sql!("token_read"))?
        .query([group.as_str()])?
        .mapped(|row| {
            Ok((
                row.get_ref(0)?.as_str()? == group.as_str(),
                row.get("version")?,
            ))
        })
        .filter_map(|found| match found {
            Ok((is_asked, version)) => is_asked.then_some(Ok(version)),
            Err(error) => Some(Err(error)),
        })
        .next()
        .transpose()?
        .map(Version::from_stored);
    if found != swap.from {
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
