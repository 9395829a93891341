//! PostgreSQL: tokens for many hosts.
//!
//! A swap is one statement and one round trip, in a transaction that carries its own limits. The
//! statement is unnamed, so that it works through a pooler that changes the server process, and
//! needs no session state. It never waits for a row's lock: a row that another transaction has
//! locked is not found; the swap is retried for a moment, then reported as held. The statement
//! checks its own expiry by the server's clock, and sets its own durability. It returns a row if it
//! was carried out; if not, another statement finds the reason.
//!
//! The clock is `clock_timestamp()`, in milliseconds. The clock epoch is the server process's start
//! and the timeline, so that no stamp is compared across a restart or a failover. A standby reports
//! no clock epoch, and counts as a server that can't be used.
//!
//! The blocking interface of rust-postgres can neither bound a call nor close the socket under it.
//! So this store uses the async interface, on its own event loop, with a time-out around every
//! step.

pub mod conninfo;
pub mod examine;
pub mod schema;

mod call;
mod cells;
mod clock_epoch;
mod fault;
mod incarnation;
mod link;
mod marks;
mod prune;
mod queue;
mod records;
mod statements;
mod swaps;
mod tls;
mod tokens;

#[cfg(test)]
mod endless_tests;
#[cfg(test)]
mod incarnation_tests;
#[cfg(test)]
mod swap_tests;
#[cfg(test)]
// Shared with the integration tests, which use more of it.
#[allow(dead_code)]
pub(crate) mod test_server;

use std::sync::Arc;
use std::time::{Duration, Instant};

use self::cells::Cells;
use self::conninfo::resolve::resolve;
use self::conninfo::settings::Settings;
use self::conninfo::text::parse;
use self::link::{Answered as _, Session};
use self::statements::Statements;
use super::net::host::Settings as _;
use super::net::lookout::OtherServers;
use super::net::options::{BadSettings, ProcessEnvironment};
use super::net::session::Failed;
use super::sql::cell::BadColumn;
use super::{Lookout, Store, StoreError, first_look};
use crate::token::StoreTime;

/// A token store in a PostgreSQL database.
pub struct PostgresStore {
    connection: Session,
    statements: Statements,
    schema: String,
    timeout: Duration,
    /// Whether notifications arrive: they do not behind a pooler that changes the server process
    /// under this connection.
    gets_notifications: bool,
    /// Whether the tables are known to serve this program. Checked once: a holder goes on, whatever
    /// happens to the tables meanwhile.
    checked: bool,
    /// The last list failed because the tables do not exist.
    lacks_tables: bool,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore")
            .field("name", &self.connection.store_name())
            .finish_non_exhaustive()
    }
}

/// The settings that a connection string and this process's environment yield. `application` is the
/// connection's name on the server, unless the user gives another.
///
/// # Errors
/// What is wrong with the string, a variable or a file that belongs to it.
pub fn settings(text: &str, application: &str) -> Result<Settings, BadSettings> {
    resolve(parse(text)?, &ProcessEnvironment, application)
}

impl PostgresStore {
    /// A store that connects at its first request. A call takes at most `timeout`.
    #[must_use]
    pub fn new(settings: Settings, timeout: Duration) -> Self {
        let schema = settings.schema.clone();
        Self {
            statements: Statements::new(&schema),
            schema,
            connection: Session::new(settings),
            timeout,
            gets_notifications: true,
            checked: false,
            lacks_tables: false,
        }
    }

    /// The same, with another clock than the server's: a statement for the time and its clock
    /// epoch.
    #[cfg(test)]
    pub(crate) fn with_clock(mut self, clock: &str) -> Self {
        self.statements = self.statements.with_clock(clock);
        self
    }

    /// Makes the tables if they do not exist.
    ///
    /// # Errors
    /// If the server is unusable, or the role may not make them.
    pub fn init(&mut self) -> Result<(), StoreError> {
        self.init_within(self.timeout)
    }

    fn init_within(&mut self, limit: Duration) -> Result<(), StoreError> {
        first_look::check_time(limit, self.name())?;
        let begun = Instant::now();
        let statement = self.statements.schema_version();
        let found = self.connection.query(limit, &statement, &[]);
        let left = limit.saturating_sub(begun.elapsed());
        match found {
            Ok(rows) => {
                let oldest = rows.first().and_then(|row| row.try_get(1).ok()).flatten();
                schema::check(self.connection.store_name(), oldest)
            }
            Err(failed) if failed.has_no_tables() => self.make_tables(left),
            Err(failed) => Err(failed.error),
        }
    }

    fn make_tables(&mut self, limit: Duration) -> Result<(), StoreError> {
        schema::make(&mut self.connection, &self.statements, &self.schema, limit)
    }

    fn bad_column(&self, table: &str, bad: &BadColumn) -> StoreError {
        StoreError::misconfigured(format!(
            "the store {} can't be used: in the table {}.{table}, {} {}",
            self.connection.store_name(),
            self.schema,
            bad.column,
            bad.what
        ))
        .remedy("correct it there")
    }

    /// The server's time, from the first three columns of an answer.
    fn now(&self, row: &tokio_postgres::Row) -> Result<StoreTime, StoreError> {
        let time = Cells::new(row, 0).now();
        time.map_err(|bad| self.bad_column("tokens", &bad))
    }

    fn no_answer(&self) -> StoreError {
        StoreError::unavailable(format!(
            "the store {} gave an empty answer",
            self.connection.store_name()
        ))
    }

    /// Handles a failed list: without tables the list is empty.
    fn listed(&self, failed: Failed) -> StoreError {
        if failed.has_no_tables() {
            return StoreError::misconfigured(format!(
                "there is no store in the schema {:?} of {}: nothing has run with it yet, or --store \
                 names another",
                self.schema,
                self.connection.store_name()
            ));
        }
        failed.error
    }
}

impl Store for PostgresStore {
    fn name(&self) -> &str {
        self.connection.store_name()
    }

    fn limit_of_near(&mut self) -> Option<&mut Duration> {
        let is_near = self.connection.settings().is_near();
        is_near.then_some(&mut self.timeout)
    }

    fn lookout(&self) -> Option<Arc<dyn Lookout>> {
        let settings = self.connection.settings();
        let others = OtherServers::of(settings, self.connection.in_use(), self.timeout)?;
        Some(Arc::new(others))
    }
}
