//! MySQL and MariaDB: tokens for many hosts.
//!
//! A swap is one call of a procedure and one round trip: everything from the lock to the commit happens
//! in the server, so that no client can stop in between, and an error ends the transaction. It never
//! waits for a token's row: a row that another transaction has locked is skipped; the swap is retried
//! for a moment, then reported as held. It checks its own expiry by the server's clock, and answers what
//! has happened.
//!
//! The clock is `SYSDATE(6)` in UTC, in milliseconds: `NOW()` is the time of the statement's start. The
//! clock epoch is the server's start, its id, its name and its port, so that no stamp is compared across
//! a restart or a failover. It is found when the session is set up and stays in a variable of the
//! session, which ends with the server: so each statement compares it at no cost. A server that accepts
//! no writes counts as one that can't be used.
//!
//! The packets are those of `mysql_common`, the protocol of the mysql_async driver. The connection is the
//! store's own: the driver would send a password over a plain connection, encrypted with a key that the
//! connection itself supplied, and gives no access to the socket.

pub mod conninfo;
pub mod examine;
pub mod settings;

mod bell;
mod cells;
mod fault;
mod incarnation;
mod link;
mod listener;
mod login;
mod marks;
mod prune;
mod queue;
mod records;
pub mod schema;
mod statements;
mod swaps;
mod tokens;
mod wire;

#[cfg(test)]
// Shared with the integration tests, which use more of it.
#[allow(dead_code)]
pub(crate) mod test_server;

use std::sync::Arc;
use std::time::{Duration, Instant};

use self::conninfo::resolve::resolve;
use self::conninfo::text::parse;
use self::link::{Missing as _, Session};
use self::listener::{Listener, SOON};
use self::schema::Found;
use self::settings::Settings;
use self::statements::Statements;
use super::net::host::Settings as _;
use super::net::lookout::OtherServers;
use super::net::options::{BadSettings, ProcessEnvironment};
use super::net::session::Failed;
use super::sql::cell::BadColumn;
use super::{Lookout, Store, StoreError, first_look};

/// A token store in a database of MySQL or MariaDB.
pub struct MysqlStore {
    connection: Session,
    statements: Statements,
    timeout: Duration,
    /// Whether the tables are known to serve this program. Checked once: a holder goes on, whatever
    /// happens to the tables meanwhile.
    checked: bool,
    /// The last list failed because the tables do not exist.
    lacks_tables: bool,
    /// Whether the server has read the procedure of swaps for this session's connection.
    is_prepared: bool,
    /// The name of the lock that this session holds while others wait for its token.
    rings: Option<String>,
    /// Whether others waited for the token at the last swap.
    waits: bool,
    /// What a session in the queue listens on.
    bell: Option<Listener>,
    /// After how long it looks again if the holder has not taken the lock.
    looks_again: Duration,
}

impl std::fmt::Debug for MysqlStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MysqlStore")
            .field("name", &self.connection.store_name())
            .finish_non_exhaustive()
    }
}

/// The settings that a connection string and this process's environment yield. `application` is the
/// connection's name on the server.
///
/// # Errors
/// What is wrong with the string, a variable or a file that belongs to it.
pub fn settings(text: &str, application: &str) -> Result<Settings, BadSettings> {
    resolve(&parse(text)?, &ProcessEnvironment, application)
}

impl MysqlStore {
    /// A store that connects at its first request. A call takes at most `timeout`.
    #[must_use]
    pub fn new(settings: Settings, timeout: Duration) -> Self {
        let settings = Settings {
            timeout,
            ..settings
        };
        Self {
            connection: Session::new(settings),
            statements: Statements::default(),
            timeout,
            checked: false,
            lacks_tables: false,
            is_prepared: false,
            rings: None,
            waits: false,
            bell: None,
            looks_again: SOON,
        }
    }

    /// The same, with another clock than the server's: a table with the time and its clock epoch.
    #[cfg(test)]
    pub(crate) fn with_clock(mut self, table: &str) -> Self {
        self.statements = self.statements.with_clock(table);
        self
    }

    /// Makes the tables if they do not exist.
    ///
    /// # Errors
    /// If the server is unusable, or the user may not make them.
    pub fn init(&mut self) -> Result<(), StoreError> {
        self.init_within(self.timeout)
    }

    fn init_within(&mut self, limit: Duration) -> Result<(), StoreError> {
        first_look::check_time(limit, self.name())?;
        let begun = Instant::now();
        let found = schema::look(&mut self.connection, limit);
        match found.map_err(|failed| failed.error)? {
            Found::Complete(oldest) => {
                schema::check(self.connection.store_name(), oldest.as_deref())
            }
            Found::Missing | Found::NoProcedures(_) => {
                let left = limit.saturating_sub(begun.elapsed());
                schema::make(&mut self.connection, &self.statements, left)
            }
        }
    }

    fn bad_column(&self, table: &str, bad: &BadColumn) -> StoreError {
        StoreError::misconfigured(format!(
            "the store {} can't be used: in the table {table}, {} {}",
            self.connection.store_name(),
            bad.column,
            bad.what
        ))
        .remedy("correct it there")
    }

    fn no_answer(&self) -> StoreError {
        StoreError::unavailable(format!(
            "the store {} gave an empty answer",
            self.connection.store_name()
        ))
    }

    fn no_store(&self) -> StoreError {
        StoreError::misconfigured(format!(
            "there is no store in the database {:?} of {}: nothing has run with it yet, or --store \
             names another",
            self.connection.settings().database,
            self.connection.store_name()
        ))
    }

    /// Handles a failed list: without tables the list is empty.
    fn listed(&self, failed: Failed) -> StoreError {
        if failed.has_no_tables() {
            return self.no_store();
        }
        failed.error
    }
}

impl Store for MysqlStore {
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

    /// A holder without waiters needs no connection until its next heartbeat.
    fn idle(&mut self) {
        if self.rings.is_none() && self.bell.is_none() {
            self.is_prepared = false;
            self.connection.close();
        }
    }
}
