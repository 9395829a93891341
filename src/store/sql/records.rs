//! Reading history, refusals, outputs, acts and keys, the same way in every store with tables, with the statements of
//! its database.

use serde::de::DeserializeOwned;

use super::Statements;
use super::cell::{BadColumn, Cell, Cells, Column, Kind, Rows, group_of, number};
use super::table::{ACTS, KEYS, OUTPUTS, REFUSALS, RUNS, TOTALS, Table};
use crate::store::pruning::Seen;
use crate::store::{ActQuery, RefusalQuery, RunQuery, StoreError};
use crate::token::{
    ActRecord, Fence, GroupName, OnceMark, Outcome, OutputRecord, RefusalRecord, RefusalTotal,
    RunRecord,
};

/// A database with tables.
pub trait Reads {
    fn statements(&self) -> &'static Statements;

    /// Carries out a statement that reads rows of these columns.
    fn select(
        &mut self,
        statement: &'static str,
        values: &[Cell],
        columns: &[Column],
    ) -> Result<Rows, StoreError>;

    /// The error of a malformed row of a table.
    fn bad_row(&self, table: &str, group: &str, bad: &BadColumn) -> StoreError;
}

/// Finished runs.
pub fn runs(of: &mut dyn Reads, query: &RunQuery) -> Result<Vec<RunRecord>, StoreError> {
    let mut values = vec![
        Cell::limit(query.limit),
        Cell::maybe(query.client.as_ref()),
        Cell::Text(outcomes(&query.outcomes)),
        Cell::Time(query.since),
        Cell::Time(query.until),
    ];
    let statement = match &query.group {
        None => of.statements().runs,
        Some(group) => {
            values.push(Cell::text(group));
            of.statements().runs_of_group
        }
    };
    values_of(of, &RUNS, statement, &values)
}

/// Outcomes as the statements take them: `,failed,lost,`; `None` for any.
fn outcomes(of: &[Outcome]) -> Option<String> {
    let words = of.iter().map(|outcome| outcome.as_str());
    let words: Vec<&str> = words.collect();
    (!words.is_empty()).then(|| format!(",{},", words.join(",")))
}

/// Acts of operators.
pub fn acts(of: &mut dyn Reads, query: &ActQuery) -> Result<Vec<ActRecord>, StoreError> {
    let values = [
        Cell::limit(query.limit),
        Cell::maybe(query.group.as_ref()),
        Cell::Time(query.since),
        Cell::Time(query.until),
    ];
    let statement = of.statements().acts;
    values_of(of, &ACTS, statement, &values)
}

/// Refused runs.
pub fn refusals(
    of: &mut dyn Reads,
    query: &RefusalQuery,
) -> Result<Vec<RefusalRecord>, StoreError> {
    let values = [
        Cell::limit(query.limit),
        Cell::maybe(query.group.as_ref()),
        Cell::Time(query.since),
        Cell::Time(query.until),
    ];
    let statement = of.statements().refusals;
    values_of(of, &REFUSALS, statement, &values)
}

/// The numbers of refusals.
pub fn refusal_totals(of: &mut dyn Reads) -> Result<Vec<RefusalTotal>, StoreError> {
    let statement = of.statements().refusal_totals;
    values_of(of, &TOTALS, statement, &[])
}

/// The output of a run, or of the newest run that has one.
pub fn output(
    of: &mut dyn Reads,
    group: &GroupName,
    fence: Option<Fence>,
) -> Result<Option<OutputRecord>, StoreError> {
    let values = [Cell::text(group), Cell::Number(fence.map(|it| it.0))];
    let statement = of.statements().output;
    Ok(values_of(of, &OUTPUTS, statement, &values)?.pop())
}

/// The run that made a key done.
pub fn key(
    of: &mut dyn Reads,
    group: &GroupName,
    key: &str,
) -> Result<Option<OnceMark>, StoreError> {
    let values = [Cell::text(group), Cell::text(key)];
    let statement = of.statements().key;
    Ok(values_of(of, &KEYS, statement, &values)?.pop())
}

/// The keys that are done.
pub fn keys(of: &mut dyn Reads, group: Option<&GroupName>) -> Result<Vec<OnceMark>, StoreError> {
    let statement = of.statements().keys;
    values_of(of, &KEYS, statement, &[Cell::maybe(group)])
}

/// A run as evidence of time, for pruning.
pub const SEEN: [Column; 2] = [number("fence"), Column::new("started_at", Kind::Time)];

/// The runs in these rows from column `first` on, without those with malformed cells, which are no evidence of time.
pub fn seen(columns: &[Column], rows: &Rows, first: usize) -> Vec<Seen> {
    let run = |row: &Vec<Cell>| {
        let mut cells = Cells::new(columns, row).after(first);
        Some(Seen {
            fence: Fence(cells.number().ok()??),
            started_at: cells.wall().ok()??,
        })
    };
    rows.iter().filter_map(run).collect()
}

fn values_of<T: DeserializeOwned>(
    of: &mut dyn Reads,
    table: &Table,
    statement: &'static str,
    values: &[Cell],
) -> Result<Vec<T>, StoreError> {
    let columns = table.answer();
    let rows = of.select(statement, values, &columns)?;
    let mut taken = Vec::with_capacity(rows.len());
    for row in rows {
        let group = group_of(Cells::new(&columns, &row));
        let value = table.value(row);
        taken.push(value.map_err(|bad| of.bad_row(table.name, &group, &bad))?);
    }
    Ok(taken)
}
