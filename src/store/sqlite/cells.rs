//! Rows as cells, and cells as they are written.

use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::types::{Type, Value, ValueRef};
use rusqlite::{Connection, Row, params_from_iter};

use crate::store::sql::cell::{BadColumn, Cell, Column, Kind, Rows, instant, shortened};
use crate::token::{Stamp, WallTime};

const fn type_name(found: Type) -> &'static str {
    match found {
        Type::Null => "nothing",
        Type::Integer => "a number",
        Type::Real => "a fraction",
        Type::Text => "a text",
        Type::Blob => "bytes",
    }
}

/// Carries out a statement that reads rows of these columns.
pub(super) fn read(
    connection: &Connection,
    sql: &str,
    cells: &[Cell],
    columns: &[Column],
) -> rusqlite::Result<Rows> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params_from_iter(values(cells)))?;
    let mut taken = Vec::new();
    while let Some(row) = rows.next()? {
        taken.push(cells_of(row, columns));
    }
    Ok(taken)
}

/// The cells of a row in these columns. A stamp is in two: the wall time, then the tick.
fn cells_of(row: &Row<'_>, columns: &[Column]) -> Vec<Cell> {
    let mut at = 0;
    let mut cell = |column: &Column| {
        let found = cell(row, at, column);
        at += if column.kind == Kind::Stamp { 2 } else { 1 };
        found.unwrap_or_else(|bad| Cell::Bad(Box::new(bad)))
    };
    columns.iter().map(&mut cell).collect()
}

fn cell(row: &Row<'_>, at: usize, column: &Column) -> Result<Cell, BadColumn> {
    let bad = |what| BadColumn::of(column.name, what);
    Ok(match column.kind {
        Kind::Text | Kind::Epoch => Cell::Text(text(row, at).map_err(bad)?.map(str::to_owned)),
        Kind::Number => Cell::Number(number(row, at).map_err(bad)?),
        Kind::Flag => Cell::Flag(number(row, at).map_err(bad)?.is_some_and(|it| it != 0)),
        Kind::Time => Cell::Time(time(row, at).map_err(bad)?),
        Kind::Stamp => {
            let Some(wall) = time(row, at).map_err(bad)? else {
                return Ok(Cell::Stamp(None));
            };
            let bad = |what| BadColumn::of(&column.name.replace("_at", "_tick"), what);
            let tick_ms = number(row, at + 1).map_err(bad)?;
            let tick_ms = tick_ms.ok_or_else(|| bad("is NULL".to_owned()))?;
            Cell::Stamp(Some(Stamp { tick_ms, wall }))
        }
    })
}

fn value_at<'a>(row: &'a Row<'_>, at: usize) -> Result<ValueRef<'a>, String> {
    row.get_ref(at).map_err(|error| error.to_string())
}

fn text<'a>(row: &'a Row<'_>, at: usize) -> Result<Option<&'a str>, String> {
    match value_at(row, at)? {
        ValueRef::Null => Ok(None),
        ValueRef::Text(bytes) => {
            let text = std::str::from_utf8(bytes);
            text.map(Some).map_err(|_| "is no UTF-8".to_owned())
        }
        other => Err(format!("is {}, not a text", type_name(other.data_type()))),
    }
}

fn number(row: &Row<'_>, at: usize) -> Result<Option<i64>, String> {
    match value_at(row, at)? {
        ValueRef::Null => Ok(None),
        ValueRef::Integer(number) => Ok(Some(number)),
        other => Err(format!("is {}, not a number", type_name(other.data_type()))),
    }
}

fn time(row: &Row<'_>, at: usize) -> Result<Option<WallTime>, String> {
    let wrong = |text| {
        let text = shortened(text);
        format!("is {text:?}, not a time such as 2026-11-21T02:00:00.000Z")
    };
    let text = text(row, at)?;
    let wall = text.map(|text| wall_of(text).ok_or_else(|| wrong(text)));
    wall.transpose()
}

/// Cells as SQLite takes them.
pub(super) fn values(cells: &[Cell]) -> impl Iterator<Item = Value> {
    cells.iter().flat_map(|cell| {
        let tick = match cell {
            Cell::Stamp(stamp) => Some(number_or_null(stamp.map(|stamp| stamp.tick_ms))),
            _ => None,
        };
        [value(cell)].into_iter().chain(tick)
    })
}

fn value(cell: &Cell) -> Value {
    let text = |text: Option<String>| text.map_or(Value::Null, Value::Text);
    match cell {
        Cell::Text(it) => text(it.clone()),
        Cell::Number(it) => number_or_null(*it),
        Cell::Time(wall) => text(wall.map(wall_text)),
        Cell::Stamp(stamp) => text(stamp.map(|stamp| wall_text(stamp.wall))),
        Cell::Flag(flag) => Value::Integer(i64::from(*flag)),
        // No statement here has them.
        Cell::Instant(_) | Cell::Bad(_) => Value::Null,
    }
}

fn number_or_null(number: Option<i64>) -> Value {
    number.map_or(Value::Null, Value::Integer)
}

/// The text for a wall time: RFC 3339 in UTC, with milliseconds. A time outside 1970 to 9999 is written as the nearest one
/// inside.
pub(super) fn wall_text(wall: WallTime) -> String {
    humantime::format_rfc3339_millis(instant(wall)).to_string()
}

/// The wall time in a text.
pub(super) fn wall_of(text: &str) -> Option<WallTime> {
    let at: SystemTime = humantime::parse_rfc3339(text).ok()?;
    let since = at.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok().map(WallTime)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::store::sql::cell::LAST_WALL_MS;

    #[test]
    fn a_wall_time_is_written_in_utc_with_milliseconds() {
        assert_eq!(
            wall_text(WallTime(1_790_000_000_123)),
            "2026-09-21T14:13:20.123Z"
        );
        assert_eq!(
            wall_of("2026-09-21T14:13:20.123Z"),
            Some(WallTime(1_790_000_000_123))
        );
    }

    #[test]
    fn an_unrepresentable_time_is_written_as_the_nearest_one() {
        assert_eq!(wall_text(WallTime(i64::MIN)), "1970-01-01T00:00:00.000Z");
        assert_eq!(wall_text(WallTime(i64::MAX)), "9999-12-31T23:59:59.999Z");
    }

    proptest! {
        #[test]
        fn every_time_is_read_as_written(wall in 0..=LAST_WALL_MS) {
            let wall = WallTime(wall);
            prop_assert_eq!(wall_of(&wall_text(wall)), Some(wall));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}", digits in "[0-9TZ:.+-]{0,30}") {
            let _ = wall_of(&text);
            let _ = wall_of(&digits);
        }

        #[test]
        fn no_number_panics(wall: i64) {
            let _ = wall_text(WallTime(wall));
        }
    }
}
