//! The tables of finished runs, acts of operators, and keys that are done.

use rusqlite::params_from_iter;

use super::cells::Cells;
use super::kept::Kept;
use super::write::{value, write_run};
use super::{SqliteStore, Writing, group_in, prune};
use crate::store::sql::cell::{BadColumn, Cell, Kind};
use crate::store::sql::cold::{self, Dialect, Found, Statements};
use crate::store::sql::table::Table;
use crate::store::{ActQuery, Records, Retention, RunQuery, StoreError};
use crate::token::{ActRecord, GroupName, OnceMark, Recorded, RunRecord};

impl Dialect for SqliteStore {
    fn statements(&self) -> Statements {
        Statements {
            runs: sql!("runs"),
            runs_of_group: sql!("runs_of_group"),
            acts: sql!("acts"),
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

    fn once(&mut self, group: &GroupName, key: &str) -> Result<Option<OnceMark>, StoreError> {
        cold::key(self, group, key)
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
