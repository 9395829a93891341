//! The tables of finished runs, acts of operators, and keys that are done.

use super::PostgresStore;
use super::cells::cells_of;
use super::statements::sql;
use crate::store::sql::cell::{BadColumn, Cell};
use crate::store::sql::cold::{self, Dialect, Found};
use crate::store::sql::table::Table;
use crate::store::{ActQuery, Records, Retention, RunQuery, StoreError};
use crate::token::{ActRecord, GroupName, OnceMark, Recorded, RunRecord};

impl Dialect for PostgresStore {
    fn statements(&self) -> cold::Statements {
        cold::Statements {
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
        let rows = self.connection.ask(self.timeout, statement, values);
        self.lacks_tables = rows.as_ref().is_err_and(|failed| failed.no_schema);
        let rows = rows.map_err(|failed| self.listed(failed))?;
        let found = rows.iter().map(|row| Found {
            group: row.try_get("token_group").unwrap_or("?").to_owned(),
            cells: cells_of(table, row),
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
