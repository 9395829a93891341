//! The tables of finished runs and their output, refusals, acts of operators, and keys that are done.

use rusqlite::params_from_iter;

use super::cells::Cells;
use super::kept::Kept;
use super::write::{newest_refusal, value, write_row, write_run};
use super::{SqliteStore, Writing, group_in, prune};
use crate::store::sql::cell::{BadColumn, Cell, Kind};
use crate::store::sql::cold::{self, Dialect, Found, Statements};
use crate::store::sql::table::{KEYS, OUTPUTS, REFUSALS, Table};
use crate::store::{ActQuery, Records, RefusalQuery, Retention, RunQuery, StoreError};
use crate::token::{
    ActRecord, Fence, GroupName, OnceMark, OutputRecord, Recorded, RefusalRecord, RefusalTotal,
    RunRecord,
};

impl Dialect for SqliteStore {
    fn statements(&self) -> Statements {
        Statements {
            runs: sql!("runs"),
            runs_of_group: sql!("runs_of_group"),
            acts: sql!("acts"),
            refusals: sql!("refusals"),
            refusal_totals: sql!("refusal_totals"),
            output: sql!("output"),
            key: sql!("key"),
            keys: sql!("keys"),
        }
    }

    fn select(
        &mut self,
        table: &Table,
        statement: &str,
        values: &[Cell],
    ) -> Result<Vec<Found>, StoreError> {
        let values = params_from_iter(values.iter().map(value));
        self.rows(statement, values, |row| {
            Ok(Found {
                group: group_in(row),
                cells: cells_of(table, row),
            })
        })
    }

    fn bad_row(&self, table: &Table, group: &str, bad: &BadColumn) -> StoreError {
        self.location.bad_cell(table.name, group, bad)
    }
}

/// A row's columns, then its document.
fn cells_of(table: &Table, row: &rusqlite::Row<'_>) -> Result<Vec<Cell>, BadColumn> {
    let mut found = Vec::with_capacity(table.columns.len() + 1);
    for (index, column) in table.columns.iter().enumerate() {
        let mut cells = Cells::of_column(row, index, column.name);
        found.push(match column.kind {
            Kind::Text => Cell::Text(cells.text()?.map(str::to_owned)),
            Kind::Number => Cell::Number(cells.number()?),
            Kind::Time => Cell::Time(cells.wall()?),
        });
    }
    let mut document = Cells::of_column(row, table.columns.len(), "document");
    found.push(Cell::Text(document.text()?.map(str::to_owned)));
    Ok(found)
}

impl SqliteStore {
    /// The run that made a key done.
    pub(super) fn key(&self, group: &GroupName, key: &str) -> Result<Option<OnceMark>, StoreError> {
        let mut found = self.rows(sql!("key"), [group.as_str(), key], |row| {
            let mark = cells_of(&KEYS, row).and_then(|cells| KEYS.value(cells));
            mark.map_err(|bad| self.bad_row(&KEYS, &group_in(row), &bad))
        })?;
        Ok(found.pop())
    }
}

impl Records for SqliteStore {
    fn record(&mut self, run: &RunRecord) -> Result<Recorded, StoreError> {
        self.write(Writing::History, |transaction, _, now| {
            Ok(Kept::Yes(write_run(transaction, run, now)?))
        })
    }

    fn runs(&mut self, query: &RunQuery) -> Result<Vec<RunRecord>, StoreError> {
        cold::runs(self, query)
    }

    fn acts(&mut self, query: &ActQuery) -> Result<Vec<ActRecord>, StoreError> {
        cold::acts(self, query)
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
        cold::refusals(self, query)
    }

    fn refusal_totals(&mut self) -> Result<Vec<RefusalTotal>, StoreError> {
        cold::refusal_totals(self)
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
        cold::output(self, group, fence)
    }

    fn once(&mut self, group: &GroupName, key: &str) -> Result<Option<OnceMark>, StoreError> {
        self.key(group, key)
    }

    fn once_marks(&mut self, group: Option<&GroupName>) -> Result<Vec<OnceMark>, StoreError> {
        cold::keys(self, group)
    }

    fn prune(&mut self, group: &GroupName, retention: Retention) -> Result<(), StoreError> {
        self.write(Writing::State, |transaction, _, now| {
            prune::prune(transaction, group, retention, now)
        })
    }
}
