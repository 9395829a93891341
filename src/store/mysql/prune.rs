//! Pruning in three steps: read the candidates, leave the note for the next pruning, remove what is
//! too old. So the token's row is locked only while the note is written.

use std::time::Instant;

use super::MysqlStore;
use super::cells::{Cells, millis};
use super::fault::code;
use super::link::Missing as _;
use super::statements::sql;
use crate::store::net::session::Failed;
use crate::store::pruning::{Note, Outlived, Seen};
use crate::store::sql::cell::Cell;
use crate::store::{PRUNE_BATCH, Retention, StoreError};
use crate::token::{Fence, GroupName};

/// Where a run begins in an answer of `prune_look.sql`: after the time and the note.
const RUN: usize = 3;

impl MysqlStore {
    /// Prunes; without the right to leave a note, nothing is pruned.
    pub(super) fn prune_if_possible(
        &mut self,
        group: &GroupName,
        retention: Retention,
    ) -> Result<(), StoreError> {
        match self.prune_a_batch(group, retention) {
            Err(failed) if failed.code().is_some_and(|it| code::DENIED.contains(&it)) => Ok(()),
            answer => answer.map_err(|failed| failed.error),
        }
    }

    fn prune_a_batch(&mut self, group: &GroupName, retention: Retention) -> Result<(), Failed> {
        let begun = Instant::now();
        let batch = Cell::number(i64::from(PRUNE_BATCH));
        let values = [Cell::text(group), batch.clone()];
        let look = self.statements.of(sql!("prune_look"), &values);
        let answer = self.connection.ask(self.timeout, &look)?;
        let Some(first) = answer.rows.first() else {
            return Ok(());
        };
        let now = self.now(&answer).map_err(Failed::by)?;
        let text = Cells::new(&answer, first, RUN - 1).text().ok().flatten();
        let last = text.and_then(Note::from_text);
        let runs = answer.rows.iter();
        let runs = runs.filter_map(|row| seen(&mut Cells::new(&answer, row, RUN)));
        let mut newest: Vec<Seen> = runs.collect();
        let note = Note::next(last, &now, false, &mut newest, retention);
        let outlived = note.outlived(retention);
        let values = [
            Cell::text(group),
            Cell::maybe(text),
            Cell::text(&note.to_text()),
        ];
        let statement = self.statements.of(sql!("prune_note"), &values);
        let left = self.timeout.saturating_sub(begun.elapsed());
        let noted = self.connection.ask(left, &statement)?;
        let noted = Cells::first(&noted).is_some_and(|mut cells| cells.flag().unwrap_or(false));
        if !noted || outlived == Outlived::default() {
            return Ok(());
        }
        let values = [
            Cell::text(group),
            millis(retention.history),
            millis(retention.once),
            batch,
            Cell::Number(outlived.history.map(|fence| fence.0)),
            Cell::Number(outlived.once.map(|fence| fence.0)),
        ];
        let statement = self.statements.of(sql!("prune"), &values);
        let left = self.timeout.saturating_sub(begun.elapsed());
        self.connection.ask(left, &statement).map(drop)
    }
}

/// A run as evidence of time; none if there is no run, or its cells are malformed.
fn seen(cells: &mut Cells<'_>) -> Option<Seen> {
    Some(Seen {
        fence: Fence(cells.number().ok()??),
        started_at: cells.wall().ok()??,
    })
}
