//! Making the tables, and checking whether this program can use the existing ones.

use std::time::Duration;

use tokio_postgres::error::SqlState;

use super::link::{Answered as _, Session};
use super::statements::{Statements, sql};
use crate::store::net::session::Failed;
use crate::store::{StoreError, Trouble};

/// The version that this program makes and reads.
pub(super) const VERSION: i64 = 1;

/// The script that makes the tables, for an administrator, in one transaction.
#[must_use]
pub fn creation(schema: &str) -> String {
    let statements = Statements::new(schema);
    format!(
        "BEGIN;\n{}\n{}\n{}COMMIT;\n",
        statements.fill(sql!("schema_create")),
        include_str!("../sql/postgres/schema.sql"),
        statements.fill(sql!("grants"))
    )
}

/// Makes the tables if they do not exist.
pub(super) fn make(
    connection: &mut Session,
    statements: &Statements,
    schema: &str,
    limit: Duration,
) -> Result<(), StoreError> {
    let batch = statements.fill(sql!("schema_create")) + &statements.of(sql!("schema"));
    match connection.batch(limit, &batch) {
        Ok(()) => Ok(()),
        // Another client was quicker: the lock made this one wait for it.
        Err(failed) if failed.is(&SqlState::DUPLICATE_TABLE) => Ok(()),
        Err(failed) => Err(not_made(failed, schema)),
    }
}

fn not_made(failed: Failed, schema: &str) -> StoreError {
    if failed.error.trouble != Trouble::Denied {
        return failed.error;
    }
    let what = format!(
        "{}: the schema {schema:?} has no tables that this role may use, and it may not make them",
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
        )).remedy("install a newer tokenrun")),
        Some(Err(_)) | None => Err(StoreError::misconfigured(format!(
            "the store {place} can't be used: its table meta does not say which programs it is for"
        )).remedy("put a backup back, or name another schema with tokenrun_schema")),
    }
}
