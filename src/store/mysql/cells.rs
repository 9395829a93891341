//! Rows as cells, and values as they are sent. The contents of a table are never
//! trusted: an administrator may have changed them.

use jiff::SignedDuration;
use jiff::civil::DateTime;

use super::wire::Answer;
use crate::store::sql::cell::{BadColumn, Cell, Column, Kind, LAST_WALL_MS, Rows, stamp, wall};
use crate::token::WallTime;

const START: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// The rows of an answer in these columns.
pub(super) fn rows(answer: &Answer, columns: &[Column]) -> Rows {
    let rows = answer.rows.iter();
    rows.map(|row| cells(row, columns)).collect()
}

/// The cells of a row in these columns.
pub(super) fn cells(row: &Sent, columns: &[Column]) -> Vec<Cell> {
    let cell = |(at, column): (usize, &Column)| {
        let found = text_at(row, at).and_then(|text| cell(text, column.kind));
        found.unwrap_or_else(|what| Cell::Bad(Box::new(BadColumn::of(column.name, what))))
    };
    columns.iter().enumerate().map(cell).collect()
}

/// A row as it was sent.
type Sent = [Option<Vec<u8>>];

/// The text in a row's column.
pub(super) fn text_at(row: &Sent, at: usize) -> Result<Option<&str>, String> {
    let cell = row.get(at).ok_or("is missing")?;
    let text = cell.as_deref().map(std::str::from_utf8);
    text.transpose().map_err(|error| error.to_string())
}

/// The flag that an answer begins with, if it is readable.
pub(super) fn first_flag(answer: &Answer) -> Option<bool> {
    match cell(text_at(answer.rows.first()?, 0).ok()?, Kind::Flag) {
        Ok(Cell::Flag(flag)) => Some(flag),
        _ => None,
    }
}

/// The cell of this kind that a text is.
fn cell(text: Option<&str>, kind: Kind) -> Result<Cell, String> {
    let number = || {
        let number = text.map(str::parse::<i64>);
        number.transpose().map_err(|error| error.to_string())
    };
    Ok(match kind {
        Kind::Text | Kind::Epoch => Cell::Text(text.map(str::to_owned)),
        Kind::Number => Cell::Number(number()?),
        Kind::Flag => Cell::Flag(number()? == Some(1)),
        Kind::Time => Cell::Time(text.map(time_of).transpose()?),
        Kind::Stamp => Cell::Stamp(text.map(time_of).transpose()?.map(stamp)),
    })
}

fn time_of(text: &str) -> Result<WallTime, String> {
    let at: DateTime = text
        .parse()
        .map_err(|error: jiff::Error| error.to_string())?;
    Ok(wall(at.duration_since(START).as_millis())?)
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

    const AT: Column = Column::new("at", Kind::Time);

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
            let row = [Some(format!("{text}999").into_bytes())];
            let cell = Cell::Time(Some(WallTime(wall)));
            assert_eq!(cells(&row, &[AT]), [cell], "{literal}");
        }
        assert_eq!(time(WallTime(0)), "TIMESTAMP'1970-01-01 00:00:00.000'");
    }

    #[test]
    fn the_flag_that_an_answer_begins_with_is_read() {
        for (cells, flag) in [
            (vec![Some("1"), Some("0")], Some(true)),
            (vec![Some("0"), Some("1")], Some(false)),
            (vec![None], Some(false)),
            (vec![Some("yes")], None),
            (vec![], None),
        ] {
            let row = cells.iter().map(|cell| cell.map(Into::into)).collect();
            let answer = Answer {
                rows: vec![row],
                ..Answer::default()
            };
            assert_eq!(first_flag(&answer), flag, "{cells:?}");
        }
        assert_eq!(first_flag(&Answer::default()), None);
    }

    #[test]
    fn a_cell_that_makes_no_sense_is_an_error_with_its_column() {
        let row = [Some(b"0000-00-00 00:00:00".to_vec())];
        let found = cells(&row, &[AT]);
        let [Cell::Bad(bad)] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(bad.column, "at");
    }
}
