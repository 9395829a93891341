//! The table `waiters`: the queue, and its notifier. A release notifies the channel of its group,
//! in its own statement, if the group has waiters.

use super::PostgresStore;
use super::cells::expiry_values;
use super::statements::sql;
use crate::store::sql::cell::{Cell, flag};
use crate::store::sql::server::Server as _;
use crate::store::sql::waiter;
use crate::store::{Notifier, Queue, Reading, StoreError, Tokens as _};
use crate::token::{GroupName, SessionId, Until, Waiter};

/// How often a look is repeated because a notification came while it was under way.
const LOOKS: u32 = 3;

impl Queue for PostgresStore {
    fn join(
        &mut self,
        group: &GroupName,
        waiter: &Waiter,
        expiry: &Until,
        key: Option<&str>,
    ) -> Result<Reading, StoreError> {
        let channel = self.own.statements.channel(group);
        let mut values = vec![
            Cell::text(group),
            Cell::text(&waiter.session),
            Cell::text(&waiter::document(waiter)),
        ];
        values.extend(expiry_values(expiry));
        values.push(Cell::text(&channel));
        let had_listened = self.connection.listens();
        let answer = self.ask(
            self.timeout,
            sql!("queue_join"),
            &values,
            &[flag("listening")],
        );
        let rows = answer.map_err(|failed| failed.error)?;
        // A subscription that the connection has forgotten was made with another server process: a
        // pooler is in between.
        let forgets = rows.first().is_some_and(|row| row == &[Cell::Flag(false)]);
        if had_listened && self.connection.listens() && forgets {
            self.own.gets_notifications = false;
        }
        if self.own.gets_notifications {
            self.connection.listen(self.timeout, &channel);
        }
        // A notification may come meanwhile that the answer does not include.
        let mut reading = self.look(group, key)?;
        for _ in 1..LOOKS {
            if !self.connection.notified() {
                break;
            }
            reading = self.look(group, key)?;
        }
        Ok(reading)
    }

    fn leave(&mut self, group: &GroupName, session: &SessionId) -> Result<(), StoreError> {
        self.leave_queue(group, session)
    }

    fn notifier(&mut self) -> Option<Notifier> {
        let tells = self.own.gets_notifications && self.connection.listens();
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
