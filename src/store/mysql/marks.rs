//! The table of resources: the highest fence that has used each.

use super::MysqlStore;
use super::cells::Cells;
use super::statements::sql;
use crate::store::sql::cell::Cell;
use crate::store::{Advanced, Marks, StoreError};
use crate::token::{Fence, ResourceName};

impl Marks for MysqlStore {
    fn advance(&mut self, resource: &ResourceName, fence: Fence) -> Result<Advanced, StoreError> {
        let values = [Cell::text(resource), Cell::number(fence.0)];
        let statement = self.statements.of(sql!("advance"), &values);
        let answer = self.connection.ask(self.timeout, &statement);
        let answer = answer.map_err(|failed| self.listed(failed))?;
        let mut cells = Cells::first(&answer).ok_or_else(|| self.no_answer())?;
        let mark = cells.needed_number();
        let mark = mark.map_err(|bad| self.bad_column("tokenrun_resources", &bad))?;
        // Another client may have raised it since: then this fence is behind too.
        Ok(match mark {
            mark if mark == fence.0 => Advanced::Stored,
            mark => Advanced::Behind(Fence(mark)),
        })
    }
}
