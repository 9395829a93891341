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

mod cells;
mod fault;
mod incarnation;
mod link;
mod login;
mod queue;
pub mod schema;
mod statements;
mod swaps;
mod wire;

#[cfg(test)]
mod played;
#[cfg(test)]
mod swap_tests;
#[cfg(test)]
// Shared with the integration tests, which use more of it.
#[allow(dead_code)]
pub(crate) mod test_server;

use std::time::Duration;

use self::cells::rows;
use self::conninfo::Settings;
use self::conninfo::resolve::resolve;
use self::conninfo::text::parse;
use self::fault::code;
use self::link::{Link, Listener, SOON, code_of, has_no_tables};
use self::statements::{Statements, sql};
use super::net::options::{BadSettings, ProcessEnvironment};
use super::net::session::Failed;
use super::sql::cell::{BadColumn, Cell, Cells, Column, Rows, flag, number, text};
use super::sql::server::{Server, SqlStore, TableStatements, table_statements};
use super::{Advanced, Marks, StoreError};
use crate::token::{Fence, Memory, Recorded, ResourceName, RunRecord, StoreTime};

/// A token store in a database of MySQL or MariaDB.
pub(in crate::store) type MysqlStore = SqlStore<Link, Mysql>;

/// The state of a store that only MySQL has.
pub(in crate::store) struct Mysql {
    statements: Statements,
    /// True if the server has read the procedure of swaps for this session's connection.
    is_prepared: bool,
    /// The name of the lock that this session holds while others wait for its token.
    lock: Option<String>,
    /// True if others waited for the token at the last swap.
    waits: bool,
    /// What a session in the queue listens on.
    listener: Option<Listener>,
    /// After how long it looks again if the holder has not taken the lock.
    looks_again: Duration,
}

/// The settings that a connection string and this process's environment yield. `application` is the
/// connection's name on the server.
///
/// # Errors
/// What is wrong with the string, a variable or a file that belongs to it.
pub fn settings(text: &str, application: &str) -> Result<Settings, BadSettings> {
    resolve(parse(text)?, &ProcessEnvironment, application)
}

impl MysqlStore {
    /// A store that connects at its first request. A call takes at most `timeout`.
    pub(in crate::store) fn new(settings: Settings, timeout: Duration) -> Self {
        let settings = Settings {
            timeout,
            ..settings
        };
        let own = Mysql {
            statements: Statements::default(),
            is_prepared: false,
            lock: None,
            waits: false,
            listener: None,
            looks_again: SOON,
        };
        Self::over(settings, timeout, own)
    }

    /// This store, with another clock than the server's: a table with the time and its clock epoch.
    #[cfg(test)]
    pub(crate) fn with_clock(mut self, table: &str) -> Self {
        self.own.statements = self.own.statements.with_clock(table);
        self
    }
}

impl Server for MysqlStore {
    const TABLES: &'static TableStatements = &table_statements!("mysql");
    const NOTE: &'static [Column] = &[
        text("note"),
        number("note_version"),
        text("server"),
        text("made"),
        text("engine_of_fences"),
        flag("flushes"),
        flag("read_only"),
    ];
    const UNSAID: [&'static str; 2] = [
        "its table tokenrun_meta does not say whom it serves",
        "put a backup back, or name another database with tokenrun_schema",
    ];

    fn ask(
        &mut self,
        limit: Duration,
        statement: &'static str,
        values: &[Cell],
        columns: &[Column],
    ) -> Result<Rows, Failed> {
        let statement = self.own.statements.of(statement, values);
        let answer = self.connection.ask(limit, &*statement)?;
        Ok(rows(&answer, columns))
    }

    fn is_without_tables(failed: &Failed) -> bool {
        has_no_tables(failed)
    }

    fn is_not_allowed(failed: &Failed) -> bool {
        code_of(failed).is_some_and(|it| code::DENIED.contains(&it))
    }

    fn make(&mut self, limit: Duration) -> Result<(), StoreError> {
        self.make_tables(limit)
    }

    fn place(&self) -> String {
        format!("database {:?}", self.connection.settings().database)
    }

    fn table(&self, name: &str) -> String {
        format!("tokenrun_{name}")
    }

    /// The clock epoch is a variable of the session that this connection has set up.
    fn lost_session(&self, bad: &BadColumn) -> Option<StoreError> {
        let error = || {
            let what = "another session of the server has answered than the one that was set up, so a proxy in \
                        between changes sessions";
            self.unusable(what).remedy(
                "let the proxy keep each session on one connection (ProxySQL: transaction_persistent, no rules \
                 for SELECT), or name the servers themselves in the store",
            )
        };
        (bad.column == "epoch").then(error)
    }

    fn memory(&mut self, note: Cells<'_>, now: &StoreTime) -> Result<Memory, StoreError> {
        self.remembered(note, now)
    }

    fn write_run(&mut self, run: &RunRecord) -> Result<Recorded, StoreError> {
        self.record_alone(run)
    }

    /// A holder without waiters needs no connection until its next heartbeat.
    fn rest(&mut self) {
        if self.own.lock.is_none() && self.own.listener.is_none() {
            self.own.is_prepared = false;
            self.connection.close();
        }
    }
}

/// The table of resources: the highest fence that has used each.
impl Marks for MysqlStore {
    fn advance(&mut self, resource: &ResourceName, fence: Fence) -> Result<Advanced, StoreError> {
        let values = [Cell::text(resource), Cell::number(fence.0)];
        let columns = [number("fence")];
        let row = self.first(self.timeout, sql!("advance"), &values, &columns);
        let row = row.map_err(|failed| self.listed(failed))?;
        let mark = Cells::new(&columns, &row).needed(Cells::number);
        let mark = mark.map_err(|bad| self.bad_column("resources", &bad))?;
        // Another client may have raised it since: then this fence is behind too.
        Ok(match mark {
            mark if mark == fence.0 => Advanced::Stored,
            mark => Advanced::Behind(Fence(mark)),
        })
    }
}
