//! Making the tables, and telling whether this program knows those that are there.

use std::time::Duration;

use super::session::{Failed, Session};
use super::statements::Statements;
use crate::store::{StoreError, Trouble};

/// The version that this program makes.
pub(super) const VERSION: i64 = 2;

/// Everything that makes the tables, as an administrator may run it, in one transaction.
#[must_use]
pub fn creation(schema: &str) -> String {
    let statements = Statements::new(schema);
    format!(
        "BEGIN;\n{}{}\n{}{}COMMIT;\n",
        statements.schema_create(),
        statements.schema(),
        statements.schema_added(),
        statements.grants()
    )
}

/// Makes the tables where they are not there.
pub(super) fn make(
    session: &mut Session,
    statements: &Statements,
    schema: &str,
    limit: Duration,
) -> Result<(), StoreError> {
    let batch = format!(
        "{}{}{}",
        statements.schema_create(),
        statements.schema(),
        statements.schema_added()
    );
    match session.batch(limit, &batch) {
        Ok(()) => Ok(()),
        // Another was quicker: the lock made this one wait for it. Or they are older.
        Err(failed) if is_made_already(&failed) => add(session, statements, schema, limit),
        Err(failed) => Err(not_made(
            failed,
            schema,
            "has no tables yet",
            "what tokenrun init --print-sql prints",
        )),
    }
}

/// Makes the tables that came after the first ones, where they are not there.
pub(super) fn add(
    session: &mut Session,
    statements: &Statements,
    schema: &str,
    limit: Duration,
) -> Result<(), StoreError> {
    let batch = format!(
        "{}{}{}",
        statements.schema_create(),
        statements.schema_later(),
        statements.schema_added()
    );
    session.batch(limit, &batch).map_err(|failed| {
        not_made(
            failed,
            schema,
            "lacks tables that came later",
            "tokenrun init",
        )
    })
}

fn not_made(failed: Failed, schema: &str, what: &str, run: &str) -> StoreError {
    if failed.error.trouble != Trouble::Denied {
        return failed.error;
    }
    let message = &failed.error.message;
    let told = message.split("; have a database").next();
    StoreError {
        message: format!(
            "{}: the schema {schema:?} {what}, and this role may not make them; have a database \
             administrator run {run}",
            told.unwrap_or_default(),
        ),
        ..failed.error
    }
}

fn is_made_already(failed: &Failed) -> bool {
    matches!(failed.code.as_deref(), Some("42P07" | "42P06"))
}

/// Whether the tables serve this program: `oldest_reader` is what they say themselves.
pub(super) fn check(place: &str, oldest_reader: Option<&str>) -> Result<(), StoreError> {
    match oldest_reader.map(str::parse::<i64>) {
        Some(Ok(oldest)) if oldest <= VERSION => Ok(()),
        Some(Ok(oldest)) => Err(StoreError::misconfigured(format!(
            "the store {place} can't be used: its tables are for programs that know version {oldest} \
             or later, and this tokenrun knows {VERSION}; install a newer tokenrun"
        ))),
        Some(Err(_)) | None => Err(StoreError::misconfigured(format!(
            "the store {place} can't be used: its table meta does not say whom it serves; put a \
             backup back, or name another schema with tokenrun_schema"
        ))),
    }
}
