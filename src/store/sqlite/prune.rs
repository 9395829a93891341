//! Pruning, inside a transaction.

use rusqlite::{OptionalExtension as _, Transaction, params};

use super::cells::read;
use super::wall;
use super::write::{Kept, WriteError};
use crate::store::pruning::Note;
use crate::store::sql::cell::Cell;
use crate::store::sql::records::{SEEN, seen};
use crate::store::{PRUNE_BATCH, Retention};
use crate::token::{Fence, GroupName, StoreTime};

/// Removes old records, and leaves a note for the next pruning. The lock is held.
pub(super) fn prune(
    transaction: &Transaction<'_>,
    group: &GroupName,
    retention: Retention,
    now: &StoreTime,
) -> Result<Kept<()>, WriteError> {
    let group = group.as_str();
    let found = transaction.query_row(sql!("note_read"), [group], |row| {
        let text: Option<String> = row.get(0).ok().flatten();
        Ok(text.as_deref().and_then(Note::from_text))
    });
    let Some(last) = found.optional()? else {
        return Ok(Kept::No(()));
    };
    let values = [Cell::text(group), Cell::number(i64::from(PRUNE_BATCH))];
    let runs = read(transaction, sql!("runs_newest"), &values, &SEEN)?;
    let note = Note::next(last, now, true, &mut seen(&SEEN, &runs, 0), retention);
    transaction.execute(sql!("note_write"), [group, &note.to_text()])?;
    let outlived = note.outlived(retention);
    if let Some(Fence(fence)) = outlived.history {
        let before = wall::to_text(now.wall_before(retention.history));
        let old = params![group, before, fence, PRUNE_BATCH];
        transaction.execute(sql!("runs_prune"), old)?;
        for statement in [
            sql!("acts_prune"),
            sql!("refusals_prune"),
            sql!("outputs_prune"),
        ] {
            transaction.execute(statement, params![group, before, fence])?;
        }
    }
    if let Some(Fence(fence)) = outlived.once {
        let before = wall::to_text(now.wall_before(retention.once));
        let old = params![group, before, fence, PRUNE_BATCH];
        transaction.execute(sql!("keys_prune"), old)?;
    }
    Ok(Kept::Yes(()))
}
