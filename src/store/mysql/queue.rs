//! The table of waiters: the queue, and its notifier.
//!
//! The notifier is a lock by name, which ends with the session that holds it.
//!
//! A holder whose heartbeat finds waiters takes the lock, and gives it up in the packet of the swap that
//! ends its run; if it dies, the server does. A waiter asks for the lock on another connection, for a second
//! at a time, and gives it up in the same statement: so all waiters are notified at once. A waiter that finds
//! the lock free looks again soon, and then less and less often: the holder may be about to take it. A holder
//! without waiters keeps no connection between two heartbeats, nor the one on which it has waited.

use std::time::Duration;

use super::MysqlStore;
use super::cells::first_flag;
use super::link::{Listener, SOON};
use super::statements::sql;
use super::swaps::expiry_values;
use crate::store::sql::cell::Cell;
use crate::store::sql::waiter::{self, channel};
use crate::store::{Notifier, Queue, Reading, StoreError, Tokens as _};
use crate::token::{GroupName, SessionId, StampOf, Swap, Until, Waiter};

/// How long a waiter asks for the lock at a time, in seconds: what a dead one has asked for is soon gone.
const LISTENS_S: u32 = 1;

/// The longest pause of a waiter that finds the lock free.
const LATEST: Duration = Duration::from_millis(250);

/// How long a waiter may take to begin to listen.
const LIMIT: Duration = Duration::from_millis(500);

/// The name of a group's lock.
pub(super) fn name(database: &str, group: &GroupName) -> String {
    channel((database.bytes().chain([0])).chain(group.as_str().bytes()))
}

fn listening(name: &str) -> String {
    format!("SELECT GET_LOCK('{name}', {LISTENS_S}), RELEASE_LOCK('{name}')")
}

impl MysqlStore {
    fn lock_of(&self, group: &GroupName) -> String {
        name(&self.connection.settings().database, group)
    }

    /// What a swap does besides: when the token is no longer held, the lock is given up.
    pub(super) fn giving_up(&mut self, holds: bool) -> Option<String> {
        if holds {
            return None;
        }
        let name = self.own.lock.take()?;
        Some(format!("DO RELEASE_LOCK('{name}')"))
    }

    /// After a swap. A session that has got the token, or goes on to hold it, waits no longer, and takes the lock if others
    /// wait.
    pub(super) fn held_on(&mut self, swap: &Swap) {
        let is_heartbeat = swap.stamp == Some(StampOf::Heartbeat);
        if !is_heartbeat && swap.stamp != Some(StampOf::Granted) {
            return;
        }
        let limit = LIMIT.min(self.timeout);
        if let Some(listener) = self.own.listener.take() {
            self.connection.end_aside(limit, listener.link);
        }
        if self.own.waits {
            let name = self.lock_of(swap.group());
            // It ends with the session, so it is asked for again after each new one.
            let ask = format!(
                "SELECT IF(IS_USED_LOCK('{name}') <=> CONNECTION_ID(), 1, GET_LOCK('{name}', 0))"
            );
            let got = self.connection.ask(limit, &ask);
            let got = got.ok().and_then(|answer| first_flag(&answer));
            self.own.lock = (got == Some(true)).then_some(name);
        } else if is_heartbeat {
            self.own.lock = None;
            self.connection.close();
        }
    }

    /// Listens for the end of the run that this session waits for; if its holder has not taken the lock, for the
    /// end of a pause.
    pub(super) fn listen(&mut self, group: &GroupName) {
        if self
            .own
            .listener
            .as_ref()
            .is_some_and(|listener| listener.is_armed)
        {
            return;
        }
        let name = self.lock_of(group);
        let limit = LIMIT.min(self.timeout);
        let used = format!("SELECT IS_USED_LOCK('{name}') IS NOT NULL");
        let used = self.connection.ask(limit, &used).ok();
        let statement = match used.and_then(|answer| first_flag(&answer)) {
            Some(true) => {
                self.own.looks_again = SOON;
                listening(&name)
            }
            Some(false) => {
                let pause = self.own.looks_again;
                self.own.looks_again = pause.saturating_mul(2).min(LATEST);
                format!("SELECT SLEEP({})", pause.as_secs_f64())
            }
            None => return,
        };
        let link = self.own.listener.take().map(|listener| listener.link);
        let link = self.connection.ask_aside(limit, link, &statement);
        self.own.listener = link.map(|link| Listener {
            link,
            is_armed: true,
        });
    }

    /// Clears a notification, if there is one. True if it says that the holder has given its lock up.
    pub(super) fn clear_notification(&mut self) -> bool {
        let Some(mut listener) = self.own.listener.take() else {
            return false;
        };
        let mut is_given_up = false;
        if listener.is_armed && !listener.link.is_silent() {
            listener.is_armed = false;
            let limit = LIMIT.min(self.timeout);
            let Some(answer) = self.connection.receive_aside(limit, &mut listener.link) else {
                return false;
            };
            is_given_up = first_flag(&answer) == Some(true);
        }
        self.own.listener = Some(listener);
        is_given_up
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
        self.own.listener.as_ref()?.socket().map(Notifier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_of_each_database_has_a_lock_whose_name_fits() {
        let group = |name: &str| GroupName::new(name).unwrap();
        let long = name(&"d".repeat(64), &group(&"ä".repeat(200)));
        assert!(long.len() <= 64, "{long}");
        assert_ne!(name("d", &group("a")), name("d", &group("b")));
        assert_ne!(name("d", &group("a")), name("e", &group("a")));
        assert_ne!(name("da", &group("b")), name("d", &group("ab")));
    }
}
