//! The table `tokens`: reading, and a swap inside a transaction.

use rusqlite::{Transaction, params_from_iter};

use super::cells::values;
use super::write::{self, Kept};
use super::{SqliteStore, Writing, incarnation};
use crate::store::sql::cell::{BadColumn, Cell, Cells, Column, flag, group_of};
use crate::store::sql::records;
use crate::store::sql::token::{self, Columns, TOKEN};
use crate::store::{Listing, Reading, StoreError, Tokens};
use crate::token::{GroupName, NoteSwap, Row, StoreTime, Swap, Swapped, Version};

/// The values of a row, in the order of the statements.
pub(super) fn cells_of(row: &Row) -> Vec<Cell> {
    let (columns, document) = Columns::of(row).cells();
    let mut cells = columns.to_vec();
    let StoreTime { stamp, epoch } = &row.stamped;
    cells.extend([Cell::Stamp(Some(*stamp)), Cell::text(epoch), document]);
    cells
}

/// Carries a swap out, or says why not. The lock is held.
fn carry_out(
    transaction: &Transaction<'_>,
    swap: &Swap,
    now: &StoreTime,
) -> rusqlite::Result<Kept<Swapped>> {
    let group = swap.group();
    // The statement of the look before: preparing another would cost more than running it.
    let mut statement = transaction.prepare_cached(sql!("token_read"))?;
    let mut rows = statement.query([group.as_str()])?;
    let (mut found, mut note) = (None, None);
    while let Some(row) = rows.next()? {
        let version = Some(Version::from_stored(row.get("version")?));
        match row.get_ref(0)?.as_str()? == incarnation::NOTE {
            true => note = version,
            false => found = version,
        }
    }
    let of_note = swap.note.as_ref().map(|note| note.version);
    if found != swap.from || (of_note.is_some() && of_note != note) {
        return Ok(Kept::No(Swapped::Conflict));
    }
    if now.is_past(&swap.expiry) {
        return Ok(Kept::No(Swapped::Expired(now.clone())));
    }
    let statement = match found {
        Some(_) => sql!("token_update"),
        None => sql!("token_insert"),
    };
    // Kept for the next swap of this run: parsing the statement costs more than running it.
    let mut statement = transaction.prepare_cached(statement)?;
    statement.execute(params_from_iter(values(&cells_of(&swap.written(now)))))?;
    if let Some(session) = &swap.leaves {
        write::leave(transaction, group, session)?;
    }
    if let Some(run) = &swap.ended {
        write::write_run(transaction, run, now)?;
    }
    if let Some(act) = &swap.act {
        write::write_act(transaction, act, now)?;
    }
    Ok(Kept::Yes(Swapped::Done(now.clone())))
}

impl Tokens for SqliteStore {
    fn look(&mut self, group: &GroupName, key: Option<&str>) -> Result<Reading, StoreError> {
        self.clear_notifications();
        let transaction = self.reading()?;
        // The statement for the token also reads if there are waiters: to prepare another would cost
        // every run, and few need it.
        let columns: Vec<Column> = TOKEN.into_iter().chain([flag("in_queue")]).collect();
        // The first statement takes the snapshot; the clock is read after it.
        let rows = self.rows(sql!("token_read"), &[Cell::text(group)], &columns)?;
        let (mut note, mut token, mut in_queue) = (None, None, false);
        for row in &rows {
            let cells = Cells::new(&columns, row);
            if group_of(cells) == incarnation::NOTE {
                let bad = |bad| self.location.bad_cell("tokens", "(the store)", &bad);
                note = Some(incarnation::noted(&cells).map_err(bad)?);
            } else {
                let bad = |bad| self.location.bad_cell("tokens", &group_of(cells), &bad);
                token = token::row(cells).map_err(bad)?;
                in_queue = cells.after(TOKEN.len()).flag().unwrap_or(true);
            }
        }
        let queue = match in_queue {
            true => self.queue(sql!("waiters_of_group"), &[Cell::text(group)])?,
            false => Vec::new(),
        };
        let done = match key {
            Some(key) => records::key(&mut &*self, group, key)?,
            None => None,
        };
        let now = self.clock.now();
        drop(transaction);
        Ok(Reading {
            row: token,
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
        let found = self.rows(sql!("token_list"), &[], &TOKEN)?;
        let queues = self.queue(sql!("waiters"), &[])?;
        let now = self.clock.now();
        drop(transaction);
        let bad_row = |group: &str, bad: &BadColumn| self.location.bad_cell("tokens", group, bad);
        Ok(Listing {
            queues,
            ..token::list(&TOKEN, &found, 0, now, bad_row)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use super::*;
    use crate::store::conformance::acts::act_on;
    use crate::store::conformance::{claim, version};
    use crate::token::GrantKind;
    use crate::token::operator::Act;
    use crate::token::record::fixture::{SUCCESS, run_of};
    use crate::token::swap::{grant, heartbeat, release};

    /// A power cut may take the last heartbeat, and no record: that commit is synced, and leaves the long log to others.
    #[test]
    fn a_swap_with_a_record_is_written_as_history() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokens.db");
        let limit = Duration::from_secs(10);
        let mut store = SqliteStore::open(&path, limit).unwrap();
        let me = claim("g", "a", "s");
        let is_history = |store: &mut SqliteStore, swap: &Swap| {
            assert!(matches!(store.swap(swap).unwrap(), Swapped::Done(_)));
            store.spares_log.load(Ordering::Relaxed)
        };
        let row = |store: &mut SqliteStore| store.read(&me.group).unwrap().row.unwrap();
        let now = store.read(&me.group).unwrap().now;
        let swap = grant(&me, GrantKind::Bind, None, &now, version(1));
        assert!(!is_history(&mut store, &swap));
        let (act, _) = act_on(&row(&mut store), &Act::Revoke, &now, 2);
        assert!(is_history(&mut store, &act));
        let until = now.until(limit);
        let beat = heartbeat(&row(&mut store), version(3), until.clone());
        assert!(!is_history(&mut store, &beat));
        let held = row(&mut store);
        let run = run_of(&held).ended(SUCCESS);
        let end = release(&held, run, version(4), until);
        assert!(is_history(&mut store, &end));
    }
}
