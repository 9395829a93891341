//! The table `resources`: the highest fence that has used each.

use std::time::Instant;

use super::PostgresStore;
use super::statements::sql;
use crate::store::sql::cell::{Cell, Cells, flag, number};
use crate::store::{Advanced, Marks, StoreError};
use crate::token::{Fence, ResourceName};

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
