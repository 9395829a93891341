//! A store in a database on a server: what PostgreSQL and MySQL have in common.
//!
//! Each call is one statement and one round trip. The reading of tokens, the queue, the records and pruning are
//! written here once. A database gives its conversions and its making of tables (`Server`), and has its swaps, its
//! incarnation and its notifier beside it.

pub(in crate::store) mod tables;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Statements;
use super::cell::{BadColumn, Cell, Cells, Column, Rows};
use crate::store::net::host::Settings as _;
use crate::store::net::lookout::{Identify, OtherServers};
use crate::store::net::session::{Failed, Link, Session};
use crate::store::{Lookout, Marks, Queue, Store, StoreError, Tokens, Trouble, first_look};
use crate::token::{Memory, Recorded, RunRecord, StoreTime};

/// The version of the tables that this program makes and reads.
pub(in crate::store) const VERSION: i64 = 1;

/// A token store in a database on a server. `O`: the state that only this kind of database has.
pub(in crate::store) struct SqlStore<L: Link, O> {
    pub(in crate::store) connection: Session<L>,
    /// The longest time of a call.
    pub(in crate::store) timeout: Duration,
    /// True if the tables are known to serve this program. Checked once: a holder goes on, whatever
    /// happens to the tables meanwhile.
    checked: bool,
    /// The last read of records failed because the tables do not exist.
    lacks_tables: bool,
    pub(in crate::store) own: O,
}

/// A database on a server: what its [`SqlStore`] needs.
pub(in crate::store) trait Server: Send {
    const TABLES: &'static TableStatements;

    /// What an answer of `read.sql` tells of the store's memory.
    const NOTE: &'static [Column];

    /// What is wrong with tables that do not say who may use them, and what to do.
    const UNSAID: [&'static str; 2];

    /// Carries out a statement, whose answer has these columns and must come within `limit`.
    fn ask(
        &mut self,
        limit: Duration,
        statement: &'static str,
        values: &[Cell],
        columns: &[Column],
    ) -> Result<Rows, Failed>;

    /// True if the tables, or some of them, do not exist: nothing has happened.
    fn is_without_tables(failed: &Failed) -> bool;

    /// True if the server has refused a statement that this user may not carry out.
    fn is_not_allowed(failed: &Failed) -> bool;

    /// Makes the tables if they do not exist; else checks that they serve this program.
    fn make(&mut self, limit: Duration) -> Result<(), StoreError>;

    /// The place of the tables in messages, such as `schema "s"`.
    fn place(&self) -> String;

    /// A table's name in messages.
    fn table(&self, name: &str) -> String;

    /// The error of an answer whose time is malformed, if that shows another session of the server.
    fn lost_session(&self, _bad: &BadColumn) -> Option<StoreError> {
        None
    }

    /// What the store may have forgotten, by the note in an answer of `read.sql` at `now`.
    fn memory(&mut self, note: Cells<'_>, now: &StoreTime) -> Result<Memory, StoreError>;

    /// Why nothing is granted, by the note in an answer of `read.sql`.
    fn refuses(&self, _note: Cells<'_>) -> Option<StoreError> {
        None
    }

    /// Writes a run by itself ([`crate::store::Records::record`]).
    fn write_run(&mut self, run: &RunRecord) -> Result<Recorded, StoreError>;

    /// Gives back a connection that others may need ([`Store::idle`]).
    fn rest(&mut self) {}
}

/// The statements for the tables of a server. Each is a file with its name.
#[derive(Debug)]
pub(in crate::store) struct TableStatements {
    pub(in crate::store) records: Statements,
    /// One row with all that a look needs, for each waiter: group.
    pub(in crate::store) read: &'static str,
    pub(in crate::store) list: &'static str,
    pub(in crate::store) queues: &'static str,
    /// Group, session.
    pub(in crate::store) queue_leave: &'static str,
    /// Group, client, reason, cause, fence, document, two lengths of time.
    pub(in crate::store) refuse: &'static str,
    /// Group, fence, session, document.
    pub(in crate::store) output_write: &'static str,
    /// Group, number of runs.
    pub(in crate::store) prune_look: &'static str,
    /// Group, the note that was read, the next note.
    pub(in crate::store) prune_note: &'static str,
    /// Group, two retentions, number of runs, two fences.
    pub(in crate::store) prune: &'static str,
}

/// The statements of a server's tables, from the files of its database.
macro_rules! table_statements {
    ($database:literal) => {
        $crate::store::sql::server::TableStatements {
            records: $crate::store::sql::record_statements!($database),
            read: $crate::store::sql::statement!($database, "read"),
            list: $crate::store::sql::statement!($database, "list"),
            queues: $crate::store::sql::statement!($database, "queues"),
            queue_leave: $crate::store::sql::statement!($database, "queue_leave"),
            refuse: $crate::store::sql::statement!($database, "refuse"),
            output_write: $crate::store::sql::statement!($database, "output_write"),
            prune_look: $crate::store::sql::statement!($database, "prune_look"),
            prune_note: $crate::store::sql::statement!($database, "prune_note"),
            prune: $crate::store::sql::statement!($database, "prune"),
        }
    };
}
pub(in crate::store) use table_statements;

fn unusable(store: &str, what: impl fmt::Display) -> StoreError {
    StoreError::misconfigured(format!("the store {store} can't be used: {what}"))
}

/// Checks that the tables of a store serve this program: `oldest_reader` is the tables' own entry.
pub(in crate::store) fn check<S: Server>(
    store: &str,
    oldest_reader: Option<&str>,
) -> Result<(), StoreError> {
    match oldest_reader.map(str::parse::<i64>) {
        Some(Ok(oldest)) if oldest <= VERSION => Ok(()),
        Some(Ok(oldest)) => {
            let what = format!(
                "its tables are for programs that know version {oldest} or later, and this tokenrun knows {VERSION}"
            );
            Err(unusable(store, what).remedy("install a newer tokenrun"))
        }
        Some(Err(_)) | None => {
            let [what, remedy] = S::UNSAID;
            Err(unusable(store, what).remedy(remedy))
        }
    }
}

impl<L: Link, O> SqlStore<L, O>
where
    Self: Server,
{
    /// A store that connects at its first request. A call takes at most `timeout`.
    pub(in crate::store) fn over(settings: L::Settings, timeout: Duration, own: O) -> Self {
        Self {
            connection: Session::new(settings),
            timeout,
            checked: false,
            lacks_tables: false,
            own,
        }
    }

    /// Makes the tables if they do not exist.
    pub(in crate::store) fn init(&mut self) -> Result<(), StoreError> {
        self.init_within(self.timeout)
    }

    fn init_within(&mut self, limit: Duration) -> Result<(), StoreError> {
        first_look::check_time(limit, self.connection.store_name())?;
        self.make(limit)
    }

    /// Asks. If `is_missing` says of the answer that the tables do not exist, makes them and asks again.
    pub(in crate::store) fn ask_or_make(
        &mut self,
        statement: &'static str,
        values: &[Cell],
        columns: &[Column],
        is_missing: impl FnOnce(&Result<Rows, Failed>) -> bool,
    ) -> Result<Rows, StoreError> {
        let begun = Instant::now();
        let mut answer = self.ask(self.timeout, statement, values, columns);
        if is_missing(&answer) {
            self.init_within(self.timeout.saturating_sub(begun.elapsed()))?;
            let left = self.timeout.saturating_sub(begun.elapsed());
            answer = self.ask(left, statement, values, columns);
        }
        answer.map_err(|failed| failed.error)
    }

    /// The first row of an answer, which must have one.
    pub(in crate::store) fn first(
        &mut self,
        limit: Duration,
        statement: &'static str,
        values: &[Cell],
        columns: &[Column],
    ) -> Result<Vec<Cell>, Failed> {
        let mut rows = self.ask(limit, statement, values, columns)?.into_iter();
        rows.next().ok_or_else(|| Failed::by(self.no_answer()))
    }

    /// Asks without need of an answer.
    pub(in crate::store) fn tell(
        &mut self,
        statement: &'static str,
        values: &[Cell],
    ) -> Result<(), StoreError> {
        let told = self.ask(self.timeout, statement, values, &[]);
        told.map(drop).map_err(|failed| failed.error)
    }

    pub(in crate::store) fn unusable(&self, what: impl fmt::Display) -> StoreError {
        unusable(self.connection.store_name(), what)
    }

    /// The error of a malformed cell.
    pub(in crate::store) fn bad_column(&self, table: &str, bad: &BadColumn) -> StoreError {
        let BadColumn { column, what } = bad;
        let table = self.table(table);
        self.unusable(format!("in the table {table}, {column} {what}"))
            .remedy("correct it there")
    }

    /// The error of a malformed time of an answer.
    pub(in crate::store) fn bad_time(&self, bad: &BadColumn) -> StoreError {
        self.lost_session(bad)
            .unwrap_or_else(|| self.bad_column("tokens", bad))
    }

    pub(in crate::store) fn no_answer(&self) -> StoreError {
        let name = self.connection.store_name();
        StoreError::unavailable(format!("the store {name} gave an empty answer"))
    }

    fn no_store(&self) -> StoreError {
        StoreError::misconfigured(format!(
            "there is no store in the {} of {}: nothing has run with it yet, or --store names another",
            self.place(),
            self.connection.store_name()
        ))
    }

    /// The error of a failed list: without tables there is no store.
    pub(in crate::store) fn listed(&self, failed: Failed) -> StoreError {
        match Self::is_without_tables(&failed) {
            true => self.no_store(),
            false => failed.error,
        }
    }

    /// The error of tables that could not be made. `by`: what the database calls a user.
    pub(in crate::store) fn not_made(&self, failed: Failed, by: &str) -> StoreError {
        if failed.error.trouble != Trouble::Denied {
            return failed.error;
        }
        let what = format!(
            "{}: the {} has no tables that this {by} may use, and it may not make them",
            failed.error.what,
            self.place()
        );
        StoreError {
            what,
            ..failed.error
        }
        .remedy("have a database administrator run what tokenrun init --print-sql prints")
    }
}

impl<L: Link, O> fmt::Debug for SqlStore<L, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlStore")
            .field("name", &self.connection.store_name())
            .finish_non_exhaustive()
    }
}

impl<L, O> Store for SqlStore<L, O>
where
    L: Link<Settings: Identify + Send + Sync + 'static>,
    Self: Server + Tokens + Queue + Marks,
{
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

    fn idle(&mut self) {
        self.rest();
    }
}
