//! The tables of finished runs and their output, refusals, acts of operators, and keys that are done.

use super::PostgresStore;
use super::cells::{cells_of, millis};
use super::link::Answered as _;
use super::statements::sql;
use crate::store::sql::cell::{BadColumn, Cell};
use crate::store::sql::cold::{self, Dialect, Found};
use crate::store::sql::table::{OUTPUTS, REFUSALS, Table};
use crate::store::{ActQuery, Records, RefusalQuery, Retention, RunQuery, StoreError};
use crate::token::refusal::{LEAST_PAUSE, SAME_RECORD};
use crate::token::{
    ActRecord, Fence, GroupName, OnceMark, OutputRecord, Recorded, RefusalRecord, RefusalTotal,
    RunRecord,
};

impl Dialect for PostgresStore {
    fn statements(&self) -> cold::Statements {
        cold::Statements {
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
        let rows = self.connection.query(self.timeout, statement, values);
        self.lacks_tables = rows.as_ref().is_err_and(|failed| failed.has_no_tables());
        let rows = rows.map_err(|failed| self.listed(failed))?;
        let found = rows.iter().map(|row| Found {
            group: row.try_get("token_group").unwrap_or("?").to_owned(),
            cells: cells_of(table, row, 0),
        });
        Ok(found.collect())
    }

    fn bad_row(&self, table: &Table, _: &str, bad: &BadColumn) -> StoreError {
        self.bad_column(table.name, bad)
    }
}

impl Records for PostgresStore {
    fn record(&mut self, run: &RunRecord) -> Result<Recorded, StoreError> {
        self.write_run(run)
    }

    fn runs(&mut self, query: &RunQuery) -> Result<Vec<RunRecord>, StoreError> {
        cold::runs(self, query)
    }

    fn acts(&mut self, query: &ActQuery) -> Result<Vec<ActRecord>, StoreError> {
        cold::acts(self, query)
    }

    fn refuse(&mut self, refusal: &RefusalRecord) -> Result<(), StoreError> {
        let mut cells = REFUSALS.cells(refusal).into_iter();
        // The server sets the times and the count.
        let key: Vec<Cell> = cells.by_ref().take(4).collect();
        let values: Vec<Cell> = (key.into_iter().chain(cells.skip(3)))
            .chain([millis(LEAST_PAUSE), millis(SAME_RECORD)])
            .collect();
        let statement = self.statements.of(sql!("refuse"));
        let written = self.connection.query(self.timeout, &statement, &values);
        written.map(drop).map_err(|failed| failed.error)
    }

    fn refusals(&mut self, query: &RefusalQuery) -> Result<Vec<RefusalRecord>, StoreError> {
        cold::refusals(self, query)
    }

    fn refusal_totals(&mut self) -> Result<Vec<RefusalTotal>, StoreError> {
        cold::refusal_totals(self)
    }

    fn keep_output(&mut self, output: &OutputRecord) -> Result<(), StoreError> {
        let mut cells = OUTPUTS.cells(output);
        // The server sets the time, before the document.
        cells.remove(OUTPUTS.columns.len() - 1);
        let statement = self.statements.of(sql!("output_write"));
        let written = self.connection.query(self.timeout, &statement, &cells);
        written.map(drop).map_err(|failed| failed.error)
    }

    fn output(
        &mut self,
        group: &GroupName,
        fence: Option<Fence>,
    ) -> Result<Option<OutputRecord>, StoreError> {
        cold::output(self, group, fence)
    }

    fn once(&mut self, group: &GroupName, key: &str) -> Result<Option<OnceMark>, StoreError> {
        let found = cold::key(self, group, key);
        if found.is_err() && std::mem::take(&mut self.lacks_tables) {
            // This read comes before the first look at the token.
            self.init()?;
            return cold::key(self, group, key);
        }
        found
    }

    fn once_marks(&mut self, group: Option<&GroupName>) -> Result<Vec<OnceMark>, StoreError> {
        cold::keys(self, group)
    }

    fn prune(&mut self, group: &GroupName, retention: Retention) -> Result<(), StoreError> {
        let pruned = self.prune_if_possible(group, retention);
        pruned.map_err(|failed| failed.error)
    }
}
