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

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use serde::Serialize;

    use super::*;
    use crate::token::record::fixture::{act, output as output_of, unheld_run};
    use crate::token::refusal::fixture::refused;
    use crate::token::{ClientId, WallTime};

    /// A database that answers each statement with these rows.
    struct Given {
        rows: Rows,
        /// What was asked: the statement, its values, and the columns of the answer.
        asked: Vec<(&'static str, Vec<Cell>, Vec<&'static str>)>,
    }

    impl Reads for Given {
        fn statements(&self) -> &'static Statements {
            &Statements {
                runs: "runs",
                runs_of_group: "runs_of_group",
                acts: "acts",
                refusals: "refusals",
                refusal_totals: "refusal_totals",
                output: "output",
                key: "key",
                keys: "keys",
            }
        }

        fn select(
            &mut self,
            statement: &'static str,
            values: &[Cell],
            columns: &[Column],
        ) -> Result<Rows, StoreError> {
            let columns = columns.iter().map(|column| column.name).collect();
            self.asked.push((statement, values.to_vec(), columns));
            Ok(self.rows.clone())
        }

        fn bad_row(&self, table: &str, group: &str, bad: &BadColumn) -> StoreError {
            StoreError::unavailable(format!("{table} {group} {}", bad.column))
        }
    }

    /// Reads the record from a row, and from one with a wrong document; `statement` is asked with `values`.
    fn reads<T: Serialize + PartialEq + Debug>(
        table: &Table,
        record: &T,
        (statement, values): (&'static str, &[Cell]),
        read: impl Fn(&mut dyn Reads) -> Result<Option<T>, StoreError>,
    ) {
        let mut row = table.cells(record);
        let mut given = Given {
            rows: vec![row.clone()],
            asked: Vec::new(),
        };
        assert_eq!(read(&mut given).unwrap().as_ref(), Some(record));
        let names = table.columns.iter().map(|column| column.name);
        let columns = names.chain(["document"]).collect();
        assert_eq!(given.asked, [(statement, values.to_vec(), columns)]);
        row.pop();
        row.push(Cell::text("{"));
        given.rows = vec![row];
        let error = read(&mut given).unwrap_err();
        assert_eq!(error.what, format!("{} g document", table.name));
    }

    const SINCE: Option<WallTime> = Some(WallTime(1));
    const UNTIL: Option<WallTime> = Some(WallTime(2));

    #[test]
    fn each_kind_of_record_is_read_by_its_statement_and_a_wrong_one_is_named() {
        let group = &GroupName::new("g").unwrap();
        let run = RunRecord {
            ended_at: Some(WallTime(9)),
            ..unheld_run(group, 7)
        };
        let all = RunQuery::default();
        let times = |since, until| [Cell::Time(since), Cell::Time(until)];
        let of_all = [Cell::number(i64::MAX), Cell::Text(None), Cell::Text(None)];
        let of_all = [&of_all[..], &times(None, None)].concat();
        reads(&RUNS, &run, ("runs", &of_all), |of| {
            Ok(runs(of, &all)?.pop())
        });
        let some = RunQuery {
            group: Some(group.clone()),
            client: Some(ClientId::new("a").unwrap()),
            outcomes: vec![Outcome::Failed, Outcome::Lost],
            since: SINCE,
            until: UNTIL,
            limit: Some(5),
        };
        let words = [
            Cell::number(5),
            Cell::text("a"),
            Cell::text(",failed,lost,"),
        ];
        let of_group = [&words[..], &times(SINCE, UNTIL), &[Cell::text("g")]].concat();
        reads(&RUNS, &run, ("runs_of_group", &of_group), |of| {
            Ok(runs(of, &some)?.pop())
        });
        let values = [
            &[Cell::number(5), Cell::text("g")],
            &times(SINCE, UNTIL)[..],
        ]
        .concat();
        let query = ActQuery {
            group: Some(group.clone()),
            since: SINCE,
            until: UNTIL,
            limit: Some(5),
        };
        reads(&ACTS, &act("free"), ("acts", &values), |of| {
            Ok(acts(of, &query)?.pop())
        });
        let query = RefusalQuery {
            group: Some(group.clone()),
            since: SINCE,
            until: UNTIL,
            limit: Some(5),
        };
        let refusal = refused("g", "a", "held");
        reads(&REFUSALS, &refusal, ("refusals", &values), |of| {
            Ok(refusals(of, &query)?.pop())
        });
        let total = RefusalTotal {
            group: group.clone(),
            reason: "held".into(),
            total: 4,
        };
        reads(&TOTALS, &total, ("refusal_totals", &[]), |of| {
            Ok(refusal_totals(of)?.pop())
        });
        let values = [Cell::text("g"), Cell::number(7)];
        reads(
            &OUTPUTS,
            &output_of("g", 7, ""),
            ("output", &values),
            |of| output(of, group, Some(Fence(7))),
        );
        let mark = run.once_mark(WallTime(9)).unwrap();
        let values = [Cell::text("g"), Cell::text("key")];
        reads(&KEYS, &mark, ("key", &values), |of| key(of, group, "key"));
        reads(&KEYS, &mark, ("keys", &values[..1]), |of| {
            Ok(keys(of, Some(group))?.pop())
        });
    }

    #[test]
    fn a_run_with_a_malformed_cell_is_no_evidence_of_time() {
        let columns = [&[number("n")], &SEEN[..]].concat();
        let bad = Cell::Bad(Box::new(BadColumn::of("started_at", "lies before 1970")));
        let rows = [Cell::Time(Some(WallTime(9))), bad, Cell::Time(None)]
            .map(|at| vec![Cell::number(1), Cell::number(7), at]);
        let evidence = Seen {
            fence: Fence(7),
            started_at: WallTime(9),
        };
        assert_eq!(seen(&columns, &rows.to_vec(), 1), [evidence]);
    }
}
