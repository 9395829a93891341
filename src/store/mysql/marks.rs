//! The table of resources: the highest fence that has used each.

use super::MysqlStore;
use super::statements::sql;
use crate::store::sql::cell::{Cell, Cells, number};
use crate::store::{Advanced, Marks, StoreError};
use crate::token::{Fence, ResourceName};

impl Marks for MysqlStore {
    fn advance(&mut self, resource: &ResourceName, fence: Fence) -> Result<Advanced, StoreError> {
        let values = [Cell::text(resource), Cell::number(fence.0)];
        let columns = [number("fence")];
        let row = self.first(self.timeout, sql!("advance"), &values, &columns);
        let row = row.map_err(|failed| self.listed(failed))?;
        let mark = Cells::new(&columns, &row).needed(Cells::number);
        let mark = mark.map_err(|bad| self.bad_column("resources", &bad))?;
        // Another client may have raised it since: then this fence is behind too.
        Ok(match mark {
            mark if mark == fence.0 => Advanced::Stored,
            mark => Advanced::Behind(Fence(mark)),
        })
    }
}
