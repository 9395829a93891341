//! The table `waiters`: who is in line.

use rusqlite::{Connection, params};

use super::cells::{BadCell, Cells};
use super::fault::Place as File;
use super::{WriteError, waiter as place_of, wall};
use crate::token::line::FORGOTTEN;
use crate::token::{ClientId, Domain, GroupName, Place, SessionId, StoreTime, Waiter};

/// The columns, in the order of the statements.
pub(super) const COLUMNS: &[&str] = &[
    "token_group",
    "place",
    "session",
    "client",
    "failback",
    "seen_at",
    "seen_tick",
    "domain",
];

/// The place that the columns stand for, and in which group.
pub(super) fn from_cells(mut cells: Cells<'_>) -> Result<(GroupName, Place), BadCell> {
    let c = &mut cells;
    let group = c.needed_name(GroupName::new)?;
    let number = c.needed_number()?;
    let waiter = Waiter {
        session: c.needed_name(SessionId::new)?,
        client: c.needed_name(ClientId::new)?,
        failback: c.flag()?,
    };
    let seen_at = c.stamp()?;
    let place = Place {
        waiter,
        number,
        seen_at: c.needed(seen_at)?,
        domain: Domain(c.needed_text()?.to_owned()),
    };
    Ok((group, place))
}

/// Puts a session at the end of the line, or notes that it lives. The lock is held.
pub(super) fn join(
    connection: &Connection,
    group: &GroupName,
    waiter: &Waiter,
    file: &File,
    now: &StoreTime,
) -> Result<(), WriteError> {
    let wall = wall::to_text(now.stamp.wall_ms);
    let (tick, domain) = (now.stamp.tick_ms, &now.domain.0);
    let stamped = connection
        .prepare_cached(sql!("line_stamp"))?
        .execute(params![
            group.as_str(),
            waiter.session.as_str(),
            wall,
            tick,
            domain
        ])?;
    if stamped > 0 {
        return Ok(());
    }
    let mut last = 0;
    let mut forgotten = Vec::new();
    {
        let mut statement = connection.prepare_cached(sql!("line_read"))?;
        let mut rows = statement.query([group.as_str()])?;
        while let Some(row) = rows.next()? {
            let (_, place) = place_of(row, file).map_err(WriteError::Store)?;
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
    connection
        .prepare_cached(sql!("line_join"))?
        .execute(params![
            group.as_str(),
            last.saturating_add(1),
            waiter.session.as_str(),
            waiter.client.as_str(),
            waiter.failback,
            wall,
            tick,
            domain
        ])?;
    Ok(())
}

/// Puts a session out of the line.
pub(super) fn leave(
    connection: &Connection,
    group: &GroupName,
    session: &SessionId,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(sql!("line_leave"))?
        .execute([group.as_str(), session.as_str()])?;
    Ok(())
}
