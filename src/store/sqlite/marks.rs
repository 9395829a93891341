//! The table `resources`: the highest fence that has used each.

use rusqlite::params;

use super::write::Kept;
use super::{SqliteStore, Writing, wall};
use crate::store::{Advanced, Marks, StoreError};
use crate::token::{Fence, ResourceName};

impl Marks for SqliteStore {
    fn advance(&mut self, resource: &ResourceName, fence: Fence) -> Result<Advanced, StoreError> {
        self.write(Writing::History, |transaction, _, now| {
            let at = wall::to_text(now.stamp.wall);
            let values = params![resource.as_str(), fence.0, at];
            if transaction.execute(sql!("resource_advance"), values)? > 0 {
                return Ok(Kept::Yes(Advanced::Stored));
            }
            let resource = [resource.as_str()];
            let mark = transaction.query_row(sql!("resource_read"), resource, |row| row.get(0))?;
            Ok(Kept::No(Advanced::Behind(Fence(mark))))
        })
    }
}
