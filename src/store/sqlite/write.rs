//! The writes of a transaction besides the token: the run, the refusal, the act, the key, the queue.

use rusqlite::{Connection, params_from_iter};

use super::cells::{read, values};
use crate::store::StoreError;
use crate::store::sql::cell::{Cell, Cells, Column, Kind, number};
use crate::store::sql::table::{ACTS, KEYS, RUNS};
use crate::token::refusal::Repeats;
use crate::token::{
    ActRecord, GroupName, Recorded, RefusalRecord, RunRecord, SessionId, StoreTime, WallTime,
};

/// A transaction's answer, and whether to commit.
pub(super) enum Kept<T> {
    Yes(T),
    No(T),
}

/// The errors of an open transaction.
pub(super) enum WriteError {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for WriteError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Writes a finished run, and makes its key done. The lock is held.
pub(super) fn write_run(
    connection: &Connection,
    run: &RunRecord,
    now: &StoreTime,
) -> rusqlite::Result<Recorded> {
    let mut cells = RUNS.cells(&run.clone().written(now));
    cells.push(Cell::Time(Some(now.stamp.wall)));
    if write_row(connection, sql!("run_write"), &cells)? == 0 {
        return Ok(Recorded::Already);
    }
    if let Some(mark) = run.once_mark(now.stamp.wall) {
        let cells = KEYS.cells(&mark);
        write_row(connection, sql!("key_write"), &cells)?;
    }
    Ok(Recorded::Written)
}

/// Writes an act of an operator, and forgets its key. The lock is held.
pub(super) fn write_act(
    connection: &Connection,
    act: &ActRecord,
    now: &StoreTime,
) -> rusqlite::Result<()> {
    let act = ActRecord {
        at: now.stamp.wall,
        ..act.clone()
    };
    let cells = ACTS.cells(&act);
    write_row(connection, sql!("act_write"), &cells)?;
    if let Some(key) = &act.once_key {
        connection.execute(sql!("key_forget"), [act.group.as_str(), key])?;
    }
    Ok(())
}

/// Writes a row of a table. The lock is held.
pub(super) fn write_row(
    connection: &Connection,
    statement: &str,
    cells: &[Cell],
) -> rusqlite::Result<usize> {
    connection.execute(statement, params_from_iter(values(cells)))
}

/// The newest record of this client's refusals for this cause, without those of later than `now`.
/// A malformed one counts as none.
pub(super) fn newest_refusal(
    connection: &Connection,
    refusal: &RefusalRecord,
    now: WallTime,
) -> rusqlite::Result<Option<Repeats>> {
    let columns = [
        Column::new("first_at", Kind::Time),
        Column::new("last_at", Kind::Time),
        number("count"),
    ];
    let key = [
        Cell::text(&refusal.group),
        Cell::text(&refusal.client),
        Cell::text(&refusal.cause),
        Cell::Time(Some(now)),
    ];
    let rows = read(connection, sql!("refusal_newest"), &key, &columns)?;
    let repeats = |row: &Vec<Cell>| {
        let mut cells = Cells::new(&columns, row);
        Some(Repeats {
            first_at: cells.wall().ok()??,
            last_at: cells.wall().ok()??,
            count: u64::try_from(cells.number().ok()??).ok()?,
        })
    };
    Ok(rows.first().and_then(repeats))
}

/// Removes a session from the queue.
pub(super) fn leave(
    connection: &Connection,
    group: &GroupName,
    session: &SessionId,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(sql!("waiter_remove"))?
        .execute([group.as_str(), session.as_str()])?;
    Ok(())
}
