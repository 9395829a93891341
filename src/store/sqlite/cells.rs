//! The cells of one row, in order. The contents of a file are never trusted: each cell is checked,
//! and an error names its column.

use rusqlite::types::{Type, Value, ValueRef};

use super::wall;
use crate::store::sql::cell::BadColumn;
use crate::token::Stamp;
use crate::token::WallTime;

/// Shows a wrong value in one line, shortened.
fn shown(text: &str) -> String {
    const MOST: usize = 60;
    let mut start: String = text.chars().take(MOST).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    format!("{start:?}")
}

const fn type_name(found: Type) -> &'static str {
    match found {
        Type::Null => "nothing",
        Type::Integer => "a number",
        Type::Real => "a fraction",
        Type::Text => "a text",
        Type::Blob => "bytes",
    }
}

/// Reads a row's cells from left to right.
pub(super) struct Cells<'a> {
    row: &'a rusqlite::Row<'a>,
    columns: Names,
    next: usize,
}

/// The names of the columns, in messages.
enum Names {
    /// From the first on.
    All(&'static [&'static str]),
    /// There is only one.
    One(&'static str),
}

impl<'a> Cells<'a> {
    pub(super) const fn new(row: &'a rusqlite::Row<'a>, columns: &'static [&'static str]) -> Self {
        Self {
            row,
            columns: Names::All(columns),
            next: 0,
        }
    }

    /// For one column.
    pub(super) const fn of_column(
        row: &'a rusqlite::Row<'a>,
        index: usize,
        name: &'static str,
    ) -> Self {
        Self {
            row,
            columns: Names::One(name),
            next: index,
        }
    }

    /// The column of the last cell.
    fn column(&self) -> &'static str {
        let last = self.next.saturating_sub(1);
        match self.columns {
            Names::All(names) => names.get(last).copied().unwrap_or("?"),
            Names::One(name) => name,
        }
    }

    pub(super) fn bad(&self, what: impl Into<String>) -> BadColumn {
        BadColumn::of(self.column(), what.into())
    }

    fn cell(&mut self) -> Result<ValueRef<'a>, BadColumn> {
        self.next += 1;
        self.row
            .get_ref(self.next - 1)
            .map_err(|error| self.bad(error.to_string()))
    }

    pub(super) fn text(&mut self) -> Result<Option<&'a str>, BadColumn> {
        match self.cell()? {
            ValueRef::Null => Ok(None),
            ValueRef::Text(bytes) => std::str::from_utf8(bytes)
                .map(Some)
                .map_err(|_| self.bad("is no UTF-8")),
            other => Err(self.bad(format!("is {}, not a text", type_name(other.data_type())))),
        }
    }

    pub(super) fn number(&mut self) -> Result<Option<i64>, BadColumn> {
        match self.cell()? {
            ValueRef::Null => Ok(None),
            ValueRef::Integer(number) => Ok(Some(number)),
            other => Err(self.bad(format!("is {}, not a number", type_name(other.data_type())))),
        }
    }

    /// A value that must be present.
    fn needed<T>(&self, found: Option<T>) -> Result<T, BadColumn> {
        found.ok_or_else(|| self.bad("is NULL"))
    }

    pub(super) fn needed_text(&mut self) -> Result<&'a str, BadColumn> {
        let found = self.text()?;
        self.needed(found)
    }

    pub(super) fn needed_number(&mut self) -> Result<i64, BadColumn> {
        let found = self.number()?;
        self.needed(found)
    }

    pub(super) fn wall(&mut self) -> Result<Option<WallTime>, BadColumn> {
        self.text()?
            .map(|text| {
                wall::from_text(text).ok_or_else(|| {
                    self.bad(format!(
                        "is {}, not a time such as 2026-11-21T02:00:00.000Z",
                        shown(text)
                    ))
                })
            })
            .transpose()
    }

    /// A stamp's two columns: the wall time, then the tick.
    pub(super) fn stamp(&mut self) -> Result<Stamp, BadColumn> {
        let wall = self.wall()?;
        let wall = self.needed(wall)?;
        let tick_ms = self.needed_number()?;
        Ok(Stamp { tick_ms, wall })
    }
}

pub(super) fn text(from: impl Into<String>) -> Value {
    Value::Text(from.into())
}

pub(super) fn text_or_null(from: Option<&(impl ToString + ?Sized)>) -> Value {
    from.map_or(Value::Null, |from| Value::Text(from.to_string()))
}

pub(super) fn stamp(from: Stamp) -> [Value; 2] {
    [
        Value::Text(wall::to_text(from.wall)),
        Value::Integer(from.tick_ms),
    ]
}
