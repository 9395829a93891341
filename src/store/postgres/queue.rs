//! The table `waiters`: who is in line, and what wakes them. A release tells the channel
//! of its group, in its own statement, if somebody waits.

use tokio_postgres::Row;

use super::PostgresStore;
use super::cells::{COUNT, Cells, IN_ANSWER};
use super::clock_epoch::expiry_values;
use super::statements::sql;
use crate::store::sql::cell::{BadColumn, Cell};
use crate::store::sql::waiter;
use crate::store::{Bell, Queue, Reading, StoreError, Tokens as _};
use crate::token::{GroupName, Place, SessionId, Until, Waiter};

/// How often a look is repeated because something was told while it was under way.
const LOOKS: u32 = 3;

/// Where the place begins in an answer of `read.sql`: after the time, the oldest reader, and the
/// token's columns.
const IN_READING: usize = IN_ANSWER + COUNT;

/// Where an answer of `read.sql` goes on behind the place.
pub(super) const AFTER_READING: usize = IN_READING + 5;

/// The place in a row of `read.sql`, if there is one.
pub(super) fn in_reading(row: &Row) -> Result<Option<Place>, BadColumn> {
    let c = &mut Cells::new(row, IN_READING);
    match c.cell()? {
        None => Ok(None),
        Some(number) => place(number, c).map(Some),
    }
}

/// A row of `queues.sql`.
fn in_list(row: &Row) -> Result<(GroupName, Place), BadColumn> {
    let c = &mut Cells::new(row, 0);
    let group = GroupName::new(c.needed()?).map_err(|why| c.bad(why))?;
    let number = c.needed()?;
    Ok((group, place(number, c)?))
}

fn place(number: i64, c: &mut Cells<'_>) -> Result<Place, BadColumn> {
    let session = c.needed()?;
    let seen = c.time()?;
    waiter::place(number, session, seen, c.needed()?)
}

impl PostgresStore {
    /// Those in line, by what an answer's rows say.
    pub(super) fn line(
        &self,
        rows: &[Row],
        place: impl Fn(&Row) -> Result<Option<Place>, BadColumn>,
    ) -> Result<Vec<Place>, StoreError> {
        let places = rows.iter().filter_map(|row| place(row).transpose());
        let places = places.map(|place| place.map_err(|bad| self.bad_column("waiters", &bad)));
        let mut places: Vec<Place> = places.collect::<Result<_, _>>()?;
        places.sort_by_key(|place| place.number);
        Ok(places)
    }

    /// Everybody in line, by group.
    pub(super) fn lines(&mut self) -> Result<Vec<(GroupName, Place)>, StoreError> {
        let rows = self.session.ask(self.timeout, sql!("queues"), &[]);
        let rows = rows.map_err(|failed| failed.error)?;
        rows.iter()
            .map(|row| in_list(row).map_err(|bad| self.bad_column("waiters", &bad)))
            .collect()
    }

    /// Gets into the line, or stays in it, and hears of releases from then on.
    pub(super) fn get_into_line(
        &mut self,
        group: &GroupName,
        waiter: &Waiter,
        expiry: &Until,
    ) -> Result<(), StoreError> {
        let channel = self.statements.channel(group.as_str());
        let [expires, started, timeline, epoch] = expiry_values(expiry);
        let values = [
            Cell::text(group),
            Cell::text(&waiter.session),
            Cell::text(&waiter::document(waiter)),
            expires,
            started,
            timeline,
            epoch,
            Cell::text(&channel),
        ];
        let had_listened = self.session.listens();
        let statement = self.statements.of(sql!("queue_join"));
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

impl Queue for PostgresStore {
    fn join(
        &mut self,
        group: &GroupName,
        waiter: &Waiter,
        expiry: &Until,
    ) -> Result<Reading, StoreError> {
        self.get_into_line(group, waiter, expiry)?;
        self.read_in_line(group)
    }

    fn leave(&mut self, group: &GroupName, session: &SessionId) -> Result<(), StoreError> {
        let values = [Cell::text(group), Cell::text(session)];
        let left = self.session.ask(self.timeout, sql!("queue_leave"), &values);
        left.map(|_| ()).map_err(|failed| failed.error)
    }

    fn bell(&mut self) -> Option<Bell> {
        let tells = self.is_told && self.session.listens();
        self.session.socket().filter(|_| tells).map(Bell)
    }
}
