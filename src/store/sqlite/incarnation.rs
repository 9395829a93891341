//! The note of the store's incarnation: the row of `tokens` without a group.
//!
//! The incarnation is the file: its inode and time of birth, which no copy shares. Not its device,
//! whose number may change with each mount. A power cut, which can take data from a file, also ends
//! every process that relied on that data: all of them are on this host. So a restart forgets
//! nothing that matters, and is always durable.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Transaction};

use super::write::{self, Kept, write_row};
use crate::store::sql::cell::{BadColumn, Cell, Cells};
use crate::store::sql::token::TOKEN;
use crate::token::{
    Incarnation, IncarnationNote, Memory, NoteSwap, Served, StoreTime, Swapped, Version,
};

/// The group of the note's row. No group has this name.
pub(super) const NOTE: &str = "";

/// What a read reports of the memory of a store in this file.
pub(super) fn memory(file: Incarnation, note: Option<IncarnationNote>) -> Memory {
    Memory {
        incarnation: Some(file),
        durable: true,
        note,
        unnoted: Served::NOTHING,
        lag: Duration::ZERO,
    }
}

/// The note in the cells of its row.
pub(super) fn noted(cells: &Cells<'_>) -> Result<IncarnationNote, BadColumn> {
    let text = cells.after(TOKEN.len() - 1).needed(Cells::text)?;
    let version = cells.after(1).needed(Cells::number)?;
    Ok(IncarnationNote::from_json(
        text,
        Version::from_stored(version),
    ))
}

/// Writes the note, unless it has changed since it was read. The lock is held.
pub(super) fn write(
    transaction: &Transaction<'_>,
    swap: &NoteSwap,
    now: &StoreTime,
) -> rusqlite::Result<Kept<Swapped>> {
    let found: Option<i64> = transaction
        .query_row(
            "SELECT version FROM tokens WHERE token_group = ?1",
            [NOTE],
            |row| row.get(0),
        )
        .optional()?;
    if found != swap.from.map(|version| version.number()) {
        return Ok(Kept::No(Swapped::Conflict));
    }
    if now.is_past(&swap.expiry) {
        return Ok(Kept::No(Swapped::Expired(now.clone())));
    }
    insert(transaction, &swap.to)?;
    if let Some(act) = &swap.act {
        write::write_act(transaction, act, now)?;
    }
    Ok(Kept::Yes(Swapped::Done(now.clone())))
}

/// Writes the note of a new file.
pub(super) fn insert(connection: &Connection, note: &IncarnationNote) -> rusqlite::Result<()> {
    let values = [
        Cell::number(note.version.number()),
        Cell::Stamp(Some(note.first_seen)),
        Cell::text(&note.epoch),
        Cell::text(&note.to_json()),
    ];
    write_row(connection, sql!("note_incarnation"), &values).map(drop)
}
