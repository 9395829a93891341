//! The cells of one row, in order, and values as they are sent. The contents of a table are never
//! trusted: an administrator may have changed them.

use std::error::Error;
use std::fmt::Display;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio_postgres::Row;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};

use super::clock_epoch::epoch_of;
use crate::store::sql::cell::{BadColumn, Cell, Kind};
use crate::store::sql::table::Table;
use crate::token::WallTime;
use crate::token::{ClockEpoch, Stamp, StoreTime};

/// 9999-12-31T23:59:59.999Z, the last time that is written.
const LAST_WALL_MS: i64 = 253_402_300_799_999;

/// Where the token begins in an answer of `read.sql` or `list.sql`: after the time and the oldest
/// reader.
pub(super) const IN_ANSWER: usize = 4;

/// How many columns of an answer are the token's, in the order of [`super::tokens::from_row`].
pub(super) const COUNT: usize = 9;

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

    pub(super) fn bad(&self, what: impl Display) -> BadColumn {
        let last = self.next.saturating_sub(1);
        let name = self.row.columns().get(last).map_or("?", |c| c.name());
        BadColumn::of(name, what)
    }

    pub(super) fn cell<T: FromSql<'a>>(&mut self) -> Result<Option<T>, BadColumn> {
        self.next += 1;
        self.row
            .try_get(self.next - 1)
            .map_err(|error| self.bad(error))
    }

    pub(super) fn needed<T: FromSql<'a>>(&mut self) -> Result<T, BadColumn> {
        let found = self.cell()?;
        found.ok_or_else(|| self.bad("is NULL"))
    }

    /// A time.
    pub(super) fn wall(&mut self) -> Result<Option<WallTime>, BadColumn> {
        let Some(at) = self.cell::<SystemTime>()? else {
            return Ok(None);
        };
        let since = at
            .duration_since(UNIX_EPOCH)
            .map_err(|_| self.bad("lies before 1970"))?;
        match i64::try_from(since.as_millis()) {
            Ok(wall) if wall <= LAST_WALL_MS => Ok(Some(WallTime(wall))),
            Ok(_) | Err(_) => Err(self.bad("lies beyond the year 9999")),
        }
    }

    /// The server's time, when it was started, and the file name that contains its timeline.
    pub(super) fn now(&mut self) -> Result<StoreTime, BadColumn> {
        let wall = self.wall()?;
        let wall = wall.ok_or_else(|| self.bad("is NULL"))?;
        let started = self.cell()?;
        Ok(StoreTime {
            stamp: stamp(wall),
            epoch: epoch_of(started, self.needed()?),
        })
    }

    /// A stamp with its clock epoch.
    pub(super) fn time(&mut self) -> Result<StoreTime, BadColumn> {
        let wall = self.wall()?;
        let wall = wall.ok_or_else(|| self.bad("is NULL"))?;
        Ok(StoreTime {
            stamp: stamp(wall),
            epoch: ClockEpoch(self.needed()?),
        })
    }
}

/// A table's columns from `first` on, then its document.
pub(super) fn cells_of(table: &Table, row: &Row, first: usize) -> Result<Vec<Cell>, BadColumn> {
    let c = &mut Cells::new(row, first);
    let mut found = Vec::with_capacity(table.columns.len() + 1);
    for column in table.columns {
        found.push(match column.kind {
            Kind::Text => Cell::Text(c.cell()?),
            Kind::Number => Cell::Number(c.cell()?),
            Kind::Time => Cell::Time(c.wall()?),
        });
    }
    found.push(Cell::Text(c.cell()?));
    Ok(found)
}

/// The server has one clock: the wall clock also measures ages.
pub(super) const fn stamp(wall: WallTime) -> Stamp {
    Stamp {
        tick_ms: wall.0,
        wall,
    }
}

/// A length of time, in milliseconds.
pub(super) fn millis(from: Duration) -> Cell {
    Cell::number(i64::try_from(from.as_millis()).unwrap_or(i64::MAX))
}

/// A value as the driver takes it: unnamed statements give their types themselves.
pub(super) fn parameter(cell: &Cell) -> (&(dyn ToSql + Sync), Type) {
    let type_of = match cell {
        Cell::Text(_) => Type::TEXT,
        Cell::Number(_) => Type::INT8,
        Cell::Time(_) | Cell::Instant(_) => Type::TIMESTAMPTZ,
        Cell::Flag(_) => Type::BOOL,
    };
    (cell, type_of)
}

impl ToSql for Cell {
    fn to_sql(
        &self,
        of: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Text(text) => text.to_sql(of, out),
            Self::Number(number) => number.to_sql(of, out),
            Self::Flag(flag) => flag.to_sql(of, out),
            Self::Time(wall) => wall.map(time).to_sql(of, out),
            Self::Instant(at) => at.to_sql(of, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    tokio_postgres::types::to_sql_checked!();
}

/// A time outside 1970 to 9999 is written as the nearest one inside.
fn time(wall: WallTime) -> SystemTime {
    let inside = wall.0.clamp(0, LAST_WALL_MS).unsigned_abs();
    UNIX_EPOCH + Duration::from_millis(inside)
}
