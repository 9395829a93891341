//! The schema's version: checked at every start.

use rusqlite::Connection;

use super::SqliteStore;
use super::file::{SCHEMA_STEP, SCHEMA_VERSION};
use crate::store::StoreError;

impl SqliteStore {
    pub(super) fn check_schema(&self) -> Result<(), StoreError> {
        let read = |error: rusqlite::Error| self.fault("read its schema", &error);
        let stored = stored_version(&self.connection).map_err(read)?;
        let (version, oldest_reader) = (stored / SCHEMA_STEP, stored % SCHEMA_STEP);
        match version {
            SCHEMA_VERSION => Ok(()),
            newer if newer > SCHEMA_VERSION && oldest_reader <= SCHEMA_VERSION => Ok(()),
            newer if newer > SCHEMA_VERSION => Err(self.location.misconfigured(format!(
                "its schema is version {newer}, for programs that know version {oldest_reader} or later, and this tokenrun knows {SCHEMA_VERSION}"
            )).remedy("install a newer tokenrun")),
            older => Err(self.location.misconfigured(format!(
                "its schema is version {older}, which no tokenrun ever made"
            )).remedy("move the file away, or put a backup back")),
        }
    }
}

/// The `user_version` in the header.
pub(super) fn stored_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}
