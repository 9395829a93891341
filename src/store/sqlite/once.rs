//! The table `once`: the keys that are done.

use super::cells::{BadCell, Cells};
use crate::token::{ClientId, Fence, GroupName, OnceMark, SessionId};

/// The table's name.
pub(super) const TABLE: &str = "once";

/// The columns, in the order of the statements.
pub(super) const COLUMNS: &[&str] = &[
    "token_group",
    "once_key",
    "done_at",
    "fence",
    "session",
    "client",
];

/// The mark that the columns stand for.
pub(super) fn from_cells(mut cells: Cells<'_>) -> Result<OnceMark, BadCell> {
    let c = &mut cells;
    Ok(OnceMark {
        group: c.needed_name(GroupName::new)?,
        key: c.needed_text()?.to_owned(),
        done_at_ms: {
            let found = c.wall()?;
            c.needed(found)?
        },
        fence: Fence(c.count()?),
        session: c.needed_name(SessionId::new)?,
        client: c.needed_name(ClientId::new)?,
    })
}
