//! The tables of finished records: their columns, and conversion between values and rows.
//!
//! A value is written as JSON. The fields that queries need become columns, and the rest is the
//! document, so that a new field is added where the value is defined and nowhere else.

use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer as _, Error as _, IgnoredAny,
    IntoDeserializer as _, MapAccess, Visitor,
};
use serde_json::{Map, Value};

use super::cell::{self, BadColumn, Cell, Kind, shortened};
use crate::token::WallTime;
use crate::token::{ClientId, Fence, GroupName, Outcome, SessionId, Version};

/// A column, which is also a field of the value.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
    /// The field's name in the JSON.
    field: &'static str,
    /// True if a value is valid for this field.
    check: fn(&Value) -> Result<(), serde_json::Error>,
}

/// A table whose last column is a document.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    pub name: &'static str,
    /// The columns without the document, in the order of the statements.
    pub columns: &'static [Column],
}

/// Finished runs.
pub const RUNS: Table = Table {
    name: "runs",
    columns: &[
        column::<GroupName>("token_group", Kind::Text),
        column::<Fence>("fence", Kind::Number),
        column::<SessionId>("session", Kind::Text),
        column::<ClientId>("client", Kind::Text),
        column::<Outcome>("outcome", Kind::Text),
        time("started_at", "started_at_ms"),
        time("ended_at", "ended_at_ms"),
    ],
};

/// Acts of operators.
pub const ACTS: Table = Table {
    name: "acts",
    columns: &[
        column::<GroupName>("token_group", Kind::Text),
        time("at", "at_ms"),
        column::<Version>("version", Kind::Number),
        column::<Fence>("fence", Kind::Number),
    ],
};

/// Refused runs.
pub const REFUSALS: Table = Table {
    name: "refusals",
    columns: &[
        column::<GroupName>("token_group", Kind::Text),
        column::<ClientId>("client", Kind::Text),
        column::<String>("reason", Kind::Text),
        column::<String>("cause", Kind::Text),
        time("first_at", "first_at_ms"),
        time("last_at", "last_at_ms"),
        column::<u64>("count", Kind::Number),
        column::<Fence>("fence", Kind::Number),
    ],
};

/// The numbers of refusals.
pub const TOTALS: Table = Table {
    name: "refusal_totals",
    columns: &[
        column::<GroupName>("token_group", Kind::Text),
        column::<String>("reason", Kind::Text),
        column::<u64>("total", Kind::Number),
    ],
};

/// The output of finished runs.
pub const OUTPUTS: Table = Table {
    name: "outputs",
    columns: &[
        column::<GroupName>("token_group", Kind::Text),
        column::<Fence>("fence", Kind::Number),
        column::<SessionId>("session", Kind::Text),
        time("written_at", "written_at_ms"),
    ],
};

/// The keys of `--once` that are done.
pub const KEYS: Table = Table {
    name: "done_keys",
    columns: &[
        column::<GroupName>("token_group", Kind::Text),
        column::<String>("once_key", Kind::Text),
        time("done_at", "done_at_ms"),
        column::<Fence>("fence", Kind::Number),
    ],
};

const fn column<T: DeserializeOwned>(name: &'static str, kind: Kind) -> Column {
    Column {
        name,
        kind,
        field: name,
        check: check::<T>,
    }
}

const fn time(name: &'static str, field: &'static str) -> Column {
    Column {
        name,
        kind: Kind::Time,
        field,
        check: check::<i64>,
    }
}

fn check<T: DeserializeOwned>(value: &Value) -> Result<(), serde_json::Error> {
    T::deserialize(value).map(drop)
}

impl Table {
    /// The columns of the table in an answer, with the document.
    pub fn answer(&self) -> Vec<cell::Column> {
        let columns = self.columns.iter();
        let columns = columns.map(|column| cell::Column::new(column.name, column.kind));
        columns.chain([cell::text(DOCUMENT)]).collect()
    }

    /// NULL in each column, and in the document.
    pub fn none(&self) -> Vec<Cell> {
        let mut fields = Map::new();
        let columns = self.taken_from(&mut fields);
        columns.chain([Cell::Text(None)]).collect()
    }

    /// The cells of a value: its columns, then its document.
    pub fn cells(&self, value: &impl Serialize) -> Vec<Cell> {
        // The values are structs whose maps have texts as keys: nothing can fail.
        let Ok(Value::Object(mut fields)) = serde_json::to_value(value) else {
            return self.none();
        };
        let mut cells: Vec<Cell> = self.taken_from(&mut fields).collect();
        cells.push(Cell::text(&Value::Object(fields)));
        cells
    }

    /// The cells of the columns, whose fields are taken out of these; NULL where there is none.
    fn taken_from(&self, fields: &mut Map<String, Value>) -> impl Iterator<Item = Cell> {
        self.columns.iter().map(|column| {
            let field = fields.remove(column.field);
            match column.kind {
                Kind::Text => Cell::Text(field.and_then(|it| it.as_str().map(str::to_owned))),
                Kind::Time => Cell::Time(field.and_then(|it| it.as_i64()).map(WallTime)),
                _ => Cell::Number(field.and_then(|it| it.as_i64())),
            }
        })
    }

    /// The value in a row: its columns, then its document.
    ///
    /// # Errors
    /// Which column is malformed, and what is wrong with it.
    pub fn value<T: DeserializeOwned>(&self, cells: Vec<Cell>) -> Result<T, BadColumn> {
        let mut cells = cells.into_iter();
        let mut columns = Vec::with_capacity(self.columns.len());
        for (column, cell) in self.columns.iter().zip(cells.by_ref()) {
            let value = match cell {
                Cell::Text(Some(text)) => Value::from(text),
                Cell::Number(Some(number)) | Cell::Time(Some(WallTime(number))) => {
                    Value::from(number)
                }
                Cell::Bad(bad) => return Err(*bad),
                _ => return Err(BadColumn::of(column.name, "is NULL")),
            };
            columns.push((column, value));
        }
        let document = match cells.next() {
            Some(Cell::Text(Some(text))) => text,
            Some(Cell::Bad(bad)) => return Err(*bad),
            _ => return Err(BadColumn::of(DOCUMENT, "is NULL")),
        };
        let mut json = serde_json::Deserializer::from_str(&document);
        let fields = Fields(&columns, PhantomData);
        let found = json.deserialize_map(fields);
        let found = found.and_then(|value| json.end().map(|()| value));
        found.map_err(|why| {
            let mut bad = columns.iter().filter_map(|(column, value)| {
                let why = (column.check)(value).err()?;
                Some(BadColumn::of(column.name, wrong(value, &why)))
            });
            let document = || BadColumn::of(DOCUMENT, format!("is wrong: {why}"));
            bad.next().unwrap_or_else(document)
        })
    }
}

/// Reads a value from a document and the columns beside it, without a map of both: a page reads tens of
/// thousands of runs.
struct Fields<'a, T>(&'a [(&'static Column, Value)], PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for Fields<'_, T> {
    type Value = T;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, document: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(Joined {
            columns: self.0,
            next: 0,
            document,
        }))
    }
}

/// The fields of the columns, then those of a document that no column has.
struct Joined<'a, A> {
    columns: &'a [(&'static Column, Value)],
    /// How many columns are read; more than there are behind the first field of the document.
    next: usize,
    document: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Joined<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        self.next += 1;
        if let Some((column, _)) = self.columns.get(self.next - 1) {
            return seed.deserialize(column.field.into_deserializer()).map(Some);
        }
        while let Some(key) = self.document.next_key::<String>()? {
            if self.columns.iter().all(|(column, _)| column.field != key) {
                return seed.deserialize(key.into_deserializer()).map(Some);
            }
            self.document.next_value::<IgnoredAny>()?;
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match self.columns.get(self.next - 1) {
            Some((_, value)) => seed.deserialize(value.clone()).map_err(A::Error::custom),
            None => self.document.next_value_seed(seed),
        }
    }
}

const DOCUMENT: &str = "document";

/// A wrong value in one line, shortened.
fn wrong(value: &Value, why: &serde_json::Error) -> String {
    format!("is {}: {why}", shortened(&value.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::RunRecord;
    use crate::token::record::fixture::unheld_run;

    fn run() -> RunRecord {
        RunRecord {
            ended_at: Some(WallTime(1_790_000_000_000)),
            ..unheld_run(&GroupName::new("g").unwrap(), 7)
        }
    }

    #[test]
    fn a_value_is_read_as_written_and_its_document_repeats_no_column() {
        let cells = RUNS.cells(&run());
        assert_eq!(cells.len(), RUNS.columns.len() + 1);
        let Some(Cell::Text(Some(document))) = cells.last() else {
            panic!("no document: {cells:?}");
        };
        let fields: Map<String, Value> = serde_json::from_str(document).unwrap();
        for column in RUNS.columns {
            assert!(!fields.contains_key(column.field), "{document}");
        }
        assert_eq!(RUNS.value::<RunRecord>(cells), Ok(run()));
    }

    #[test]
    fn the_column_that_is_wrong_is_named() {
        for (index, cell, words) in [
            (1, Cell::number(-1), "fence is -1"),
            (2, Cell::text(""), "session is \"\""),
            (3, Cell::Text(None), "client is NULL"),
            (4, Cell::text("splendid"), "outcome is \"splendid\""),
            (7, Cell::text("[]"), "document is wrong"),
            (7, Cell::text("{}"), "document is wrong: missing field"),
        ] {
            let mut cells = RUNS.cells(&run());
            cells[index] = cell;
            let BadColumn { column, what } = RUNS.value::<RunRecord>(cells).unwrap_err();
            let shown = format!("{column} {what}");
            assert!(shown.starts_with(words), "{shown}");
        }
    }

    #[test]
    fn a_column_stands_above_a_field_of_the_document() {
        let mut cells = RUNS.cells(&run());
        let Some(Cell::Text(Some(document))) = cells.pop() else {
            panic!("no document");
        };
        cells.push(Cell::text(&document.replacen('{', r#"{"fence": -1, "#, 1)));
        assert_eq!(RUNS.value::<RunRecord>(cells), Ok(run()));
    }

    #[test]
    fn fields_of_a_newer_program_are_carried_on() {
        let mut cells = RUNS.cells(&run());
        cells[7] = Cell::text(r#"{"program": "p", "grant": "bind", "colour": "red"}"#);
        let found: RunRecord = RUNS.value(cells).unwrap();
        let again = RUNS.cells(&found);
        assert!(again[7] != RUNS.cells(&run())[7] && RUNS.value(again) == Ok(found));
    }
}
