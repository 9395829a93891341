//! The table `tokens`: a token's columns, and back.

use rusqlite::types::{Value, ValueRef};

use super::cells::{self, Cells};
use super::fault::Place;
use super::swap::carry_out;
use super::{SqliteStore, Writing, group_in, incarnation};
use crate::store::sql::cell::BadColumn;
use crate::store::sql::token::Columns;
use crate::store::{Listing, Reading, StoreError, Tokens, Unreadable};
use crate::token::{Domain, GroupName, NoteSwap, Row, StoreTime, Swap, Swapped};

/// The columns, in the order of the statements.
pub(super) const COLUMNS: &[&str] = &[
    "token_group",
    "version",
    "fence",
    "state",
    "client_bound",
    "expected_client",
    "stamped_at",
    "stamped_tick",
    "domain",
    "document",
];

/// What is written for a row, in the order of [`COLUMNS`].
pub(super) fn to_values(row: &Row) -> [Value; 10] {
    let columns = Columns::of(row);
    let [wall, tick] = cells::stamp(columns.stamped.stamp);
    [
        cells::text(columns.group),
        Value::Integer(columns.version),
        Value::Integer(columns.fence),
        cells::text(columns.state),
        cells::text_or_null(columns.client_bound),
        cells::text_or_null(columns.expected_client),
        wall,
        tick,
        cells::text(columns.stamped.domain.0),
        cells::text(columns.document),
    ]
}

/// The row that the columns stand for.
pub(super) fn from_cells(mut cells: Cells<'_>) -> Result<Row, BadColumn> {
    let c = &mut cells;
    let columns = Columns {
        group: c.needed_text()?,
        version: c.needed_number()?,
        fence: c.needed_number()?,
        state: c.needed_text()?,
        client_bound: c.text()?,
        expected_client: c.text()?,
        stamped: StoreTime {
            stamp: c.stamp()?,
            domain: Domain(c.needed_text()?.to_owned()),
        },
        document: c.needed_text()?.to_owned(),
    };
    columns.row()
}

fn token_of(row: &rusqlite::Row<'_>, place: &Place) -> Result<Row, StoreError> {
    from_cells(Cells::new(row, COLUMNS))
        .map_err(|bad| place.bad_cell("tokens", &group_in(row), &bad))
}

impl Tokens for SqliteStore {
    fn read(&mut self, group: &GroupName) -> Result<Reading, StoreError> {
        self.quiet_the_bell();
        let transaction = self.reading()?;
        // The snapshot is taken by the first statement; the clock is read after it.
        let mut note = None;
        let found = self.rows(sql!("token_read"), [group.as_str()], |row| {
            if row
                .get_ref(0)
                .is_ok_and(|of| of == ValueRef::Text(incarnation::NOTE.as_bytes()))
            {
                let bad = |bad| self.place.bad_cell("tokens", "(the store)", &bad);
                note = Some(incarnation::of_row(row).map_err(bad)?);
                return Ok(None);
            }
            // Whether anybody is in line is asked in the same statement: to prepare
            // another would cost every run what few need.
            let in_line = row.get("in_line").unwrap_or(true);
            Ok(Some((token_of(row, &self.place)?, in_line)))
        })?;
        let mut found: Vec<_> = found.into_iter().flatten().collect();
        let line = match found.last() {
            None | Some((_, false)) => Vec::new(),
            Some((_, true)) => self.queue(sql!("waiters_of_group"), [group.as_str()])?,
        };
        let now = self.clock.now();
        drop(transaction);
        Ok(Reading {
            row: found.pop().map(|(row, _)| row),
            now,
            line: line.into_iter().map(|(_, place)| place).collect(),
            memory: incarnation::memory(self.file.incarnation(), note),
        })
    }

    fn swap(&mut self, swap: &Swap) -> Result<Swapped, StoreError> {
        let records = swap.ended.is_some() || swap.act.is_some();
        let writing = if records {
            Writing::History
        } else {
            Writing::State
        };
        self.write(writing, |transaction, _, now| {
            Ok(carry_out(transaction, swap, now)?)
        })
    }

    fn note(&mut self, swap: &NoteSwap) -> Result<Swapped, StoreError> {
        let writing = match swap.act {
            Some(_) => Writing::History,
            None => Writing::State,
        };
        self.write(writing, |transaction, _, now| {
            Ok(incarnation::write(transaction, swap, now)?)
        })
    }

    fn list(&mut self) -> Result<Listing, StoreError> {
        let transaction = self.reading()?;
        let found = self.rows(sql!("token_list"), [], |row| {
            Ok(token_of(row, &self.place).map_err(|error| Unreadable {
                group: group_in(row),
                error,
            }))
        })?;
        let lines = self.queue(sql!("waiters"), [])?;
        let now = self.clock.now();
        drop(transaction);
        let mut listing = Listing {
            rows: Vec::new(),
            unreadable: Vec::new(),
            now,
            lines,
        };
        for row in found {
            match row {
                Ok(row) => listing.rows.push(row),
                Err(unreadable) => listing.unreadable.push(unreadable),
            }
        }
        Ok(listing)
    }
}
