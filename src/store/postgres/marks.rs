//! The table `resources`: the highest fence that has used each.

use std::time::Instant;

use super::PostgresStore;
use super::statements::sql;
use crate::store::sql::cell::Cell;
use crate::store::{Advanced, Marks, StoreError};
use crate::token::{Fence, ResourceName};

impl Marks for PostgresStore {
    fn advance(&mut self, resource: &ResourceName, fence: Fence) -> Result<Advanced, StoreError> {
        let begun = Instant::now();
        let statement = self.statements.of(sql!("advance"));
        let values = [Cell::text(resource), Cell::number(fence.0)];
        let rows = self.connection.query(self.timeout, &statement, &values);
        let rows = rows.map_err(|failed| self.listed(failed))?;
        let row = rows.first().ok_or_else(|| self.no_answer())?;
        if row.try_get("stored").unwrap_or(false) {
            return Ok(Advanced::Stored);
        }
        // Another client may have raised it while the statement ran.
        let left = self.timeout.saturating_sub(begun.elapsed());
        let rows = self
            .connection
            .query(left, sql!("mark"), &[Cell::text(resource)]);
        let rows = rows.map_err(|failed| failed.error)?;
        let mark = rows.first().and_then(|row| row.try_get(0).ok());
        let mark = mark.ok_or_else(|| self.no_answer())?;
        Ok(Advanced::Behind(Fence(mark)))
    }
}
