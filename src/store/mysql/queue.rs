//! The table of waiters: the queue. Its notifier is in [`super::bell`].

use super::MysqlStore;
use super::statements::sql;
use super::swaps::expiry_values;
use crate::store::sql::cell::Cell;
use crate::store::sql::waiter;
use crate::store::{Notifier, Queue, Reading, StoreError, Tokens as _};
use crate::token::{GroupName, SessionId, Until, Waiter};

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
        self.tell(sql!("queue_join"), &values)?;
        self.prepare();
        // Before the read, which then shows what was not heard.
        self.listen(group);
        self.look(group, key)
    }

    fn leave(&mut self, group: &GroupName, session: &SessionId) -> Result<(), StoreError> {
        self.leave_queue(group, session)
    }

    fn notifier(&mut self) -> Option<Notifier> {
        self.own.bell.as_ref()?.socket().map(Notifier)
    }
}
