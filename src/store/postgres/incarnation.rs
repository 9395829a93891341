//! The note of the incarnation: a row of `meta`, which each look at a token also reads.
//!
//! The incarnation is the server's system identifier and its timeline. Both come from a control
//! file, so they are read only if the note belongs to another clock epoch: a server that was
//! started at the same microsecond, on the same timeline, is the one that wrote it. A restored dump
//! contains the note too, perhaps in the same server: then another transaction wrote the row than
//! the note names, and the note does not belong to this incarnation.

use std::time::Duration;

use super::PostgresStore;
use super::cells::{expiry_values, incarnation};
use super::statements::sql;
use super::swaps::DONE;
use crate::store::sql::cell::{BadColumn, Cells, flag, number};
use crate::store::sql::server::Server as _;
use crate::store::sql::server::tables::{NOW, noted};
use crate::store::sql::swap;
use crate::store::{StoreError, Trouble};
use crate::token::{
    Incarnation, IncarnationNote, Memory, NoteSwap, Served, StoreTime, Swapped, Version,
};

/// A note that was restored names an incarnation that does not exist.
fn restored(note: IncarnationNote) -> IncarnationNote {
    IncarnationNote {
        incarnation: Incarnation(format!("{}-restored", note.incarnation)),
        ..note
    }
}

/// The note in an answer of `read.sql`.
struct Noted<'a> {
    note: Option<IncarnationNote>,
    /// True if the row is the one that was written with the note.
    is_intact: bool,
    /// The number of the database with the tables.
    database: &'a str,
    /// True if the server's commits survive a crash, by its present settings.
    durable: bool,
}

/// Reads the note from an answer of `read.sql`.
fn in_reading<'a>(c: &mut Cells<'a>) -> Result<Noted<'a>, BadColumn> {
    let note = noted(c)?;
    let writer = c.text()?.and_then(|writer| writer.parse::<u64>().ok());
    // The number of a transaction without its epoch.
    let row_writer = c.text()?.and_then(|writer| writer.parse::<u64>().ok());
    Ok(Noted {
        note,
        is_intact: writer.map(|writer| writer & u64::from(u32::MAX)) == row_writer,
        database: c.text()?.unwrap_or_default(),
        durable: c.flag()?,
    })
}

impl PostgresStore {
    /// What the store may have forgotten, from an answer of `read.sql` at `now`.
    pub(super) fn remembered(
        &mut self,
        mut note: Cells<'_>,
        now: &StoreTime,
    ) -> Result<Memory, StoreError> {
        let found = in_reading(&mut note).map_err(|bad| self.bad_column("meta", &bad))?;
        let database = found.database;
        let is_of_database = |note: &IncarnationNote| {
            let name = note.incarnation.0.rsplit_once('-');
            name.is_some_and(|(_, of)| of == database)
        };
        let note = match found.note {
            Some(note) if found.is_intact && note.epoch == now.epoch && is_of_database(&note) => {
                return Ok(Memory {
                    incarnation: Some(note.incarnation.clone()),
                    durable: note.durable_then && found.durable,
                    note: Some(note),
                    unnoted: Served::NOTHING,
                    lag: Duration::ZERO,
                });
            }
            Some(note) if !found.is_intact => Some(restored(note)),
            note => note,
        };
        let (incarnation, durable) = self.incarnation(now, database)?;
        Ok(Memory {
            incarnation,
            durable,
            note,
            unnoted: Served::NOTHING,
            lag: Duration::ZERO,
        })
    }

    /// The server's incarnation; `None` if this role may not read it.
    fn incarnation(
        &mut self,
        now: &StoreTime,
        database: &str,
    ) -> Result<(Option<Incarnation>, bool), StoreError> {
        let columns = [
            NOW.as_slice(),
            &[number("system_identifier"), flag("durable")],
        ]
        .concat();
        let row = match self.first(self.timeout, sql!("incarnation"), &[], &columns) {
            Err(failed) if failed.error.trouble == Trouble::Denied => return Ok((None, false)),
            row => row.map_err(|failed| failed.error)?,
        };
        let mut c = Cells::new(&columns, &row);
        let then = c.time().map_err(|bad| self.bad_time(&bad))?;
        if then.epoch != now.epoch {
            return Err(StoreError::refused(format!(
                "the store {} became another server while it was looked at",
                self.connection.store_name()
            )));
        }
        let bad = |bad| self.bad_column("meta", &bad);
        let (_, timeline) = incarnation(&then.epoch);
        let system = c.needed(Cells::number).map_err(bad)?;
        let durable = c.flag().map_err(bad)?;
        Ok((
            Some(Incarnation(format!("{system}-{timeline}-{database}"))),
            durable,
        ))
    }

    /// Writes the note, unless it has changed since it was read.
    pub(super) fn write_note(&mut self, swap: &NoteSwap) -> Result<Swapped, StoreError> {
        let [expires, started, timeline, _] = expiry_values(&swap.expiry);
        let values = swap::note(swap, [expires, started, timeline]);
        let rows = self.ask(self.timeout, sql!("note"), &values, &DONE);
        let rows = rows.map_err(|failed| failed.error)?;
        if let Some(row) = rows.first() {
            return Ok(Swapped::Done(self.done_at(row, &swap.expiry)?));
        }
        let columns = [NOW.as_slice(), &[number("version")]].concat();
        let rows = self.ask(self.timeout, sql!("note_state"), &[], &columns);
        let rows = rows.map_err(|failed| failed.error.without_effect())?;
        let row = rows.first().ok_or_else(|| self.no_answer())?;
        let mut c = Cells::new(&columns, row);
        let now = c.time().map_err(|bad| self.bad_time(&bad))?;
        let version = c.number().ok().flatten();
        if version != swap.from.map(Version::number) {
            return Ok(Swapped::Conflict);
        }
        if now.is_past(&swap.expiry) {
            return Ok(Swapped::Expired(now));
        }
        Err(self
            .unusable("its table meta is empty")
            .remedy("put a backup back"))
    }
}
