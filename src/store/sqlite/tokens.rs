//! The table `tokens`: conversion of a token's columns.

use rusqlite::types::ValueRef;

use super::cells::Cells;
use super::fault::Location;
use super::rows::{COLUMNS, from_cells};
use super::swap::carry_out;
use super::{SqliteStore, Writing, group_in, incarnation};
use crate::store::{Listing, Reading, StoreError, Tokens, Unreadable};
use crate::token::{GroupName, NoteSwap, Row, Swap, Swapped};

fn token_of(row: &rusqlite::Row<'_>, location: &Location) -> Result<Row, StoreError> {
    from_cells(Cells::new(row, COLUMNS))
        .map_err(|bad| location.bad_cell("tokens", &group_in(row), &bad))
}

impl Tokens for SqliteStore {
    fn look(&mut self, group: &GroupName, key: Option<&str>) -> Result<Reading, StoreError> {
        self.clear_notifications();
        let transaction = self.reading()?;
        // The first statement takes the snapshot; the clock is read after it.
        let mut note = None;
        let found = self.rows(sql!("token_read"), [group.as_str()], |row| {
            if row
                .get_ref(0)
                .is_ok_and(|of| of == ValueRef::Text(incarnation::NOTE.as_bytes()))
            {
                let bad = |bad| self.location.bad_cell("tokens", "(the store)", &bad);
                note = Some(incarnation::of_row(row).map_err(bad)?);
                return Ok(None);
            }
            // The same statement reads whether there are waiters: preparing another would cost
            // every run, and few need it.
            let in_queue = row.get("in_queue").unwrap_or(true);
            Ok(Some((token_of(row, &self.location)?, in_queue)))
        })?;
        let mut found: Vec<_> = found.into_iter().flatten().collect();
        let queue = match found.last() {
            None | Some((_, false)) => Vec::new(),
            Some((_, true)) => self.queue(sql!("waiters_of_group"), [group.as_str()])?,
        };
        let done = match key {
            Some(key) => self.key(group, key)?,
            None => None,
        };
        let now = self.clock.now();
        drop(transaction);
        Ok(Reading {
            row: found.pop().map(|(row, _)| row),
            now,
            queue: queue.into_iter().map(|(_, entry)| entry).collect(),
            memory: incarnation::memory(self.file.incarnation(), note),
            refuses: None,
            done: done.map(Box::new),
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
            Ok(token_of(row, &self.location).map_err(|error| Unreadable {
                group: group_in(row),
                error,
            }))
        })?;
        let queues = self.queue(sql!("waiters"), [])?;
        let now = self.clock.now();
        drop(transaction);
        let mut listing = Listing {
            rows: Vec::new(),
            unreadable: Vec::new(),
            now,
            queues,
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
