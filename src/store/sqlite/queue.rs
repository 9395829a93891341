//! The table `waiters`: the queue of each group.

use rusqlite::{Connection, params};

use super::cells::{read, wall_text};
use super::fault::Location as File;
use super::write::{Kept, WriteError, leave};
use super::{SqliteStore, Writing, notifier};
use crate::store::sql::cell::{Cell, Cells, Column, Rows, group_of};
use crate::store::sql::waiter;
use crate::store::{Notifier, Queue, Reading, StoreError, Tokens as _};
use crate::sys::sqlite_files::companion;
use crate::token::queue::FORGOTTEN;
use crate::token::{GroupName, QueueEntry, SessionId, StoreTime, Until, Waiter};

/// Adds a session at the end of the queue, or renews its heartbeat. The lock is held.
pub(super) fn join(
    connection: &Connection,
    group: &GroupName,
    waiter: &Waiter,
    file: &File,
    now: &StoreTime,
) -> Result<(), WriteError> {
    let wall = wall_text(now.stamp.wall);
    let (tick, epoch) = (now.stamp.tick_ms, &now.epoch.0);
    let (name, session) = (group.as_str(), waiter.session.as_str());
    let stamped = connection
        .prepare_cached(sql!("waiter_stamp"))?
        .execute(params![name, session, wall, tick, epoch])?;
    if stamped > 0 {
        return Ok(());
    }
    let mut last = 0;
    let mut forgotten = Vec::new();
    let columns = waiter::with_group();
    let values = [Cell::text(group)];
    let rows = read(connection, sql!("waiters_of_group"), &values, &columns)?;
    for (_, entry) in entries(&columns, &rows, file).map_err(WriteError::Store)? {
        last = entry.number;
        let age = now.calendar_age_of(entry.seen_at, Some(&entry.epoch));
        if age >= FORGOTTEN {
            forgotten.push(entry.waiter.session);
        }
    }
    for session in &forgotten {
        leave(connection, group, session)?;
    }
    let document = waiter::document(waiter);
    let number = last.saturating_add(1);
    connection
        .prepare_cached(sql!("waiter_add"))?
        .execute(params![name, number, session, wall, tick, epoch, document])?;
    Ok(())
}

fn entries(
    columns: &[Column],
    rows: &Rows,
    file: &File,
) -> Result<Vec<(GroupName, QueueEntry)>, StoreError> {
    let entry = |row: &Vec<Cell>| {
        let cells = Cells::new(columns, row);
        let entry = waiter::in_group(cells);
        entry.map_err(|bad| file.bad_cell("waiters", &group_of(cells), &bad))
    };
    rows.iter().map(entry).collect()
}

impl SqliteStore {
    /// The result of a statement for waiters.
    pub(super) fn queue(
        &self,
        sql: &str,
        values: &[Cell],
    ) -> Result<Vec<(GroupName, QueueEntry)>, StoreError> {
        let columns = waiter::with_group();
        entries(&columns, &self.rows(sql, values, &columns)?, &self.location)
    }

    /// The next read clears the notification.
    pub(super) fn clear_notifications(&self) {
        if let Some(notifier) = &self.notifier {
            notifier.clear();
        }
    }
}

impl Queue for SqliteStore {
    fn join(
        &mut self,
        group: &GroupName,
        waiter: &Waiter,
        expiry: &Until,
        key: Option<&str>,
    ) -> Result<Reading, StoreError> {
        self.write(Writing::State, |transaction, entry, now| {
            if now.is_past(expiry) {
                return Ok(Kept::No(()));
            }
            join(transaction, group, waiter, entry, now).map(Kept::Yes)
        })?;
        if self.notifier.is_none() {
            self.notifier = notifier::LogWatch::new(&companion(&self.location.path, "-wal"));
        }
        self.look(group, key)
    }

    fn leave(&mut self, group: &GroupName, session: &SessionId) -> Result<(), StoreError> {
        self.write(Writing::State, |transaction, _, _| {
            leave(transaction, group, session).map_err(WriteError::from)?;
            Ok(Kept::Yes(()))
        })
    }

    fn notifier(&mut self) -> Option<Notifier> {
        self.notifier.as_ref().map(notifier::LogWatch::notifier)
    }
}
