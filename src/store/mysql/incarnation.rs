//! The note of the incarnation: the one row of `tokenrun_meta`, which each look at a token also reads.
//!
//! The incarnation is the server's own id with its name and port, and the time when the table of tokens
//! was made: a restored dump makes it anew.

use super::MysqlStore;
use super::cells::Cells;
use super::queue::AFTER_READING;
use super::statements::sql;
use super::swaps::Outcome;
use super::tokens::expiry_values;
use super::wire::Answer;
use crate::store::StoreError;
use crate::store::sql::cell::{BadColumn, Cell};
use crate::store::sql::table::ACTS;
use crate::token::{
    Incarnation, IncarnationNote, Memory, NoteSwap, Served, StoreTime, Swapped, Version,
};

/// The only engine whose transactions and locks of rows tokenrun relies on.
const ENGINE: &str = "InnoDB";

/// The note in an answer of `read.sql`, the present incarnation, and the engine of the table of tokens.
fn in_reading<'a>(
    c: &mut Cells<'a>,
) -> Result<(Option<IncarnationNote>, Incarnation, &'a str), BadColumn> {
    let text = c.text()?;
    let version = c.number()?;
    let note = (text.is_some() || version.is_some()).then(|| {
        let version = Version::from_stored(version.unwrap_or_default());
        IncarnationNote::from_json(text.unwrap_or_default(), version)
    });
    let server = c.needed_text()?;
    let made = c.needed_text()?;
    let (made, engine) = made.split_once(' ').unwrap_or((made, ""));
    Ok((note, Incarnation(format!("{server}_{made}")), engine))
}

/// Two sessions could get one grant from a table that locks no rows.
fn other_engine(place: &str, engine: &str) -> StoreError {
    StoreError::misconfigured(format!(
        "the store {place} can't be used: its table tokenrun_tokens has the engine {engine:?}, and tokens need {ENGINE}"
    ))
    .remedy(format!(
        "have every table of tokenrun's made {ENGINE} again: ALTER TABLE tokenrun_tokens ENGINE = {ENGINE}"
    ))
}

impl MysqlStore {
    /// What the store may have forgotten, from an answer of `read.sql` at `now`.
    pub(super) fn memory(
        &mut self,
        answer: &Answer,
        now: &StoreTime,
    ) -> Result<Memory, StoreError> {
        let row = answer.rows.first().ok_or_else(|| self.no_answer())?;
        let found = in_reading(&mut Cells::new(answer, row, AFTER_READING));
        let (note, incarnation, engine) =
            found.map_err(|bad| self.bad_column("tokenrun_meta", &bad))?;
        if engine != ENGINE {
            return Err(other_engine(self.connection.store_name(), engine));
        }
        let is_of_now = |note: &IncarnationNote| note.epoch == now.epoch;
        let durable = match note.as_ref().filter(|note| is_of_now(note)) {
            Some(note) => note.durable_then,
            None => self.is_durable()?,
        };
        Ok(Memory {
            incarnation: Some(incarnation),
            durable,
            note,
            unnoted: Served::NOTHING,
        })
    }

    /// Whether a restart of the server certainly loses nothing.
    fn is_durable(&mut self) -> Result<bool, StoreError> {
        let answer = self.connection.ask(self.timeout, sql!("incarnation"));
        let answer = answer.map_err(|failed| failed.error)?;
        let mut cells = Cells::first(&answer).ok_or_else(|| self.no_answer())?;
        let durable = cells.flag();
        durable.map_err(|bad| self.bad_column("tokenrun_meta", &bad))
    }

    /// Writes the note, unless it has changed since it was read.
    pub(super) fn write_note(&mut self, swap: &NoteSwap) -> Result<Swapped, StoreError> {
        let [expires, epoch] = expiry_values(&swap.expiry);
        let act = swap.act.as_deref();
        let document = act.and_then(|act| ACTS.cells(act).pop());
        let values = [
            Cell::Number(swap.from.map(Version::number)),
            Cell::number(swap.to.version.number()),
            Cell::text(&swap.to.to_json()),
            expires,
            epoch,
            Cell::maybe(act.map(|act| &act.group)),
            Cell::Number(act.map(|act| act.fence.0)),
            document.unwrap_or(Cell::Text(None)),
        ];
        let statement = self.statements.of(sql!("note"), &values);
        match self.call(&statement)? {
            Outcome::Done(at) => Ok(Swapped::Done(at)),
            Outcome::Expired(now) => Ok(Swapped::Expired(now)),
            Outcome::Conflict | Outcome::Already => Ok(Swapped::Conflict),
            Outcome::Locked | Outcome::Held => Err(StoreError::locked(format!(
                "the store {} can't be used: its table tokenrun_meta is locked by another session",
                self.connection.store_name()
            ))),
        }
    }
}
