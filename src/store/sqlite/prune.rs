//! Pruning, inside a transaction.

use rusqlite::{OptionalExtension as _, Transaction, params};

use super::wall;
use super::write::{Kept, WriteError};
use crate::store::pruning::{Note, Seen};
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
    let note = Note::next(last, now, true, &mut newest(transaction, group)?, retention);
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

/// The newest runs, without those with malformed cells, which are no evidence of time.
fn newest(transaction: &Transaction<'_>, group: &str) -> rusqlite::Result<Vec<Seen>> {
    let mut statement = transaction.prepare(sql!("runs_newest"))?;
    let rows = statement.query_map(params![group, PRUNE_BATCH], |row| {
        let started_at: Option<String> = row.get(1).ok();
        let started_at = started_at.as_deref().and_then(wall::from_text);
        let fence = row.get(0).ok().map(Fence);
        Ok(fence
            .zip(started_at)
            .map(|(fence, started_at)| Seen { fence, started_at }))
    })?;
    rows.filter_map(Result::transpose).collect()
}
