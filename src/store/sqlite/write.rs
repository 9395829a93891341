//! The writes of a transaction besides the token: the run, the act, the key, the queue.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::wall;
use crate::store::sql::cell::Cell;
use crate::store::sql::table::{ACTS, KEYS, RUNS};
use crate::token::{ActRecord, GroupName, Recorded, RunRecord, SessionId, StoreTime};

/// A cell as SQLite takes it.
pub(super) fn value(cell: &Cell) -> Value {
    match cell {
        Cell::Text(Some(text)) => Value::Text(text.clone()),
        Cell::Number(Some(number)) => Value::Integer(*number),
        Cell::Time(Some(wall)) => Value::Text(wall::to_text(*wall)),
        Cell::Flag(flag) => Value::Integer(i64::from(*flag)),
        // No statement here has an instant.
        Cell::Text(None) | Cell::Number(None) | Cell::Time(None) | Cell::Instant(_) => Value::Null,
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
    let mut statement = connection.prepare_cached(sql!("run_write"))?;
    if statement.execute(params_from_iter(cells.iter().map(value)))? == 0 {
        return Ok(Recorded::Already);
    }
    if let Some(mark) = run.once_mark(now.stamp.wall) {
        let cells = KEYS.cells(&mark);
        connection.execute(sql!("key_write"), params_from_iter(cells.iter().map(value)))?;
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
    connection.execute(sql!("act_write"), params_from_iter(cells.iter().map(value)))?;
    if let Some(key) = &act.once_key {
        connection.execute(sql!("key_forget"), [act.group.as_str(), key])?;
    }
    Ok(())
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
