//! The note of the incarnation: a row of `meta`, which each look at a token also reads.
//!
//! The incarnation is the server's system identifier and its timeline. Both come from a control
//! file, so they are read only if the note belongs to another clock epoch: a server that was
//! started at the same microsecond, on the same timeline, is the one that wrote it. A restored dump
//! contains the note too, perhaps in the same server: then another transaction wrote the row than
//! the note names, and the note does not belong to this incarnation.

use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

use super::PostgresStore;
use super::cells::Cells;
use super::clock_epoch::expiry_values;
use super::queue::AFTER_READING;
use super::statements::{FIRST_SEGMENT, sql};
use crate::store::sql::cell::{BadColumn, Cell};
use crate::store::sql::table::ACTS;
use crate::store::{StoreError, Trouble};
use crate::token::{
    Incarnation, IncarnationNote, Memory, NoteSwap, Served, StoreTime, Swapped, Version,
};

/// Where an answer of `read.sql` goes on after the note.
pub(super) const AFTER_NOTE: usize = AFTER_READING + 7;

/// A transaction's number, without its epoch.
struct Xid(u32);

impl<'a> FromSql<'a> for Xid {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(u32::from_be_bytes(raw.try_into()?)))
    }

    fn accepts(of: &Type) -> bool {
        *of == Type::XID
    }
}

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
    /// Whether the row is the one that was written with the note.
    is_intact: bool,
    /// The number of the database with the tables.
    database: &'a str,
    /// Whether the server's commits survive a crash, by its present settings.
    durable: bool,
}

/// Reads the note from a row of `read.sql`.
fn in_reading(row: &Row) -> Result<Noted<'_>, BadColumn> {
    let c = &mut Cells::new(row, AFTER_READING);
    let text: Option<&str> = c.cell()?;
    let version: Option<i64> = c.cell()?;
    let writer: Option<&str> = c.cell()?;
    let row_writer = c.cell()?.map(|Xid(writer)| u64::from(writer));
    let database = c.cell()?.unwrap_or_default();
    let durable = c.needed()?;
    let writer = writer.and_then(|writer| writer.parse::<u64>().ok());
    let note = (text.is_some() || version.is_some()).then(|| {
        let version = Version::from_stored(version.unwrap_or_default());
        IncarnationNote::from_json(text.unwrap_or_default(), version)
    });
    Ok(Noted {
        note,
        is_intact: writer.map(|writer| writer & u64::from(u32::MAX)) == row_writer,
        database,
        durable,
    })
}

impl PostgresStore {
    /// Why nothing is granted: a crash would empty a table that is not logged, and forget every grant.
    pub(super) fn refuses(&self, row: &Row) -> Option<StoreError> {
        let is_logged = row.try_get("logged").ok().flatten();
        let error = || {
            StoreError::misconfigured(format!(
                "the store {} can't be used: its table tokens is not logged, so a crash of the server would \
                 forget every grant",
                self.connection.store_name()
            ))
            .remedy("ALTER TABLE tokens SET LOGGED")
        };
        (is_logged != Some(true)).then(error)
    }

    /// What the store may have forgotten, from an answer of `read.sql` at `now`.
    pub(super) fn memory(&mut self, row: &Row, now: &StoreTime) -> Result<Memory, StoreError> {
        let found = in_reading(row).map_err(|bad| self.bad_column("meta", &bad))?;
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
        let statement = self.statements.of(sql!("incarnation"));
        let rows = match self.connection.query(self.timeout, &statement, &[]) {
            Err(failed) if failed.error.trouble == Trouble::Denied => return Ok((None, false)),
            answer => answer.map_err(|failed| failed.error)?,
        };
        let row = rows.first().ok_or_else(|| self.no_answer())?;
        let then = self.now(row)?;
        if then.epoch != now.epoch {
            return Err(StoreError::refused(format!(
                "the store {} became another server while it was looked at",
                self.connection.store_name()
            )));
        }
        let bad = |bad| self.bad_column("meta", &bad);
        let c = &mut Cells::new(row, 2);
        let name: &str = c.needed().map_err(bad)?;
        let timeline = name.strip_suffix(FIRST_SEGMENT).unwrap_or(name);
        let system: i64 = c.needed().map_err(bad)?;
        let durable: bool = c.needed().map_err(bad)?;
        Ok((
            Some(Incarnation(format!("{system}-{timeline}-{database}"))),
            durable,
        ))
    }

    /// Writes the note, unless it has changed since it was read.
    pub(super) fn write_note(&mut self, swap: &NoteSwap) -> Result<Swapped, StoreError> {
        let [expires, started, timeline, _] = expiry_values(&swap.expiry);
        let act = swap.act.as_deref();
        let document = act.and_then(|act| ACTS.cells(act).pop());
        let values = [
            Cell::Number(swap.from.map(Version::number)),
            Cell::number(swap.to.version.number()),
            Cell::text(&swap.to.to_json()),
            expires,
            started,
            timeline,
            Cell::maybe(act.map(|act| &act.group)),
            Cell::Number(act.map(|act| act.fence.0)),
            document.unwrap_or(Cell::Text(None)),
        ];
        let statement = self.statements.of(sql!("note"));
        let rows = self.connection.query(self.timeout, &statement, &values);
        let rows = rows.map_err(|failed| failed.error)?;
        if let Some(row) = rows.first() {
            return Ok(Swapped::Done(self.done_at(row, &swap.expiry)?));
        }
        let statement = self.statements.of(sql!("note_state"));
        let rows = self.connection.query(self.timeout, &statement, &[]);
        let rows = rows.map_err(|failed| failed.error.without_effect())?;
        let row = rows.first().ok_or_else(|| self.no_answer())?;
        let now = self.now(row)?;
        let version: Option<i64> = row.try_get("version").ok().flatten();
        if version != swap.from.map(Version::number) {
            return Ok(Swapped::Conflict);
        }
        if now.is_past(&swap.expiry) {
            return Ok(Swapped::Expired(now));
        }
        Err(StoreError::misconfigured(format!(
            "the store {} can't be used: its table meta is empty",
            self.connection.store_name()
        ))
        .remedy("put a backup back"))
    }
}
