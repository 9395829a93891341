//! The table `once`: the keys that are done.

use rusqlite::types::Value;

use super::cells::{self, BadCell, Cells};
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

/// What is written for a mark, in the order of [`COLUMNS`].
pub(super) fn to_values(mark: &OnceMark) -> [Value; 6] {
    [
        cells::text(mark.group.as_str()),
        cells::text(mark.key.as_str()),
        cells::wall_or_null(Some(mark.done_at_ms)),
        Value::Integer(mark.fence.0),
        cells::text(mark.session.as_str()),
        cells::text(mark.client.as_str()),
    ]
}

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
