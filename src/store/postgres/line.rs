//! The table `waiters`: who is in line, and what wakes them. A release tells the channel
//! of its group, in its own statement, if somebody waits.

use tokio_postgres::Row;

use super::cells::{BadCell, Cells, Value};
use super::{PostgresStore, tokens};
use crate::store::{Reading, Store as _, StoreError};
use crate::token::{ClientId, Domain, GroupName, Place, SessionId, StoreTime, Waiter};

/// How often a look is repeated because something was told while it was under way.
const LOOKS: u32 = 3;

/// Where the place in line begins in an answer of `token_read.sql`: after the time, the
/// oldest reader, and the token's columns.
const IN_READING: usize = tokens::IN_ANSWER + tokens::COLUMNS.len();

/// The place in a row of `token_read.sql`, if there is one.
pub(super) fn in_reading(row: &Row) -> Result<Option<Place>, BadCell> {
    let c = &mut Cells::new(row, IN_READING);
    match c.name(SessionId::new)? {
        None => Ok(None),
        Some(session) => place(session, c).map(Some),
    }
}

/// A row of `line_list.sql`.
fn in_list(row: &Row) -> Result<(GroupName, Place), BadCell> {
    let c = &mut Cells::new(row, 0);
    let group = c.needed_name(GroupName::new)?;
    let session = c.needed_name(SessionId::new)?;
    Ok((group, place(session, c)?))
}

fn place(session: SessionId, c: &mut Cells<'_>) -> Result<Place, BadCell> {
    let number = c.needed()?;
    let waiter = Waiter {
        session,
        client: c.needed_name(ClientId::new)?,
        failback: c.needed()?,
    };
    let seen_at = c.wall()?;
    let seen_at = super::cells::stamp(c.there(seen_at)?);
    Ok(Place {
        waiter,
        number,
        seen_at,
        domain: Domain(c.needed()?),
    })
}

impl PostgresStore {
    /// Those in line, by what an answer's rows say.
    pub(super) fn line(
        &self,
        rows: &[Row],
        place: impl Fn(&Row) -> Result<Option<Place>, BadCell>,
    ) -> Result<Vec<Place>, StoreError> {
        let places = rows.iter().filter_map(|row| place(row).transpose());
        let places = places.map(|place| place.map_err(|bad| self.bad_cell("waiters", &bad)));
        let mut places: Vec<Place> = places.collect::<Result<_, _>>()?;
        places.sort_by_key(|place| place.number);
        Ok(places)
    }

    /// Everybody in line, by group.
    pub(super) fn lines(&mut self) -> Result<Vec<(GroupName, Place)>, StoreError> {
        let statement = self.statements.line_list();
        let rows = self.session.ask(self.timeout, &statement, &[]);
        let rows = match rows {
            Ok(rows) => rows,
            // Tables of version 1: nobody can wait there.
            Err(failed) if failed.no_schema => return Ok(Vec::new()),
            Err(failed) => return Err(failed.error),
        };
        rows.iter()
            .map(|row| in_list(row).map_err(|bad| self.bad_cell("waiters", &bad)))
            .collect()
    }

    /// Gets into the line, or stays in it, and hears of releases from then on.
    pub(super) fn get_into_line(
        &mut self,
        group: &GroupName,
        waiter: &Waiter,
        expiry: &StoreTime,
    ) -> Result<(), StoreError> {
        let channel = self.statements.channel(group.as_str());
        let [expires, started, timeline] = tokens::expiry_values(expiry);
        let values = [
            Value::text(group),
            Value::text(&waiter.session),
            Value::text(&waiter.client),
            Value::Flag(waiter.failback),
            Value::text(&channel),
            expires,
            started,
            timeline,
        ];
        let had_listened = self.session.listens();
        let statement = self.statements.line_join();
        let answer = self.session.ask(self.timeout, &statement, &values);
        let rows = answer.map_err(|failed| failed.error)?;
        // What a connection was asked for and does not know any more was asked of another
        // of the server's processes: a pooler is in between.
        let listening = rows.first().and_then(|row| row.try_get("listening").ok());
        if had_listened && self.session.listens() && listening == Some(false) {
            self.is_told = false;
        }
        if self.is_told {
            self.session.listen(self.timeout, &channel);
        }
        Ok(())
    }

    /// Reads; again, if something was told meanwhile that the answer may not know of.
    pub(super) fn read_in_line(&mut self, group: &GroupName) -> Result<Reading, StoreError> {
        let mut reading = self.read(group)?;
        for _ in 1..LOOKS {
            if !self.session.rang() {
                break;
            }
            reading = self.read(group)?;
        }
        Ok(reading)
    }
}
