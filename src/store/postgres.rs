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

mod call;
mod cells;
mod fault;
mod handshake;
mod incarnation;
mod link;
mod queue;
mod statements;
mod swaps;

#[cfg(test)]
mod endless_tests;
#[cfg(test)]
mod incarnation_tests;
#[cfg(test)]
mod played;
#[cfg(test)]
mod prune_tests;
#[cfg(test)]
mod swap_tests;
#[cfg(test)]
// Shared with the integration tests, which use more of it.
#[allow(dead_code)]
pub(crate) mod test_server;

use std::time::{Duration, Instant};

use tokio_postgres::error::SqlState;

use self::call::Question;
use self::cells::cells;
use self::conninfo::Settings;
use self::conninfo::resolve::resolve;
use self::conninfo::text::parse;
use self::link::{Link, has_no_tables, is};
pub(in crate::store) use self::statements::creation;
use self::statements::{Statements, sql};
use super::net::options::{BadSettings, ProcessEnvironment};
use super::net::session::Failed;
use super::sql::cell::{Cell, Cells, Column, Rows, flag, number, text};
use super::sql::server::{Server, SqlStore, TableStatements, check, table_statements};
use super::{Advanced, Marks, StoreError};
use crate::token::{Fence, Memory, Recorded, ResourceName, RunRecord, StoreTime};

/// A token store in a PostgreSQL database.
pub(in crate::store) type PostgresStore = SqlStore<Link, Postgres>;

/// The state of a store that only PostgreSQL has.
pub(in crate::store) struct Postgres {
    statements: Statements,
    /// True if notifications arrive: they do not behind a pooler that changes the server process
    /// under this connection.
    gets_notifications: bool,
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
    pub(in crate::store) fn new(settings: Settings, timeout: Duration) -> Self {
        let own = Postgres {
            statements: Statements::new(&settings.schema),
            gets_notifications: true,
        };
        Self::over(settings, timeout, own)
    }

    /// This store, with another clock than the server's: a statement for the time and its clock
    /// epoch.
    #[cfg(test)]
    pub(crate) fn with_clock(mut self, clock: &str) -> Self {
        self.own.statements = self.own.statements.with_clock(clock);
        self
    }
}

impl Server for PostgresStore {
    const TABLES: &'static TableStatements = &table_statements!("postgres");
    const NOTE: &'static [Column] = &[
        text("note"),
        number("note_version"),
        text("written_by"),
        text("row_written_by"),
        text("database"),
        flag("durable"),
        flag("logged"),
    ];
    const UNSAID: [&'static str; 2] = [
        "its table meta does not say which programs it is for",
        "put a backup back, or name another schema with tokenrun_schema",
    ];

    fn ask(
        &mut self,
        limit: Duration,
        statement: &'static str,
        values: &[Cell],
        columns: &[Column],
    ) -> Result<Rows, Failed> {
        let statement = self.own.statements.of(statement);
        let question = Question::Typed(&statement, values);
        let rows = self.connection.ask(limit, &question)?;
        let rows = rows.into_iter().map(|row| cells(&row, columns));
        Ok(rows.collect())
    }

    fn is_without_tables(failed: &Failed) -> bool {
        has_no_tables(failed)
    }

    fn is_not_allowed(failed: &Failed) -> bool {
        is(failed, &SqlState::INSUFFICIENT_PRIVILEGE)
    }

    fn make(&mut self, limit: Duration) -> Result<(), StoreError> {
        let begun = Instant::now();
        let columns = [text("version"), text("oldest_reader")];
        match self.ask(limit, sql!("schema_version"), &[], &columns) {
            Ok(rows) => {
                let row = rows.first().map(Vec::as_slice).unwrap_or_default();
                let oldest = Cells::new(&columns, row).after(1).text();
                check::<Self>(self.connection.store_name(), oldest.ok().flatten())
            }
            Err(failed) if has_no_tables(&failed) => {
                self.create(limit.saturating_sub(begun.elapsed()))
            }
            Err(failed) => Err(failed.error),
        }
    }

    fn place(&self) -> String {
        format!("schema {:?}", self.connection.settings().schema)
    }

    fn table(&self, name: &str) -> String {
        format!("{}.{name}", self.connection.settings().schema)
    }

    fn memory(&mut self, note: Cells<'_>, now: &StoreTime) -> Result<Memory, StoreError> {
        self.remembered(note, now)
    }

    /// A crash would empty a table that is not logged, and forget every grant.
    fn refuses(&self, note: Cells<'_>) -> Option<StoreError> {
        let is_logged = note.after(Self::NOTE.len() - 1).flag();
        let error = || {
            let what =
                "its table tokens is not logged, so a crash of the server would forget every grant";
            self.unusable(what).remedy("ALTER TABLE tokens SET LOGGED")
        };
        (is_logged != Ok(true)).then(error)
    }

    fn write_run(&mut self, run: &RunRecord) -> Result<Recorded, StoreError> {
        self.record_alone(run)
    }
}

impl PostgresStore {
    fn create(&mut self, limit: Duration) -> Result<(), StoreError> {
        let statements = &self.own.statements;
        let batch = statements.fill(sql!("schema_create")) + &statements.of(sql!("schema"));
        match self.connection.batch(limit, &batch) {
            Ok(()) => Ok(()),
            // Another client was quicker: the lock made this one wait for it.
            Err(failed) if is(&failed, &SqlState::DUPLICATE_TABLE) => Ok(()),
            Err(failed) => Err(self.not_made(failed, "role")),
        }
    }
}

/// The table `resources`: the highest fence that has used each.
impl Marks for PostgresStore {
    fn advance(&mut self, resource: &ResourceName, fence: Fence) -> Result<Advanced, StoreError> {
        let begun = Instant::now();
        let values = [Cell::text(resource), Cell::number(fence.0)];
        let row = self.first(self.timeout, sql!("advance"), &values, &[flag("stored")]);
        if row.map_err(|failed| self.listed(failed))? == [Cell::Flag(true)] {
            return Ok(Advanced::Stored);
        }
        // Another client may have raised it while the statement ran.
        let left = self.timeout.saturating_sub(begun.elapsed());
        let columns = [number("fence")];
        let row = self.first(left, sql!("mark"), &[Cell::text(resource)], &columns);
        let row = row.map_err(|failed| failed.error)?;
        let mark = Cells::new(&columns, &row).needed(Cells::number);
        let mark = mark.map_err(|_| self.no_answer())?;
        Ok(Advanced::Behind(Fence(mark)))
    }
}
