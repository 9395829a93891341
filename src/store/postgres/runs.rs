//! The table `runs`: a record's columns, and back.

use tokio_postgres::Row;

use super::cells::{BadCell, Cells, Value};
use crate::token::{ClientId, Fence, GrantKind, GroupName, Outcome, RunRecord, SessionId};

/// What is sent for a record that begins, after the group, in the order of `run_begin.sql`.
pub(super) fn to_values(run: &RunRecord) -> Vec<Value> {
    vec![
        Value::long(run.fence.0),
        Value::text(&run.session),
        Value::text(&run.client),
        Value::maybe(run.previous_client.as_ref()),
        Value::maybe(run.host.as_ref()),
        Value::Int(run.pid),
        Value::maybe(run.label.as_ref()),
        Value::text(&run.program),
        Value::maybe(run.once_key.as_ref()),
        Value::text(run.grant.as_str()),
        Value::time(run.ended_at_ms),
        Value::text(run.outcome.as_str()),
        Value::Int(run.exit_code),
        Value::Int(run.signal),
    ]
}

/// The record that a row of `history.sql` stands for.
pub(super) fn from_row(row: &Row) -> Result<RunRecord, BadCell> {
    let c = &mut Cells::new(row, 0);
    Ok(RunRecord {
        group: c.needed_name(GroupName::new)?,
        fence: Fence(c.count()?),
        session: c.needed_name(SessionId::new)?,
        client: c.needed_name(ClientId::new)?,
        previous_client: c.name(ClientId::new)?,
        host: c.cell()?,
        pid: c.cell()?,
        label: c.cell()?,
        program: c.needed()?,
        once_key: c.cell()?,
        grant: {
            let found = c.word(GrantKind::from_word)?;
            c.there(found)?
        },
        started_at_ms: {
            let found = c.wall()?;
            c.there(found)?
        },
        ended_at_ms: c.wall()?,
        outcome: {
            let found = c.word(Outcome::from_word)?;
            c.there(found)?
        },
        exit_code: c.cell()?,
        signal: c.cell()?,
    })
}
