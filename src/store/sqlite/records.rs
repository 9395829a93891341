//! The tables of finished runs and their output, refusals, acts of operators, keys that are done, and the marks
//! of resources.

use rusqlite::{OptionalExtension as _, Transaction, params};

use super::cells::{read, wall_text};
use super::write::{Kept, WriteError, newest_refusal, write_row, write_run};
use super::{SqliteStore, Writing};
use crate::store::pruning::Note;
use crate::store::sql::cell::{BadColumn, Cell, Column, Rows};
use crate::store::sql::records::{self, Reads, SEEN, seen};
use crate::store::sql::table::{OUTPUTS, REFUSALS};
use crate::store::sql::{Statements, record_statements};
use crate::store::{
    ActQuery, Advanced, Marks, OUTPUT_BATCH, PRUNE_BATCH, Records, RefusalQuery, Retention,
    RunQuery, StoreError,
};
use crate::token::{
    ActRecord, Fence, GroupName, OnceMark, OutputLimits, OutputRecord, Recorded, RefusalRecord,
    RefusalTotal, ResourceName, RunRecord, StoreTime,
};

impl Reads for &SqliteStore {
    fn statements(&self) -> &'static Statements {
        const { &record_statements!("sqlite") }
    }

    fn select(
        &mut self,
        statement: &'static str,
        values: &[Cell],
        columns: &[Column],
    ) -> Result<Rows, StoreError> {
        self.rows(statement, values, columns)
    }

    fn bad_row(&self, table: &str, group: &str, bad: &BadColumn) -> StoreError {
        self.location.bad_cell(table, group, bad)
    }
}

impl Records for SqliteStore {
    fn record(&mut self, run: &RunRecord) -> Result<Recorded, StoreError> {
        self.write(Writing::History, |transaction, _, now| {
            Ok(Kept::Yes(write_run(transaction, run, now)?))
        })
    }

    fn runs(&mut self, query: &RunQuery) -> Result<Vec<RunRecord>, StoreError> {
        records::runs(&mut &*self, query)
    }

    fn acts(&mut self, query: &ActQuery) -> Result<Vec<ActRecord>, StoreError> {
        records::acts(&mut &*self, query)
    }

    fn refuse(&mut self, refusal: &RefusalRecord) -> Result<(), StoreError> {
        // Most refusals of a loop write nothing: they must not even take the lock.
        let now = self.clock.now().stamp.wall;
        let before = newest_refusal(&self.connection, refusal, now);
        let before = before.map_err(|error| self.fault("read it", &error))?;
        if refusal.after(before, now).is_none() {
            return Ok(());
        }
        self.write(Writing::State, |transaction, _, now| {
            let now = now.stamp.wall;
            let before = newest_refusal(transaction, refusal, now)?;
            let Some(next) = refusal.after(before, now) else {
                return Ok(Kept::No(()));
            };
            write_row(transaction, sql!("refusal_write"), &REFUSALS.cells(&next))?;
            transaction.execute(
                sql!("refusal_count"),
                [refusal.group.as_str(), refusal.reason.as_str()],
            )?;
            Ok(Kept::Yes(()))
        })
    }

    fn refusals(&mut self, query: &RefusalQuery) -> Result<Vec<RefusalRecord>, StoreError> {
        records::refusals(&mut &*self, query)
    }

    fn refusal_totals(&mut self) -> Result<Vec<RefusalTotal>, StoreError> {
        records::refusal_totals(&mut &*self)
    }

    fn keep_output(&mut self, output: &OutputRecord) -> Result<(), StoreError> {
        self.write(Writing::History, |transaction, _, now| {
            let written = OutputRecord {
                written_at: now.stamp.wall,
                ..output.clone()
            };
            write_row(transaction, sql!("output_write"), &OUTPUTS.cells(&written))?;
            Ok(Kept::Yes(()))
        })
    }

    fn output(
        &mut self,
        group: &GroupName,
        fence: Option<Fence>,
    ) -> Result<Option<OutputRecord>, StoreError> {
        records::output(&mut &*self, group, fence)
    }

    fn once(&mut self, group: &GroupName, key: &str) -> Result<Option<OnceMark>, StoreError> {
        records::key(&mut &*self, group, key)
    }

    fn once_marks(&mut self, group: Option<&GroupName>) -> Result<Vec<OnceMark>, StoreError> {
        records::keys(&mut &*self, group)
    }

    fn prune(&mut self, group: &GroupName, retention: Retention) -> Result<(), StoreError> {
        self.write(Writing::State, |transaction, _, now| {
            prune(transaction, group, retention, now)
        })
    }
}

/// Removes old records, and leaves a note for the next pruning. The lock is held.
fn prune(
    transaction: &Transaction<'_>,
    group: &GroupName,
    retention: Retention,
    now: &StoreTime,
) -> Result<Kept<()>, WriteError> {
    let group = group.as_str();
    let found = transaction.query_row(sql!("note_read"), [group], |row| {
        let text: Option<String> = row.get(0).ok().flatten();
        Ok(text.as_deref().and_then(Note::from_text))
    });
    let Some(last) = found.optional()? else {
        return Ok(Kept::No(()));
    };
    let values = [Cell::text(group), Cell::number(i64::from(PRUNE_BATCH))];
    let runs = read(transaction, sql!("runs_newest"), &values, &SEEN)?;
    let note = Note::next(last, now, true, &mut seen(&SEEN, &runs, 0), retention);
    transaction.execute(sql!("note_write"), [group, &note.to_text()])?;
    let outlived = note.outlived(retention);
    if let Some(Fence(fence)) = outlived.history {
        let before = wall_text(now.wall_before(retention.history));
        let old = params![group, before, fence, PRUNE_BATCH];
        transaction.execute(sql!("runs_prune"), old)?;
        for statement in [sql!("acts_prune"), sql!("refusals_prune")] {
            transaction.execute(statement, params![group, before, fence])?;
        }
    }
    let OutputLimits { retain, count } = retention.outputs;
    let before = wall_text(now.wall_before(retain));
    let fence = outlived.outputs.map(|Fence(fence)| fence);
    let old = params![group, before, fence, OUTPUT_BATCH, count];
    transaction.execute(sql!("outputs_prune"), old)?;
    if let Some(Fence(fence)) = outlived.once {
        let before = wall_text(now.wall_before(retention.once));
        let old = params![group, before, fence, PRUNE_BATCH];
        transaction.execute(sql!("keys_prune"), old)?;
    }
    Ok(Kept::Yes(()))
}

impl Marks for SqliteStore {
    fn advance(&mut self, resource: &ResourceName, fence: Fence) -> Result<Advanced, StoreError> {
        self.write(Writing::History, |transaction, _, now| {
            let at = wall_text(now.stamp.wall);
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
