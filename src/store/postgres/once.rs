//! The table `once`: the keys that are done.

use tokio_postgres::Row;

use super::cells::{BadCell, Cells};
use crate::token::{ClientId, Fence, GroupName, OnceMark, SessionId};

/// The mark that a row of `once_list.sql` stands for.
pub(super) fn from_row(row: &Row) -> Result<OnceMark, BadCell> {
    let c = &mut Cells::new(row, 0);
    Ok(OnceMark {
        group: c.needed_name(GroupName::new)?,
        key: c.needed()?,
        done_at_ms: {
            let found = c.wall()?;
            c.there(found)?
        },
        fence: Fence(c.count()?),
        session: c.needed_name(SessionId::new)?,
        client: c.needed_name(ClientId::new)?,
    })
}
