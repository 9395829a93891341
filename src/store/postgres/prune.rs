//! Pruning in three statements: read the candidates, leave the note for the next pruning, remove
//! what is too old. So the token's row is locked only while the note is written.

use std::time::Instant;

use tokio_postgres::Row;

use tokio_postgres::error::SqlState;

use super::PostgresStore;
use super::cells::{Cells, millis};
use super::link::Answered as _;
use super::statements::sql;
use crate::store::net::session::Failed;
use crate::store::pruning::{Note, Outlived, Seen};
use crate::store::sql::cell::Cell;
use crate::store::{PRUNE_BATCH, Retention};
use crate::token::{Fence, GroupName};

/// Where a run begins in an answer of `prune_look.sql`: after the time and the note.
const RUN: usize = 4;

impl PostgresStore {
    /// Prunes; without the right to leave a note, nothing is pruned.
    pub(super) fn prune_if_possible(
        &mut self,
        group: &GroupName,
        retention: Retention,
    ) -> Result<(), Failed> {
        match self.prune_a_batch(group, retention) {
            Err(failed) if failed.is(&SqlState::INSUFFICIENT_PRIVILEGE) => Ok(()),
            answer => answer,
        }
    }

    fn prune_a_batch(&mut self, group: &GroupName, retention: Retention) -> Result<(), Failed> {
        let begun = Instant::now();
        let batch = Cell::number(i64::from(PRUNE_BATCH));
        let look = self.statements.of(sql!("prune_look"));
        let values = [Cell::text(group), batch.clone()];
        let rows = self.connection.query(self.timeout, &look, &values)?;
        let Some(first) = rows.first() else {
            return Ok(());
        };
        let now = self.now(first).map_err(Failed::by)?;
        let text: Option<String> = first.try_get(RUN - 1).ok().flatten();
        let last = text.as_deref().and_then(Note::from_text);
        let mut newest: Vec<Seen> = rows.iter().filter_map(seen).collect();
        let note = Note::next(last, &now, false, &mut newest, retention);
        let outlived = note.outlived(retention);
        let left = self.timeout.saturating_sub(begun.elapsed());
        let values = [
            Cell::text(group),
            Cell::Text(text),
            Cell::text(&note.to_text()),
        ];
        let noted = self.connection.query(left, sql!("prune_note"), &values)?;
        if noted.is_empty() || outlived == Outlived::default() {
            return Ok(());
        }
        let left = self.timeout.saturating_sub(begun.elapsed());
        let values = [
            Cell::text(group),
            millis(retention.history),
            millis(retention.once),
            batch,
            Cell::Number(outlived.history.map(|fence| fence.0)),
            Cell::Number(outlived.once.map(|fence| fence.0)),
        ];
        let statement = self.statements.of(sql!("prune"));
        self.connection.query(left, &statement, &values).map(|_| ())
    }
}

/// A run as evidence of time; none if there is no run, or its cells are malformed.
fn seen(row: &Row) -> Option<Seen> {
    let cells = &mut Cells::new(row, RUN);
    Some(Seen {
        fence: Fence(cells.cell().ok()??),
        started_at: cells.wall().ok()??,
    })
}

#[cfg(test)]
#[path = "prune_tests.rs"]
mod tests;
