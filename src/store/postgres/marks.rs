//! The table `resources`: the highest fence that has used each.

use std::time::Instant;

use super::PostgresStore;
use super::statements::sql;
use crate::store::sql::cell::{Cell, Cells, flag, number};
use crate::store::sql::server::Server as _;
use crate::store::{Advanced, Marks, StoreError};
use crate::token::{Fence, ResourceName};

impl Marks for PostgresStore {
    fn advance(&mut self, resource: &ResourceName, fence: Fence) -> Result<Advanced, StoreError> {
        let begun = Instant::now();
        let values = [Cell::text(resource), Cell::number(fence.0)];
        let rows = self.ask(self.timeout, sql!("advance"), &values, &[flag("stored")]);
        let rows = rows.map_err(|failed| self.listed(failed))?;
        if rows.first().ok_or_else(|| self.no_answer())? == &[Cell::Flag(true)] {
            return Ok(Advanced::Stored);
        }
        // Another client may have raised it while the statement ran.
        let left = self.timeout.saturating_sub(begun.elapsed());
        let columns = [number("fence")];
        let rows = self.ask(left, sql!("mark"), &[Cell::text(resource)], &columns);
        let rows = rows.map_err(|failed| failed.error)?;
        let row = rows.first().map(|row| Cells::new(&columns, row).number());
        let mark = row.and_then(|mark| mark.ok().flatten());
        let mark = mark.ok_or_else(|| self.no_answer())?;
        Ok(Advanced::Behind(Fence(mark)))
    }
}
