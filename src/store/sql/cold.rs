//! Reading history, refusals, outputs, acts and keys, the same way in every store with tables, with the statements of
//! its database.

use serde::de::DeserializeOwned;

use super::cell::{BadColumn, Cell};
use super::table::{ACTS, KEYS, OUTPUTS, REFUSALS, RUNS, TOTALS, Table};
use crate::store::{ActQuery, RefusalQuery, RunQuery, StoreError};
use crate::token::{
    ActRecord, Fence, GroupName, OnceMark, Outcome, OutputRecord, RefusalRecord, RefusalTotal,
    RunRecord,
};

/// The statements for reading, each with its values.
#[derive(Debug, Clone, Copy)]
pub struct Statements {
    /// Runs of all groups: limit, client, outcomes, since, until.
    pub runs: &'static str,
    /// Runs of one group: as above, and the group.
    pub runs_of_group: &'static str,
    /// Acts: limit, group, since, until.
    pub acts: &'static str,
    /// Refusals: limit, group, since, until.
    pub refusals: &'static str,
    /// The numbers of refusals: no values.
    pub refusal_totals: &'static str,
    /// An output: group; fence, or NULL for the newest.
    pub output: &'static str,
    /// A key: group, key.
    pub key: &'static str,
    /// Keys: group.
    pub keys: &'static str,
}

/// A row.
#[derive(Debug)]
pub struct Found {
    /// Its group, for messages.
    pub group: String,
    /// Its cells, or what is wrong with one of them.
    pub cells: Result<Vec<Cell>, BadColumn>,
}

/// A database with tables.
pub trait Dialect {
    /// Its statements.
    fn statements(&self) -> Statements;

    /// Carries out a statement that reads a table: its columns and its document.
    ///
    /// # Errors
    /// If the store can't be read.
    fn select(
        &mut self,
        table: &Table,
        statement: &str,
        values: &[Cell],
    ) -> Result<Vec<Found>, StoreError>;

    /// The error of a malformed row.
    fn bad_row(&self, table: &Table, group: &str, bad: &BadColumn) -> StoreError;
}

/// Finished runs.
///
/// # Errors
/// If the store can't be read, or holds a malformed run.
pub fn runs(of: &mut dyn Dialect, query: &RunQuery) -> Result<Vec<RunRecord>, StoreError> {
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
///
/// # Errors
/// If the store can't be read, or holds a malformed act.
pub fn acts(of: &mut dyn Dialect, query: &ActQuery) -> Result<Vec<ActRecord>, StoreError> {
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
///
/// # Errors
/// If the store can't be read, or holds a malformed refusal.
pub fn refusals(
    of: &mut dyn Dialect,
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
///
/// # Errors
/// If the store can't be read, or holds a malformed number.
pub fn refusal_totals(of: &mut dyn Dialect) -> Result<Vec<RefusalTotal>, StoreError> {
    let statement = of.statements().refusal_totals;
    values_of(of, &TOTALS, statement, &[])
}

/// The output of a run, or of the newest run that has one.
///
/// # Errors
/// If the store can't be read, or holds a malformed output.
pub fn output(
    of: &mut dyn Dialect,
    group: &GroupName,
    fence: Option<Fence>,
) -> Result<Option<OutputRecord>, StoreError> {
    let values = [Cell::text(group), Cell::Number(fence.map(|it| it.0))];
    let statement = of.statements().output;
    Ok(values_of(of, &OUTPUTS, statement, &values)?.pop())
}

/// The run that made a key done.
///
/// # Errors
/// If the store can't be read, or holds a malformed key.
pub fn key(
    of: &mut dyn Dialect,
    group: &GroupName,
    key: &str,
) -> Result<Option<OnceMark>, StoreError> {
    let values = [Cell::text(group), Cell::text(key)];
    let statement = of.statements().key;
    Ok(values_of(of, &KEYS, statement, &values)?.pop())
}

/// The keys that are done.
///
/// # Errors
/// If the store can't be read, or holds a malformed key.
pub fn keys(of: &mut dyn Dialect, group: Option<&GroupName>) -> Result<Vec<OnceMark>, StoreError> {
    let statement = of.statements().keys;
    values_of(of, &KEYS, statement, &[Cell::maybe(group)])
}

fn values_of<T: DeserializeOwned>(
    of: &mut dyn Dialect,
    table: &Table,
    statement: &str,
    values: &[Cell],
) -> Result<Vec<T>, StoreError> {
    let found = of.select(table, statement, values)?;
    let mut taken = Vec::with_capacity(found.len());
    for Found { group, cells } in found {
        let value = cells.and_then(|cells| table.value(cells));
        taken.push(value.map_err(|bad| of.bad_row(table, &group, &bad))?);
    }
    Ok(taken)
}
