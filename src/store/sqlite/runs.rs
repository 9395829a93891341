//! The table `runs`: a record's columns, and back.

use rusqlite::types::Value;

use super::cells::{self, BadCell, Cells};
use crate::token::{ClientId, Fence, GrantKind, GroupName, Outcome, RunRecord, SessionId};

/// The columns, in the order of the statements.
pub(super) const COLUMNS: &[&str] = &[
    "token_group",
    "fence",
    "session",
    "client",
    "previous_client",
    "host",
    "pid",
    "label",
    "program",
    "once_key",
    "grant_kind",
    "started_at",
    "ended_at",
    "outcome",
    "exit_code",
    "signal",
];

/// What is written for a record, in the order of [`COLUMNS`].
pub(super) fn to_values(run: &RunRecord) -> [Value; 16] {
    [
        cells::text(run.group.as_str()),
        Value::Integer(run.fence.0),
        cells::text(run.session.as_str()),
        cells::text(run.client.as_str()),
        cells::text_or_null(run.previous_client.as_ref()),
        cells::text_or_null(run.host.as_ref()),
        cells::number_or_null(run.pid),
        cells::text_or_null(run.label.as_ref()),
        cells::text(run.program.as_str()),
        cells::text_or_null(run.once_key.as_ref()),
        cells::text(run.grant.as_str()),
        cells::wall_or_null(Some(run.started_at_ms)),
        cells::wall_or_null(run.ended_at_ms),
        cells::text(run.outcome.as_str()),
        cells::number_or_null(run.exit_code),
        cells::number_or_null(run.signal),
    ]
}

/// The record that the columns stand for.
pub(super) fn from_cells(mut cells: Cells<'_>) -> Result<RunRecord, BadCell> {
    let c = &mut cells;
    Ok(RunRecord {
        group: c.needed_name(GroupName::new)?,
        fence: Fence(c.count()?),
        session: c.needed_name(SessionId::new)?,
        client: c.needed_name(ClientId::new)?,
        previous_client: c.name(ClientId::new)?,
        host: c.owned()?,
        pid: c.small()?,
        label: c.owned()?,
        program: c.needed_text()?.to_owned(),
        once_key: c.owned()?,
        grant: {
            let found = c.word(GrantKind::from_word)?;
            c.needed(found)?
        },
        started_at_ms: {
            let found = c.wall()?;
            c.needed(found)?
        },
        ended_at_ms: c.wall()?,
        outcome: {
            let found = c.word(Outcome::from_word)?;
            c.needed(found)?
        },
        exit_code: c.small()?,
        signal: c.small()?,
    })
}
