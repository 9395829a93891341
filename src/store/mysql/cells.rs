//! The cells of one row, in order, and values as they are sent. The contents of a table are never
//! trusted: an administrator may have changed them.

use std::fmt::Display;

use jiff::SignedDuration;
use jiff::civil::DateTime;

use super::wire::Answer;
use crate::store::sql::cell::{BadColumn, Cell, Kind};
use crate::store::sql::table::Table;
use crate::token::{ClockEpoch, Stamp, StoreTime, WallTime};

/// 9999-12-31T23:59:59.999Z, the last time that is written.
const LAST_WALL_MS: i64 = 253_402_300_799_999;

const START: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// Where the token begins in an answer of `read.sql` or `list.sql`: after the time and the oldest
/// reader.
pub(super) const IN_ANSWER: usize = 3;

/// Where an answer of `read.sql` goes on after the token's nine columns.
pub(super) const AFTER_TOKEN: usize = IN_ANSWER + 9;

/// The same after the waiter.
pub(super) const AFTER_READING: usize = AFTER_TOKEN + 5;

/// The same after the note, the names, and what else tells the server.
pub(super) const AFTER_NOTE: usize = AFTER_READING + 7;

/// Reads a row's cells from left to right.
pub(super) struct Cells<'a> {
    names: &'a [String],
    row: &'a [Option<Vec<u8>>],
    next: usize,
}

impl<'a> Cells<'a> {
    /// From this column on.
    pub(super) const fn new(answer: &'a Answer, row: &'a [Option<Vec<u8>>], first: usize) -> Self {
        Self {
            names: answer.names.as_slice(),
            row,
            next: first,
        }
    }

    /// The first row of an answer.
    pub(super) fn first(answer: &'a Answer) -> Option<Self> {
        Some(Self::new(answer, answer.rows.first()?, 0))
    }

    pub(super) fn bad(&self, what: impl Display) -> BadColumn {
        let last = self.next.saturating_sub(1);
        BadColumn::of(self.names.get(last).map_or("?", String::as_str), what)
    }

    pub(super) fn text(&mut self) -> Result<Option<&'a str>, BadColumn> {
        self.next += 1;
        let cell = self.row.get(self.next - 1);
        let cell = cell.ok_or_else(|| self.bad("is missing"))?;
        let text = cell.as_deref().map(std::str::from_utf8);
        text.transpose().map_err(|error| self.bad(error))
    }

    pub(super) fn needed_text(&mut self) -> Result<&'a str, BadColumn> {
        let found = self.text()?;
        found.ok_or_else(|| self.bad("is NULL"))
    }

    /// The group of a row that may be malformed, as far as it is readable.
    pub(super) fn group(&mut self) -> String {
        let text = self.text().ok().flatten();
        text.unwrap_or("?").to_owned()
    }

    pub(super) fn number(&mut self) -> Result<Option<i64>, BadColumn> {
        let text = self.text()?;
        let number = text.map(str::parse);
        number.transpose().map_err(|error| self.bad(error))
    }

    pub(super) fn needed_number(&mut self) -> Result<i64, BadColumn> {
        let found = self.number()?;
        found.ok_or_else(|| self.bad("is NULL"))
    }

    pub(super) fn flag(&mut self) -> Result<bool, BadColumn> {
        Ok(self.number()? == Some(1))
    }

    /// A time.
    pub(super) fn wall(&mut self) -> Result<Option<WallTime>, BadColumn> {
        let Some(text) = self.text()? else {
            return Ok(None);
        };
        let at: DateTime = text.parse().map_err(|error| self.bad(error))?;
        match i64::try_from(at.duration_since(START).as_millis()) {
            Ok(wall @ 0..=LAST_WALL_MS) => Ok(Some(WallTime(wall))),
            Ok(..0) => Err(self.bad("lies before 1970")),
            Ok(_) | Err(_) => Err(self.bad("lies beyond the year 9999")),
        }
    }

    /// A stamp with its clock epoch; also the server's time with its own.
    pub(super) fn time(&mut self) -> Result<StoreTime, BadColumn> {
        let wall = self.wall()?;
        let wall = wall.ok_or_else(|| self.bad("is NULL"))?;
        Ok(StoreTime {
            stamp: stamp(wall),
            epoch: ClockEpoch(self.needed_text()?.to_owned()),
        })
    }

    /// How many sessions wait, in the answer of a swap; 0 in any other.
    pub(super) fn waits(&mut self) -> i64 {
        let column = self.names.iter().position(|name| name == "waits");
        column.map_or(0, |at| {
            self.next = at;
            self.number().ok().flatten().unwrap_or(0)
        })
    }

    /// A table's columns, then its document.
    pub(super) fn of(&mut self, table: &Table) -> Result<Vec<Cell>, BadColumn> {
        let mut found = Vec::with_capacity(table.columns.len() + 1);
        for column in table.columns {
            found.push(match column.kind {
                Kind::Text => Cell::Text(self.text()?.map(str::to_owned)),
                Kind::Number => Cell::Number(self.number()?),
                Kind::Time => Cell::Time(self.wall()?),
            });
        }
        found.push(Cell::Text(self.text()?.map(str::to_owned)));
        Ok(found)
    }
}

/// The server has one clock: the wall clock also measures ages.
pub(super) const fn stamp(wall: WallTime) -> Stamp {
    Stamp {
        tick_ms: wall.0,
        wall,
    }
}

/// A length of time, in milliseconds.
pub(super) fn millis(from: std::time::Duration) -> Cell {
    Cell::number(i64::try_from(from.as_millis()).unwrap_or(i64::MAX))
}

/// A value as SQL has it. Texts are in hexadecimal digits: they mean the same whatever the server's
/// `sql_mode` and its character sets are, and nothing in them can end them.
fn literal(cell: &Cell) -> String {
    let number = |number: &Option<i64>| number.map(|it| it.to_string());
    let literal = match cell {
        Cell::Text(None) => None,
        Cell::Text(Some(text)) if text.is_empty() => Some("''".to_owned()),
        Cell::Text(Some(text)) => {
            let mut digits = String::with_capacity(text.len() * 2 + 12);
            digits.push_str("_utf8mb4 X'");
            let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
            for byte in text.bytes() {
                digits.extend([digit(byte >> 4), digit(byte & 15)]);
            }
            digits.push('\'');
            Some(digits)
        }
        Cell::Number(it) => number(it),
        Cell::Flag(flag) => Some(u8::from(*flag).to_string()),
        Cell::Time(wall) => wall.map(time),
        Cell::Instant(_) => None,
    };
    literal.unwrap_or_else(|| "NULL".to_owned())
}

/// A time outside 1970 to 9999 is written as the nearest one inside.
fn time(wall: WallTime) -> String {
    let since = SignedDuration::from_millis(wall.0.clamp(0, LAST_WALL_MS));
    let at = START.checked_add(since).unwrap_or(START);
    format!("TIMESTAMP'{}'", at.strftime("%Y-%m-%d %H:%M:%S.%3f"))
}

/// A statement with its values in the places of `$1`, `$2` …
pub(super) fn fill(statement: &str, values: &[Cell]) -> String {
    let mut parts = statement.split('$');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit());
        let (number, rest) = part.split_at(end.unwrap_or(part.len()));
        let value = number.parse::<usize>().ok();
        let value = value.and_then(|at| values.get(at.checked_sub(1)?));
        match value {
            Some(value) => filled.push_str(&literal(value)),
            None => {
                filled.push('$');
                filled.push_str(number);
            }
        }
        filled.push_str(rest);
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_take_their_places() {
        let values = [
            Cell::text("it's"),
            Cell::Number(None),
            Cell::number(-7),
            Cell::Flag(true),
            Cell::text(""),
        ];
        assert_eq!(
            fill("f($1, $2, $3, $4,$5) $9", &values),
            "f(_utf8mb4 X'69742773', NULL, -7, 1,'') $9"
        );
    }

    #[test]
    fn a_time_is_written_and_read_to_the_millisecond() {
        for wall in [0, 1_790_000_000_987, LAST_WALL_MS] {
            let literal = time(WallTime(wall));
            let text = literal
                .trim_start_matches("TIMESTAMP'")
                .trim_end_matches('\'');
            let answer = Answer {
                names: vec!["at".into()],
                rows: vec![vec![Some(format!("{text}999").into_bytes())]],
            };
            let mut cells = Cells::first(&answer).unwrap();
            assert_eq!(cells.wall(), Ok(Some(WallTime(wall))), "{literal}");
        }
        assert_eq!(time(WallTime(0)), "TIMESTAMP'1970-01-01 00:00:00.000'");
    }

    #[test]
    fn a_cell_that_makes_no_sense_is_an_error_with_its_column() {
        let answer = Answer {
            names: vec!["at".into()],
            rows: vec![vec![Some(b"0000-00-00 00:00:00".to_vec())]],
        };
        let bad = Cells::first(&answer).unwrap().wall().unwrap_err();
        assert_eq!(bad.column, "at");
    }
}
