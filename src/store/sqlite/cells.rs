//! The cells of one row, in order. What is in a file is never trusted: each is
//! checked, and what is wrong is said with the name of its column.

use std::fmt::Display;
use std::time::Duration;

use rusqlite::types::{Type, Value, ValueRef};

use super::wall;
use crate::token::{NameError, Stamp};

/// A row that no tokenrun wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadCell {
    /// Which column.
    pub(super) column: &'static str,
    /// What is wrong with it, to be read after the column.
    pub(super) what: String,
}

/// Shows a value that is wrong, in one line and not too long.
fn shown(text: &str) -> String {
    const MOST: usize = 60;
    let mut start: String = text.chars().take(MOST).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    format!("{start:?}")
}

pub(super) fn bad(column: &'static str, what: impl Into<String>) -> BadCell {
    BadCell {
        column,
        what: what.into(),
    }
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
    columns: &'static [&'static str],
    next: usize,
}

impl<'a> Cells<'a> {
    pub(super) const fn new(row: &'a rusqlite::Row<'a>, columns: &'static [&'static str]) -> Self {
        let next = 0;
        Self { row, columns, next }
    }

    /// The column that the last cell was of.
    pub(super) fn column(&self) -> &'static str {
        let last = self.next.saturating_sub(1);
        self.columns.get(last).copied().unwrap_or("?")
    }

    pub(super) fn bad(&self, what: impl Into<String>) -> BadCell {
        bad(self.column(), what)
    }

    fn cell(&mut self) -> Result<ValueRef<'a>, BadCell> {
        self.next += 1;
        self.row
            .get_ref(self.next - 1)
            .map_err(|error| self.bad(error.to_string()))
    }

    pub(super) fn text(&mut self) -> Result<Option<&'a str>, BadCell> {
        match self.cell()? {
            ValueRef::Null => Ok(None),
            ValueRef::Text(bytes) => std::str::from_utf8(bytes)
                .map(Some)
                .map_err(|_| self.bad("is no UTF-8")),
            other => Err(self.bad(format!("is {}, not a text", type_name(other.data_type())))),
        }
    }

    pub(super) fn number(&mut self) -> Result<Option<i64>, BadCell> {
        match self.cell()? {
            ValueRef::Null => Ok(None),
            ValueRef::Integer(number) => Ok(Some(number)),
            other => Err(self.bad(format!("is {}, not a number", type_name(other.data_type())))),
        }
    }

    /// What must be there.
    pub(super) fn needed<T>(&self, found: Option<T>) -> Result<T, BadCell> {
        found.ok_or_else(|| self.bad("is NULL"))
    }

    pub(super) fn needed_text(&mut self) -> Result<&'a str, BadCell> {
        let found = self.text()?;
        self.needed(found)
    }

    pub(super) fn needed_number(&mut self) -> Result<i64, BadCell> {
        let found = self.number()?;
        self.needed(found)
    }

    pub(super) fn owned(&mut self) -> Result<Option<String>, BadCell> {
        Ok(self.text()?.map(str::to_owned))
    }

    /// A number that must fit into 32 bits: a pid, an exit code.
    pub(super) fn small(&mut self) -> Result<Option<i32>, BadCell> {
        self.number()?
            .map(|n| i32::try_from(n).map_err(|_| self.bad(format!("is {n}, out of range"))))
            .transpose()
    }

    /// A count, which is never negative.
    pub(super) fn count(&mut self) -> Result<i64, BadCell> {
        match self.needed_number()? {
            n if n < 0 => Err(self.bad(format!("is {n}, which is negative"))),
            n => Ok(n),
        }
    }

    pub(super) fn millis(&mut self) -> Result<Duration, BadCell> {
        Ok(Duration::from_millis(self.count()?.unsigned_abs()))
    }

    pub(super) fn flag(&mut self) -> Result<bool, BadCell> {
        match self.needed_number()? {
            0 => Ok(false),
            1 => Ok(true),
            n => Err(self.bad(format!("is {n}, neither 0 nor 1"))),
        }
    }

    /// A name, made by one of the constructors of [`crate::token`].
    pub(super) fn name<T>(
        &mut self,
        new: impl FnOnce(&str) -> Result<T, NameError>,
    ) -> Result<Option<T>, BadCell> {
        self.text()?
            .map(|text| new(text).map_err(|error| self.bad(error.to_string())))
            .transpose()
    }

    pub(super) fn needed_name<T>(
        &mut self,
        new: impl FnOnce(&str) -> Result<T, NameError>,
    ) -> Result<T, BadCell> {
        let found = self.name(new)?;
        self.needed(found)
    }

    /// One of a few words.
    pub(super) fn word<T>(
        &mut self,
        from_word: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, BadCell> {
        self.text()?
            .map(|word| {
                from_word(word)
                    .ok_or_else(|| self.bad(format!("is {}, an unknown word", shown(word))))
            })
            .transpose()
    }

    pub(super) fn wall(&mut self) -> Result<Option<i64>, BadCell> {
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
    pub(super) fn stamp(&mut self) -> Result<Option<Stamp>, BadCell> {
        let wall_ms = self.wall()?;
        let tick_ms = self.number()?;
        match (wall_ms, tick_ms) {
            (None, None) => Ok(None),
            (Some(wall_ms), Some(tick_ms)) => Ok(Some(Stamp { tick_ms, wall_ms })),
            _ => {
                Err(self
                    .bad("is there without the other half of its stamp, or the other way round"))
            }
        }
    }
}

/// Nothing where `condition` holds, else a contradiction between two columns.
pub(super) fn agree(
    condition: bool,
    column: &'static str,
    what: impl Display,
) -> Result<(), BadCell> {
    if condition {
        Ok(())
    } else {
        Err(bad(column, format!("contradicts {what}")))
    }
}

pub(super) fn text(from: impl Into<String>) -> Value {
    Value::Text(from.into())
}

pub(super) fn text_or_null(from: Option<&(impl ToString + ?Sized)>) -> Value {
    from.map_or(Value::Null, |from| Value::Text(from.to_string()))
}

pub(super) fn number_or_null(from: Option<impl Into<i64>>) -> Value {
    from.map_or(Value::Null, |from| Value::Integer(from.into()))
}

pub(super) fn millis(from: Duration) -> Value {
    Value::Integer(i64::try_from(from.as_millis()).unwrap_or(i64::MAX))
}

pub(super) fn wall_or_null(from: Option<i64>) -> Value {
    from.map_or(Value::Null, |wall_ms| Value::Text(wall::to_text(wall_ms)))
}

pub(super) fn stamp(from: Option<Stamp>) -> [Value; 2] {
    [
        wall_or_null(from.map(|stamp| stamp.wall_ms)),
        number_or_null(from.map(|stamp| stamp.tick_ms)),
    ]
}
