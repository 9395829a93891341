//! The table `waiters`: the queue of each group.

use rusqlite::{Connection, params};

use super::cells::Cells;
use super::companion::companion;
use super::fault::Location as File;
use super::kept::{Kept, WriteError};
use super::write::leave;
use super::{SqliteStore, Writing, group_in, notifier, wall};
use crate::store::sql::cell::BadColumn;
use crate::store::sql::waiter;
use crate::store::{Notifier, Queue, Reading, StoreError, Tokens as _};
use crate::token::queue::FORGOTTEN;
use crate::token::{ClockEpoch, GroupName, QueueEntry, SessionId, StoreTime, Until, Waiter};

/// The columns, in the order of the statements.
pub(super) const COLUMNS: &[&str] = &[
    "token_group",
    "position",
    "session",
    "seen_at",
    "seen_tick",
    "clock_epoch",
    "document",
];

/// The waiter in the columns, and its group.
pub(super) fn from_cells(mut cells: Cells<'_>) -> Result<(GroupName, QueueEntry), BadColumn> {
    let c = &mut cells;
    let group = GroupName::new(c.needed_text()?).map_err(|why| c.bad(why.to_string()))?;
    let number = c.needed_number()?;
    let session = c.needed_text()?;
    let seen = StoreTime {
        stamp: c.stamp()?,
        epoch: ClockEpoch(c.needed_text()?.to_owned()),
    };
    let entry = waiter::entry(number, session, seen, c.needed_text()?)?;
    Ok((group, entry))
}

/// Adds a session at the end of the queue, or renews its heartbeat. The lock is held.
pub(super) fn join(
    connection: &Connection,
    group: &GroupName,
    waiter: &Waiter,
    file: &File,
    now: &StoreTime,
) -> Result<(), WriteError> {
    let wall = wall::to_text(now.stamp.wall);
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
    {
        let mut statement = connection.prepare_cached(sql!("waiters_of_group"))?;
        let mut rows = statement.query([name])?;
        while let Some(row) = rows.next()? {
            let (_, entry) = entry_in(row, file).map_err(WriteError::Store)?;
            last = entry.number;
            let age = now.calendar_age_of(entry.seen_at, Some(&entry.epoch));
            if age >= FORGOTTEN {
                forgotten.push(entry.waiter.session);
            }
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

fn entry_in(row: &rusqlite::Row<'_>, file: &File) -> Result<(GroupName, QueueEntry), StoreError> {
    from_cells(Cells::new(row, COLUMNS))
        .map_err(|bad| file.bad_cell("waiters", &group_in(row), &bad))
}

impl SqliteStore {
    /// The result of a statement for waiters.
    pub(super) fn queue(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
    ) -> Result<Vec<(GroupName, QueueEntry)>, StoreError> {
        self.rows(sql, parameters, |row| entry_in(row, &self.location))
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
