//! The schema's version: checked at every start, and brought up to date.

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::SqliteStore;
use super::file::{SCHEMA_2, SCHEMA_3, SCHEMA_STEP, SCHEMA_VERSION, user_version};
use crate::store::StoreError;

impl SqliteStore {
    pub(super) fn check_schema(&self) -> Result<(), StoreError> {
        let read = |error: rusqlite::Error| self.fault("read its schema", &error);
        let stored = stored_version(&self.connection).map_err(read)?;
        let (version, oldest_reader) = (stored / SCHEMA_STEP, stored % SCHEMA_STEP);
        match version {
            SCHEMA_VERSION => Ok(()),
            1 | 2 => self.add_what_came_later(),
            newer if newer > SCHEMA_VERSION && oldest_reader <= SCHEMA_VERSION => Ok(()),
            newer if newer > SCHEMA_VERSION => Err(self.place.misconfigured(format!(
                "its schema is version {newer}, for programs that know version {oldest_reader} or \
                 later, and this tokenrun knows {SCHEMA_VERSION}; install a newer tokenrun"
            ))),
            older => Err(self.place.misconfigured(format!(
                "its schema is version {older}, which no tokenrun ever made; move the file away, \
                 or put a backup back"
            ))),
        }
    }

    /// Makes of an older version what this program makes. Whoever uses it goes on.
    fn add_what_came_later(&self) -> Result<(), StoreError> {
        let fault =
            |error: rusqlite::Error| self.fault("add what came later to its tables", &error);
        let immediate = TransactionBehavior::Immediate;
        let transaction = Transaction::new_unchecked(&self.connection, immediate).map_err(fault)?;
        let steps = match stored_version(&transaction).map_err(fault)? / SCHEMA_STEP {
            1 => [SCHEMA_2, SCHEMA_3].as_slice(),
            2 => &[SCHEMA_3],
            // Another was quicker.
            _ => return Ok(()),
        };
        let (steps, version) = (steps.concat(), user_version());
        let statements = format!("{steps} PRAGMA user_version = {version};");
        transaction.execute_batch(&statements).map_err(fault)?;
        transaction.commit().map_err(fault)
    }
}

/// What `user_version` in the header says.
pub(super) fn stored_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}
