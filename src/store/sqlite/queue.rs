//! The table `waiters`: the queue of each group.

use rusqlite::{Connection, params};

use super::cells::Cells;
use super::fault::Place as File;
use super::{WriteError, place_in, wall};
use crate::store::sql::cell::BadColumn;
use crate::store::sql::waiter;
use crate::token::line::FORGOTTEN;
use crate::token::{Domain, GroupName, Place, SessionId, StoreTime, Waiter};

/// The columns, in the order of the statements.
pub(super) const COLUMNS: &[&str] = &[
    "token_group",
    "place",
    "session",
    "seen_at",
    "seen_tick",
    "domain",
    "document",
];

/// The place that the columns stand for, and in which group.
pub(super) fn from_cells(mut cells: Cells<'_>) -> Result<(GroupName, Place), BadColumn> {
    let c = &mut cells;
    let group = GroupName::new(c.needed_text()?).map_err(|why| c.bad(why.to_string()))?;
    let number = c.needed_number()?;
    let session = c.needed_text()?;
    let seen = StoreTime {
        stamp: c.stamp()?,
        domain: Domain(c.needed_text()?.to_owned()),
    };
    let place = waiter::place(number, session, seen, c.needed_text()?)?;
    Ok((group, place))
}

/// Puts a session at the end of the queue, or notes that it lives. The lock is held.
pub(super) fn join(
    connection: &Connection,
    group: &GroupName,
    waiter: &Waiter,
    file: &File,
    now: &StoreTime,
) -> Result<(), WriteError> {
    let wall = wall::to_text(now.stamp.wall_ms);
    let (tick, domain) = (now.stamp.tick_ms, &now.domain.0);
    let (name, session) = (group.as_str(), waiter.session.as_str());
    let stamped = connection
        .prepare_cached(sql!("waiter_stamp"))?
        .execute(params![name, session, wall, tick, domain])?;
    if stamped > 0 {
        return Ok(());
    }
    let mut last = 0;
    let mut forgotten = Vec::new();
    {
        let mut statement = connection.prepare_cached(sql!("waiters_of_group"))?;
        let mut rows = statement.query([name])?;
        while let Some(row) = rows.next()? {
            let (_, place) = place_in(row, file).map_err(WriteError::Store)?;
            last = place.number;
            let age = now.calendar_age_of(place.seen_at, Some(&place.domain));
            if age >= FORGOTTEN {
                forgotten.push(place.waiter.session);
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
        .execute(params![name, number, session, wall, tick, domain, document])?;
    Ok(())
}

/// Puts a session out of the queue.
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
