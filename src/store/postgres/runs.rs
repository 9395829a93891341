//! The table `runs`: a record's columns, and back.

use tokio_postgres::Row;

use super::cells::{BadCell, Cells, Value};
use super::statements::Named;
use crate::token::{ClientId, Fence, GrantKind, GroupName, Outcome, RunRecord, SessionId};

/// What is sent for a record, but for its group.
pub(super) fn to_values(run: &RunRecord) -> Named {
    vec![
        ("run_fence", Value::long(run.fence.0)),
        ("run_session", Value::text(&run.session)),
        ("run_client", Value::text(&run.client)),
        (
            "run_previous_client",
            Value::maybe(run.previous_client.as_ref()),
        ),
        ("run_host", Value::maybe(run.host.as_ref())),
        ("run_pid", Value::Int(run.pid)),
        ("run_label", Value::maybe(run.label.as_ref())),
        ("run_program", Value::text(&run.program)),
        ("run_once_key", Value::maybe(run.once_key.as_ref())),
        ("run_grant_kind", Value::text(run.grant.as_str())),
        ("run_started_at", Value::time(Some(run.started_at_ms))),
        ("run_ended_at", Value::time(run.ended_at_ms)),
        ("run_outcome", Value::text(run.outcome.as_str())),
        ("run_exit_code", Value::Int(run.exit_code)),
        ("run_signal", Value::Int(run.signal)),
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
