//! The cells of one row, in order, and the values that are sent. What is in a table is
//! never trusted: an administrator may have changed it.

use std::fmt::Display;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql, Type};

use crate::token::{NameError, Stamp};

/// 9999-12-31T23:59:59.999Z, the last that is written down.
const LAST_WALL_MS: i64 = 253_402_300_799_999;

/// A row that no tokenrun wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadCell {
    /// Which column.
    pub(super) column: String,
    /// What is wrong with it, to be read after the column.
    pub(super) what: String,
}

pub(super) fn bad(column: &str, what: impl Display) -> BadCell {
    BadCell {
        column: column.into(),
        what: what.to_string(),
    }
}

/// Reads a row's cells from left to right.
pub(super) struct Cells<'a> {
    row: &'a Row,
    next: usize,
}

impl<'a> Cells<'a> {
    /// From this column on.
    pub(super) const fn new(row: &'a Row, first: usize) -> Self {
        Self { row, next: first }
    }

    pub(super) fn bad(&self, what: impl Display) -> BadCell {
        let last = self.next.saturating_sub(1);
        let name = self.row.columns().get(last).map_or("?", |c| c.name());
        bad(name, what)
    }

    pub(super) fn cell<T: FromSql<'a>>(&mut self) -> Result<Option<T>, BadCell> {
        self.next += 1;
        self.row
            .try_get(self.next - 1)
            .map_err(|error| self.bad(error))
    }

    pub(super) fn needed<T: FromSql<'a>>(&mut self) -> Result<T, BadCell> {
        let found = self.cell()?;
        self.there(found)
    }

    /// What must be there.
    pub(super) fn there<T>(&self, found: Option<T>) -> Result<T, BadCell> {
        found.ok_or_else(|| self.bad("is NULL"))
    }

    /// A count, which is never negative.
    pub(super) fn count(&mut self) -> Result<i64, BadCell> {
        match self.needed::<i64>()? {
            n if n < 0 => Err(self.bad(format!("is {n}, which is negative"))),
            n => Ok(n),
        }
    }

    pub(super) fn millis(&mut self) -> Result<Duration, BadCell> {
        Ok(Duration::from_millis(self.count()?.unsigned_abs()))
    }

    /// A name, made by one of the constructors of [`crate::token`].
    pub(super) fn name<T>(
        &mut self,
        new: impl FnOnce(&str) -> Result<T, NameError>,
    ) -> Result<Option<T>, BadCell> {
        self.cell::<&str>()?
            .map(|text| new(text).map_err(|error| self.bad(error)))
            .transpose()
    }

    pub(super) fn needed_name<T>(
        &mut self,
        new: impl FnOnce(&str) -> Result<T, NameError>,
    ) -> Result<T, BadCell> {
        let found = self.name(new)?;
        self.there(found)
    }

    /// One of a few words.
    pub(super) fn word<T>(
        &mut self,
        from_word: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, BadCell> {
        self.cell::<&str>()?
            .map(|word| {
                from_word(word).ok_or_else(|| {
                    let shown: String = word.chars().take(60).collect();
                    self.bad(format!("is {shown:?}, an unknown word"))
                })
            })
            .transpose()
    }

    /// A time, in milliseconds since 1970.
    pub(super) fn wall(&mut self) -> Result<Option<i64>, BadCell> {
        Ok(self.instant()?.map(|(_, wall_ms)| wall_ms))
    }

    /// A time, and the same in milliseconds since 1970.
    pub(super) fn instant(&mut self) -> Result<Option<(SystemTime, i64)>, BadCell> {
        let Some(at) = self.cell::<SystemTime>()? else {
            return Ok(None);
        };
        let since = at
            .duration_since(UNIX_EPOCH)
            .map_err(|_| self.bad("lies before 1970"))?;
        let wall_ms = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        if wall_ms > LAST_WALL_MS {
            return Err(self.bad("lies beyond the year 9999"));
        }
        Ok(Some((at, wall_ms)))
    }

    pub(super) fn stamp(&mut self) -> Result<Option<Stamp>, BadCell> {
        Ok(self.wall()?.map(stamp))
    }
}

/// The server has one clock: what people read is what ages are judged by.
pub(super) const fn stamp(wall_ms: i64) -> Stamp {
    Stamp {
        tick_ms: wall_ms,
        wall_ms,
    }
}

/// A value that is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(Option<String>),
    Long(Option<i64>),
    Int(Option<i32>),
    Flag(bool),
    Time(Option<SystemTime>),
}

impl Value {
    pub(super) fn text(from: &(impl ToString + ?Sized)) -> Self {
        Self::Text(Some(from.to_string()))
    }

    pub(super) fn maybe(from: Option<&(impl ToString + ?Sized)>) -> Self {
        Self::Text(from.map(ToString::to_string))
    }

    pub(super) const fn long(from: i64) -> Self {
        Self::Long(Some(from))
    }

    pub(super) fn millis(from: Duration) -> Self {
        Self::long(i64::try_from(from.as_millis()).unwrap_or(i64::MAX))
    }

    /// A time in milliseconds since 1970. What lies outside of 1970 to 9999 is written
    /// as the nearest that lies inside.
    pub(super) fn time(wall_ms: Option<i64>) -> Self {
        Self::Time(wall_ms.map(|ms| {
            let inside = ms.clamp(0, LAST_WALL_MS).unsigned_abs();
            UNIX_EPOCH + Duration::from_millis(inside)
        }))
    }

    /// As the driver takes it: unnamed statements say their types themselves.
    pub(super) fn parameter(&self) -> (&(dyn ToSql + Sync), Type) {
        match self {
            Self::Text(value) => (value, Type::TEXT),
            Self::Long(value) => (value, Type::INT8),
            Self::Int(value) => (value, Type::INT4),
            Self::Flag(value) => (value, Type::BOOL),
            Self::Time(value) => (value, Type::TIMESTAMPTZ),
        }
    }
}
