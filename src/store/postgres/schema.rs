//! Making the tables, and checking whether this program can use the existing ones.

use std::time::{Duration, Instant};

use tokio_postgres::error::SqlState;

use super::PostgresStore;
use super::link::Answered as _;
use super::statements::{Statements, sql};
use crate::store::StoreError;
use crate::store::sql::cell::{Cells, text};
pub(super) use crate::store::sql::server::VERSION;
use crate::store::sql::server::{Server as _, check};

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

impl PostgresStore {
    /// Makes the tables if they do not exist; else checks that they serve this program.
    pub(super) fn make_tables(&mut self, limit: Duration) -> Result<(), StoreError> {
        let begun = Instant::now();
        let columns = [text("version"), text("oldest_reader")];
        match self.ask(limit, sql!("schema_version"), &[], &columns) {
            Ok(rows) => {
                let row = rows.first().map(Vec::as_slice).unwrap_or_default();
                let oldest = Cells::new(&columns, row).after(1).text();
                check::<Self>(self.connection.store_name(), oldest.ok().flatten())
            }
            Err(failed) if failed.has_no_tables() => {
                self.create(limit.saturating_sub(begun.elapsed()))
            }
            Err(failed) => Err(failed.error),
        }
    }

    fn create(&mut self, limit: Duration) -> Result<(), StoreError> {
        let statements = &self.own.statements;
        let batch = statements.fill(sql!("schema_create")) + &statements.of(sql!("schema"));
        match self.connection.batch(limit, &batch) {
            Ok(()) => Ok(()),
            // Another client was quicker: the lock made this one wait for it.
            Err(failed) if failed.is(&SqlState::DUPLICATE_TABLE) => Ok(()),
            Err(failed) => Err(self.not_made(failed, "role")),
        }
    }
}
