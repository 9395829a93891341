//! Making the tables, and checking whether this program can use the existing ones.

use std::time::{Duration, Instant};

use super::cells::Cells;
use super::fault::code;
use super::link::{Missing as _, Session};
use super::statements::{self, Statements, sql};
use crate::store::net::session::Failed;
use crate::store::{StoreError, Trouble};

/// The version that this program makes and reads.
const VERSION: i64 = 1;

/// The script that makes the tables, for an administrator.
#[must_use]
pub fn creation() -> String {
    let grants = include_str!("../sql/mysql/grants.sql");
    format!("{}\n{grants}", statements::script())
}

/// What the table of the store says about itself.
pub(super) enum Found {
    /// The tables are complete: the oldest program that may use them.
    Complete(Option<String>),
    /// The tables are, and procedures are missing: a dump may have left them out.
    NoProcedures(Option<String>),
    /// They are missing, or not complete.
    Missing,
}

/// Reads what the store says about itself.
pub(super) fn look(connection: &mut Session, limit: Duration) -> Result<Found, Failed> {
    match connection.ask(limit, sql!("schema_version")) {
        Ok(answer) => Ok(match answer.rows.first() {
            Some(row) => {
                let mut cells = Cells::new(&answer, row, 1);
                let oldest = cells.text().ok().flatten().map(str::to_owned);
                let count = cells.number().ok().flatten().unwrap_or_default();
                let there = usize::try_from(count).unwrap_or_default();
                match there >= statements::PROCEDURES.len() {
                    true => Found::Complete(oldest),
                    false => Found::NoProcedures(oldest),
                }
            }
            None => Found::Missing,
        }),
        Err(failed) if failed.has_no_tables() => Ok(Found::Missing),
        Err(failed) => Err(failed),
    }
}

/// Makes the tables. Definitions are no part of a transaction here: so one process at a time makes them,
/// under a lock of its connection, and the row that says that they are complete comes last.
pub(super) fn make(
    connection: &mut Session,
    statements: &Statements,
    limit: Duration,
) -> Result<(), StoreError> {
    let begun = Instant::now();
    let left = || limit.saturating_sub(begun.elapsed());
    let database = connection.settings().database.clone();
    let there = connection.ask(left(), "SELECT 1");
    if there
        .as_ref()
        .is_err_and(|it| it.code() == Some(code::UNKNOWN_DATABASE))
    {
        let name = database.replace('`', "``");
        let create = format!("CREATE DATABASE IF NOT EXISTS `{name}`");
        let created = connection.ask_without_database(left(), &create);
        if let Err(error) = created {
            return Err(not_made(error, &database));
        }
    } else if let Err(error) = there {
        return Err(not_made(error, &database));
    }
    // The name of a lock is the server's, not the database's, and has 64 characters at most.
    let seconds = left().as_secs().max(1);
    let lock = format!("SELECT GET_LOCK(CONCAT('tokenrun ', LEFT(DATABASE(), 50)), {seconds})");
    let got = connection.ask(left(), &lock);
    if let Err(error) = got {
        return Err(not_made(error, &database));
    }
    let made = match look(connection, left()) {
        // Another process was quicker.
        Ok(Found::Complete(_)) => Ok(()),
        Ok(Found::Missing | Found::NoProcedures(_)) => {
            let script = statements.creation().join(";\n");
            connection.ask(left(), &script).map(drop)
        }
        Err(error) => Err(error),
    };
    // With an error the lock ends too: at the latest with the connection.
    let _ = connection.ask(left(), "DO RELEASE_ALL_LOCKS()");
    made.map_err(|error| not_made(error, &database))
}

fn not_made(failed: Failed, database: &str) -> StoreError {
    if failed.error.trouble != Trouble::Denied {
        return failed.error;
    }
    let what = format!(
        "{}: the database {database:?} has no tables that this user may use, and it may not make them",
        failed.error.what
    );
    StoreError {
        what,
        ..failed.error
    }
    .remedy("have a database administrator run what tokenrun init --print-sql prints")
}

/// Checks that the tables serve this program: `oldest_reader` is the tables' own entry.
pub(super) fn check(place: &str, oldest_reader: Option<&str>) -> Result<(), StoreError> {
    match oldest_reader.map(str::parse::<i64>) {
        Some(Ok(oldest)) if oldest <= VERSION => Ok(()),
        Some(Ok(oldest)) => Err(StoreError::misconfigured(format!(
            "the store {place} can't be used: its tables are for programs that know version {oldest} or later, and this tokenrun knows {VERSION}"
        ))
        .remedy("install a newer tokenrun")),
        Some(Err(_)) | None => Err(StoreError::misconfigured(format!(
            "the store {place} can't be used: its table tokenrun_meta does not say whom it serves"
        ))
        .remedy("put a backup back, or name another database with tokenrun_schema")),
    }
}
