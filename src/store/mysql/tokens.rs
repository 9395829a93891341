//! The table of tokens: conversion of a token's columns.

use std::time::Instant;

use super::cells::{AFTER_NOTE, Cells, IN_ANSWER};
use super::link::Missing as _;
use super::statements::sql;
use super::wire::Answer;
use super::{MysqlStore, schema};
use crate::store::sql::cell::{BadColumn, Cell};
use crate::store::sql::cold::Dialect as _;
use crate::store::sql::table::KEYS;
use crate::store::sql::token::Columns;
use crate::store::{Listing, Reading, StoreError, Tokens, Unreadable};
use crate::token::{
    GroupName, NoteSwap, OnceMark, Row, State, StoreTime, Swap, Swapped, Until, WallTime,
};

/// The column of the server's clock epoch in an answer.
const EPOCH: &str = "epoch";

/// The values of a token: its columns but the group and the stamp.
pub(super) fn to_values(swap: &Swap) -> [Cell; 7] {
    let columns = Columns::of(&swap.to);
    [
        Cell::number(columns.version),
        Cell::number(columns.fence),
        Cell::text(columns.state),
        Cell::maybe(columns.client_bound),
        Cell::maybe(columns.expected_client),
        Cell::Flag(swap.stamp.is_some()),
        Cell::text(&columns.document),
    ]
}

/// The expiry of a statement, and its clock epoch.
pub(super) fn expiry_values(expiry: &Until) -> [Cell; 2] {
    [
        Cell::Time(Some(WallTime(expiry.tick_ms()))),
        Cell::text(expiry.epoch()),
    ]
}

/// The token in a row of `read.sql` or `list.sql`; `None` if there is none.
pub(super) fn from_row(answer: &Answer, row: &[Option<Vec<u8>>]) -> Result<Option<Row>, BadColumn> {
    let c = &mut Cells::new(answer, row, IN_ANSWER);
    let Some(group) = c.text()? else {
        return Ok(None);
    };
    let columns = Columns {
        group,
        version: c.needed_number()?,
        fence: c.needed_number()?,
        state: c.needed_text()?,
        client_bound: c.text()?,
        expected_client: c.text()?,
        stamped: c.time()?,
        document: c.needed_text()?.to_owned(),
    };
    columns.row().map(Some)
}

impl MysqlStore {
    /// The answer of `read.sql` or `list.sql`: the rows, and the time.
    fn tokens(&mut self, answer: &Answer) -> Result<Listing, StoreError> {
        let now = self.now(answer)?;
        if !self.checked {
            let row = answer.rows.first().map(Vec::as_slice).unwrap_or_default();
            let oldest = Cells::new(answer, row, IN_ANSWER - 1).text().ok().flatten();
            schema::check(self.connection.store_name(), oldest)?;
            self.checked = true;
        }
        let mut listing = Listing {
            rows: Vec::new(),
            unreadable: Vec::new(),
            now,
            queues: Vec::new(),
        };
        for row in &answer.rows {
            match from_row(answer, row) {
                Ok(token) => listing.rows.extend(token),
                Err(bad) => listing.unreadable.push(Unreadable {
                    group: Cells::new(answer, row, IN_ANSWER).group(),
                    error: self.bad_column("tokenrun_tokens", &bad),
                }),
            }
        }
        Ok(listing)
    }

    /// The server's time, from the first two columns of an answer.
    pub(super) fn now(&self, answer: &Answer) -> Result<StoreTime, StoreError> {
        let mut cells = Cells::first(answer).ok_or_else(|| self.no_answer())?;
        let time = cells.time();
        time.map_err(|bad| self.bad_time(&bad))
    }

    /// A time without its clock epoch, which is a variable of the session that this connection has set up.
    pub(super) fn bad_time(&self, bad: &BadColumn) -> StoreError {
        if bad.column != EPOCH {
            return self.bad_column("tokenrun_tokens", bad);
        }
        StoreError::misconfigured(format!(
            "the store {} can't be used: another session of the server has answered than the one that was set up, \
             so a proxy in between changes sessions",
            self.connection.store_name()
        ))
        .remedy(
            "let the proxy keep each session on one connection (ProxySQL: transaction_persistent, no rules for \
             SELECT), or name the servers themselves in the store",
        )
    }

    /// Reads the token of a group, and a key.
    fn read_both(&mut self, group: &GroupName, key: Option<&str>) -> Result<Reading, StoreError> {
        let begun = Instant::now();
        let values = [Cell::text(group), Cell::maybe(key)];
        let statement = self.statements.of(sql!("read"), &values);
        let answer = match self.connection.ask(self.timeout, &statement) {
            // A store without its last row is not complete.
            Ok(answer) if answer.rows.is_empty() && !self.checked => None,
            Err(failed) if failed.has_no_tables() && !self.checked => None,
            answer => Some(answer.map_err(|failed| failed.error)?),
        };
        let answer = match answer {
            Some(answer) => answer,
            None => {
                self.init_within(self.timeout.saturating_sub(begun.elapsed()))?;
                let left = self.timeout.saturating_sub(begun.elapsed());
                let again = self.connection.ask(left, &statement);
                again.map_err(|failed| failed.error)?
            }
        };
        let mut found = self.tokens(&answer)?;
        if let Some(unreadable) = found.unreadable.pop() {
            return Err(unreadable.error);
        }
        Ok(Reading {
            row: found.rows.pop(),
            queue: self.queue_in_reading(&answer)?,
            memory: self.memory(&answer, &found.now)?,
            done: self.done(&answer)?.map(Box::new),
            now: found.now,
            refuses: None,
        })
    }
}

impl MysqlStore {
    /// The key in an answer of `read.sql`, if it is done.
    fn done(&self, answer: &Answer) -> Result<Option<OnceMark>, StoreError> {
        let row = answer.rows.first().ok_or_else(|| self.no_answer())?;
        let cells = Cells::new(answer, row, AFTER_NOTE).of(&KEYS);
        let mark = cells.and_then(|cells| KEYS.joined(cells));
        mark.map_err(|bad| self.bad_row(&KEYS, "", &bad))
    }
}

impl Tokens for MysqlStore {
    fn look(&mut self, group: &GroupName, key: Option<&str>) -> Result<Reading, StoreError> {
        let is_given_up = self.hear();
        if self.bell.is_some() && !is_given_up {
            self.listen(group);
        }
        let reading = self.read_both(group, key)?;
        let is_held = |row: &Row| matches!(row.state, State::Running { .. });
        if is_given_up && reading.row.as_ref().is_some_and(is_held) {
            // Another session was quicker.
            self.listen(group);
            return self.read_both(group, key);
        }
        Ok(reading)
    }

    fn swap(&mut self, swap: &Swap) -> Result<Swapped, StoreError> {
        self.hear();
        self.carry_out(swap)
    }

    fn note(&mut self, swap: &NoteSwap) -> Result<Swapped, StoreError> {
        self.write_note(swap)
    }

    fn list(&mut self) -> Result<Listing, StoreError> {
        let statement = self.statements.of(sql!("list"), &[]);
        let answer = self.connection.ask(self.timeout, &statement);
        let answer = answer.map_err(|failed| self.listed(failed))?;
        if answer.rows.is_empty() {
            return Err(self.no_store());
        }
        let mut listing = self.tokens(&answer)?;
        self.list_queues(&mut listing)?;
        Ok(listing)
    }
}
