//! The table of waiters: the queue. Its notifier is in [`super::bell`].

use super::MysqlStore;
use super::cells::{AFTER_TOKEN, Cells};
use super::statements::sql;
use super::tokens::expiry_values;
use super::wire::Answer;
use crate::store::sql::cell::{BadColumn, Cell};
use crate::store::sql::waiter;
use crate::store::{Listing, Notifier, Queue, Reading, StoreError, Tokens as _};
use crate::token::{GroupName, QueueEntry, SessionId, Until, Waiter};

fn entry(c: &mut Cells<'_>) -> Result<Option<QueueEntry>, BadColumn> {
    let Some(number) = c.number()? else {
        return Ok(None);
    };
    let session = c.needed_text()?;
    let seen = c.time()?;
    waiter::entry(number, session, seen, c.needed_text()?).map(Some)
}

fn in_list(c: &mut Cells<'_>) -> Result<(GroupName, QueueEntry), BadColumn> {
    let group = GroupName::new(c.needed_text()?).map_err(|why| c.bad(why))?;
    let entry = entry(c)?.ok_or_else(|| c.bad("is NULL"))?;
    Ok((group, entry))
}

impl MysqlStore {
    /// The waiters in an answer of `read.sql`.
    pub(super) fn queue_in_reading(&self, answer: &Answer) -> Result<Vec<QueueEntry>, StoreError> {
        let entries = answer.rows.iter().filter_map(|row| {
            let entry = entry(&mut Cells::new(answer, row, AFTER_TOKEN));
            entry.transpose()
        });
        let entries = entries.collect::<Result<Vec<_>, _>>();
        let mut entries = entries.map_err(|bad| self.bad_column("tokenrun_waiters", &bad))?;
        entries.sort_by_key(|entry| entry.number);
        Ok(entries)
    }

    /// Puts all waiters into a list.
    pub(super) fn list_queues(&mut self, listing: &mut Listing) -> Result<(), StoreError> {
        let answer = self.connection.ask(self.timeout, sql!("queues"));
        let answer = answer.map_err(|failed| failed.error)?;
        let waiters = answer.rows.iter().map(|row| {
            let found = in_list(&mut Cells::new(&answer, row, 0));
            let found = found.map_err(|bad| self.bad_column("tokenrun_waiters", &bad));
            (Cells::new(&answer, row, 0).group(), found)
        });
        waiter::list(waiters, listing);
        Ok(())
    }
}

impl Queue for MysqlStore {
    fn join(
        &mut self,
        group: &GroupName,
        waiter: &Waiter,
        expiry: &Until,
        key: Option<&str>,
    ) -> Result<Reading, StoreError> {
        let [expires, epoch] = expiry_values(expiry);
        let values = [
            Cell::text(group),
            Cell::text(&waiter.session),
            Cell::text(&waiter::document(waiter)),
            expires,
            epoch,
        ];
        let statement = self.statements.of(sql!("queue_join"), &values);
        let joined = self.connection.ask(self.timeout, &statement);
        joined.map_err(|failed| failed.error)?;
        self.prepare();
        // Before the read, which then shows what was not heard.
        self.listen(group);
        self.look(group, key)
    }

    fn leave(&mut self, group: &GroupName, session: &SessionId) -> Result<(), StoreError> {
        let values = [Cell::text(group), Cell::text(session)];
        let statement = self.statements.of(sql!("queue_leave"), &values);
        let left = self.connection.ask(self.timeout, &statement);
        left.map(drop).map_err(|failed| failed.error)
    }

    fn notifier(&mut self) -> Option<Notifier> {
        self.bell.as_ref()?.socket().map(Notifier)
    }
}
