//! The table `tokens`: conversion of a token's columns.

use std::time::Instant;

use tokio_postgres::Row as Found;

use super::cells::{Cells, IN_ANSWER, cells_of};
use super::clock_epoch::expiry_values;
use super::incarnation::AFTER_NOTE;
use super::link::Answered as _;
use super::statements::sql;
use super::{PostgresStore, queue, schema};
use crate::store::sql::cell::{BadColumn, Cell};
use crate::store::sql::cold::Dialect as _;
use crate::store::sql::table::KEYS;
use crate::store::sql::token::Columns;
use crate::store::{Listing, Reading, StoreError, Tokens, Unreadable};
use crate::token::{GroupName, NoteSwap, OnceMark, Row, Swap, Swapped, Version};

/// The values of every swap: $1 to $13.
pub(super) fn to_values(swap: &Swap) -> Vec<Cell> {
    let columns = Columns::of(&swap.to);
    let [expires, started, timeline, epoch] = expiry_values(&swap.expiry);
    vec![
        Cell::text(columns.group),
        Cell::number(columns.version),
        Cell::number(columns.fence),
        Cell::text(columns.state),
        Cell::maybe(columns.client_bound),
        Cell::maybe(columns.expected_client),
        Cell::Flag(swap.stamp.is_some()),
        Cell::text(&columns.document),
        Cell::Number(swap.from.map(Version::number)),
        expires,
        started,
        timeline,
        // The statement's time belongs to this clock epoch: in another the swap expires.
        epoch,
    ]
}

/// The row in the columns from `first` on; `None` if there is none.
pub(super) fn from_row(found: &Found, first: usize) -> Result<Option<Row>, BadColumn> {
    let c = &mut Cells::new(found, first);
    let Some(group) = c.cell()? else {
        return Ok(None);
    };
    let columns = Columns {
        group,
        version: c.needed()?,
        fence: c.needed()?,
        state: c.needed()?,
        client_bound: c.cell()?,
        expected_client: c.cell()?,
        stamped: c.time()?,
        document: c.needed()?,
    };
    columns.row().map(Some)
}

impl PostgresStore {
    /// The answer of `read.sql` or `list.sql`: the rows, and the time.
    fn tokens(&mut self, rows: &[tokio_postgres::Row]) -> Result<Listing, StoreError> {
        let first = rows.first().ok_or_else(|| self.no_answer())?;
        let now = self.now(first)?;
        if !self.checked {
            let oldest: Option<&str> = first.try_get(IN_ANSWER - 1).ok().flatten();
            schema::check(self.connection.store_name(), oldest)?;
            self.checked = true;
        }
        let mut listing = Listing {
            rows: Vec::new(),
            unreadable: Vec::new(),
            now,
            queues: Vec::new(),
        };
        for row in rows {
            match from_row(row, IN_ANSWER) {
                Ok(token) => listing.rows.extend(token),
                Err(bad) => listing.unreadable.push(Unreadable {
                    group: row.try_get("token_group").unwrap_or("?").to_owned(),
                    error: self.bad_column("tokens", &bad),
                }),
            }
        }
        Ok(listing)
    }
}

impl PostgresStore {
    /// The key in an answer of `read.sql`, if it is done.
    fn done(&self, row: &Found) -> Result<Option<OnceMark>, StoreError> {
        let mark = cells_of(&KEYS, row, AFTER_NOTE).and_then(|cells| KEYS.joined(cells));
        mark.map_err(|bad| self.bad_row(&KEYS, "", &bad))
    }
}

impl Tokens for PostgresStore {
    fn look(&mut self, group: &GroupName, key: Option<&str>) -> Result<Reading, StoreError> {
        let begun = Instant::now();
        let statement = self.statements.of(sql!("read"));
        let values = [Cell::text(group), Cell::maybe(key)];
        let rows = match self.connection.query(self.timeout, &statement, &values) {
            Err(failed) if failed.has_no_tables() && !self.checked => {
                self.init_within(self.timeout.saturating_sub(begun.elapsed()))?;
                let left = self.timeout.saturating_sub(begun.elapsed());
                self.connection.query(left, &statement, &values)
            }
            answer => answer,
        };
        let rows = rows.map_err(|failed| failed.error)?;
        let mut found = self.tokens(&rows)?;
        if let Some(unreadable) = found.unreadable.pop() {
            return Err(unreadable.error);
        }
        let first = rows.first().ok_or_else(|| self.no_answer())?;
        Ok(Reading {
            row: found.rows.pop(),
            queue: self.queue(&rows, queue::in_reading)?,
            memory: self.memory(first, &found.now)?,
            done: self.done(first)?.map(Box::new),
            now: found.now,
            refuses: self.refuses(first),
        })
    }

    fn swap(&mut self, swap: &Swap) -> Result<Swapped, StoreError> {
        self.carry_out(swap)
    }

    fn note(&mut self, swap: &NoteSwap) -> Result<Swapped, StoreError> {
        self.write_note(swap)
    }

    fn list(&mut self) -> Result<Listing, StoreError> {
        let statement = self.statements.of(sql!("list"));
        let rows = self.connection.query(self.timeout, &statement, &[]);
        let rows = rows.map_err(|failed| self.listed(failed))?;
        let mut listing = self.tokens(&rows)?;
        self.list_queues(&mut listing)?;
        Ok(listing)
    }
}
