//! The table `waiters`: the queue, and its notifier. A release notifies the channel of its group,
//! in its own statement, if the group has waiters.

use tokio_postgres::Row;

use super::PostgresStore;
use super::cells::{COUNT, Cells, IN_ANSWER};
use super::clock_epoch::expiry_values;
use super::statements::sql;
use crate::store::sql::cell::{BadColumn, Cell};
use crate::store::sql::waiter;
use crate::store::{Listing, Notifier, Queue, Reading, StoreError, Tokens as _};
use crate::token::{GroupName, QueueEntry, SessionId, Until, Waiter};

/// How often a look is repeated because a notification came while it was under way.
const LOOKS: u32 = 3;

/// Where the waiter begins in an answer of `read.sql`: after the time, the oldest reader, and the
/// token's columns.
const IN_READING: usize = IN_ANSWER + COUNT;

/// Where an answer of `read.sql` goes on after the waiter.
pub(super) const AFTER_READING: usize = IN_READING + 5;

/// The waiter in a row of `read.sql`, if there is one.
pub(super) fn in_reading(row: &Row) -> Result<Option<QueueEntry>, BadColumn> {
    let c = &mut Cells::new(row, IN_READING);
    match c.cell()? {
        None => Ok(None),
        Some(number) => queue_entry(number, c).map(Some),
    }
}

/// A row of `queues.sql`.
fn in_list(row: &Row) -> Result<(GroupName, QueueEntry), BadColumn> {
    let c = &mut Cells::new(row, 0);
    let group = GroupName::new(c.needed()?).map_err(|why| c.bad(why))?;
    let number = c.needed()?;
    Ok((group, queue_entry(number, c)?))
}

fn queue_entry(number: i64, c: &mut Cells<'_>) -> Result<QueueEntry, BadColumn> {
    let session = c.needed()?;
    let seen = c.time()?;
    waiter::entry(number, session, seen, c.needed()?)
}

impl PostgresStore {
    /// The waiters in an answer's rows.
    pub(super) fn queue(
        &self,
        rows: &[Row],
        entry: impl Fn(&Row) -> Result<Option<QueueEntry>, BadColumn>,
    ) -> Result<Vec<QueueEntry>, StoreError> {
        let entries = rows.iter().filter_map(|row| entry(row).transpose());
        let entries = entries.map(|entry| entry.map_err(|bad| self.bad_column("waiters", &bad)));
        let mut entries: Vec<QueueEntry> = entries.collect::<Result<_, _>>()?;
        entries.sort_by_key(|entry| entry.number);
        Ok(entries)
    }

    /// Puts all waiters into a list.
    pub(super) fn list_queues(&mut self, listing: &mut Listing) -> Result<(), StoreError> {
        let rows = self.connection.query(self.timeout, sql!("queues"), &[]);
        let rows = rows.map_err(|failed| failed.error)?;
        let waiters = rows.iter().map(|row| {
            let found = in_list(row).map_err(|bad| self.bad_column("waiters", &bad));
            let group = row.try_get("token_group").unwrap_or("?").to_owned();
            (group, found)
        });
        waiter::list(waiters, listing);
        Ok(())
    }

    /// Joins the queue, or stays in it, and gets notifications of releases from then on.
    pub(super) fn join_queue(
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
        let had_listened = self.connection.listens();
        let statement = self.statements.of(sql!("queue_join"));
        let answer = self.connection.query(self.timeout, &statement, &values);
        let rows = answer.map_err(|failed| failed.error)?;
        // A subscription that the connection has forgotten was made with another server process: a
        // pooler is in between.
        let listening = rows.first().and_then(|row| row.try_get("listening").ok());
        if had_listened && self.connection.listens() && listening == Some(false) {
            self.gets_notifications = false;
        }
        if self.gets_notifications {
            self.connection.listen(self.timeout, &channel);
        }
        Ok(())
    }

    /// Looks; again, if a notification came meanwhile that the answer may not include.
    pub(super) fn look_in_queue(
        &mut self,
        group: &GroupName,
        key: Option<&str>,
    ) -> Result<Reading, StoreError> {
        let mut reading = self.look(group, key)?;
        for _ in 1..LOOKS {
            if !self.connection.notified() {
                break;
            }
            reading = self.look(group, key)?;
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
        key: Option<&str>,
    ) -> Result<Reading, StoreError> {
        self.join_queue(group, waiter, expiry)?;
        self.look_in_queue(group, key)
    }

    fn leave(&mut self, group: &GroupName, session: &SessionId) -> Result<(), StoreError> {
        let values = [Cell::text(group), Cell::text(session)];
        let left = self
            .connection
            .query(self.timeout, sql!("queue_leave"), &values);
        left.map(|_| ()).map_err(|failed| failed.error)
    }

    fn notifier(&mut self) -> Option<Notifier> {
        let tells = self.gets_notifications && self.connection.listens();
        self.connection.socket().filter(|_| tells).map(Notifier)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::postgres::settings;
    use crate::store::postgres::test_server::Server;

    #[test]
    fn a_malformed_waiter_hides_no_other_in_the_list() {
        let database = Server::shared().database();
        let settings = settings(&database.url(), "test").unwrap();
        let mut store = PostgresStore::new(settings, Duration::from_secs(10));
        store.init().unwrap();
        let document = r#"{"client": "a"}"#;
        for (group, document) in [("bad", "{}"), ("fine", document), ("bad", "7")] {
            database.sql(&format!(
                "INSERT INTO tokenrun.waiters (token_group, session, seen_at, clock_epoch, document)
                    VALUES ('{group}', 's{}', now(), 'x', '{document}')",
                document.len()
            ));
        }
        let listing = store.list().unwrap();
        let unreadable: Vec<_> = listing.unreadable.iter().map(|it| &*it.group).collect();
        assert_eq!(unreadable, ["bad"]);
        let waiting: Vec<_> = listing.queues.iter().map(|it| it.0.as_str()).collect();
        assert_eq!(waiting, ["fine"]);
    }
}
