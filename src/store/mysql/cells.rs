//! The cells of one row, in order, and values as they are sent. The contents of a table are never
//! trusted: an administrator may have changed them.

use std::fmt::Display;

use jiff::SignedDuration;
use jiff::civil::DateTime;

use super::wire::Answer;
use crate::store::sql::cell::{BadColumn, Cell, Column, Kind, LAST_WALL_MS, Rows, stamp, wall};
use crate::token::WallTime;

const START: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// The rows of an answer in these columns.
pub(super) fn rows(answer: &Answer, columns: &[Column]) -> Rows {
    let rows = answer.rows.iter();
    rows.map(|row| cells(answer, row, columns)).collect()
}

/// The cells of a row in these columns.
pub(super) fn cells(answer: &Answer, row: &[Option<Vec<u8>>], columns: &[Column]) -> Vec<Cell> {
    let mut cells = Cells::new(answer, row, 0);
    let cell = |column: &Column| {
        let found = cells.of(column.kind);
        found.unwrap_or_else(|bad| Cell::Bad(Box::new(BadColumn::of(column.name, bad.what))))
    };
    columns.iter().map(cell).collect()
}

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

    pub(super) fn number(&mut self) -> Result<Option<i64>, BadColumn> {
        let text = self.text()?;
        let number = text.map(str::parse);
        number.transpose().map_err(|error| self.bad(error))
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
        let wall = wall(at.duration_since(START).as_millis());
        wall.map(Some).map_err(|what| self.bad(what))
    }

    /// A cell of this kind.
    fn of(&mut self, kind: Kind) -> Result<Cell, BadColumn> {
        Ok(match kind {
            Kind::Text | Kind::Epoch => Cell::Text(self.text()?.map(str::to_owned)),
            Kind::Number => Cell::Number(self.number()?),
            Kind::Flag => Cell::Flag(self.flag()?),
            Kind::Time => Cell::Time(self.wall()?),
            Kind::Stamp => Cell::Stamp(self.wall()?.map(stamp)),
        })
    }
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
        Cell::Stamp(stamp) => stamp.map(|stamp| time(stamp.wall)),
        Cell::Instant(_) | Cell::Bad(_) => None,
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
