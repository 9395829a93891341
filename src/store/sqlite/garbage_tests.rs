//! The contents of the file are never trusted.

use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use rusqlite::Connection;
use rusqlite::types::Value;
use tempfile::TempDir;

use super::cells::values;
use super::{SqliteStore, tokens};
use crate::store::sql::cell::{Column, Kind};
use crate::store::sql::table::{ACTS, KEYS, RUNS};
use crate::store::sql::token::TOKEN;
use crate::store::sql::waiter;
use crate::store::{Records as _, RunQuery, StoreError, Tokens as _, Trouble};
use crate::token::record::fixture::unheld_run;
use crate::token::swap::{creation, grant};
use crate::token::{
    About, Claim, ClientId, GrantKind, GroupName, SessionId, Swapped, Timing, Version, Wishes,
};

fn claim(group: &str) -> Claim {
    Claim {
        group: GroupName::new(group).unwrap(),
        client: ClientId::new("a").unwrap(),
        session: SessionId::new("s1").unwrap(),
        expected: None,
        failback: false,
        nested_in: None,
        timing: Timing::new(&Wishes::default()).unwrap(),
        about: About::default(),
    }
}

/// Creates a group's row.
pub(super) fn create(store: &mut SqliteStore, group: &str) {
    let now = store.read(&GroupName::new(group).unwrap()).unwrap().now;
    let swap = creation(&claim(group), &now, Version::from_random(2));
    assert!(matches!(store.swap(&swap).unwrap(), Swapped::Done(_)));
}

fn try_grant(store: &mut SqliteStore, group: &str) -> Result<Swapped, StoreError> {
    let reading = store.read(&GroupName::new(group).unwrap())?;
    let swap = grant(
        &claim(group),
        GrantKind::Bind,
        reading.row.as_ref(),
        &reading.now,
        Version::from_random(4),
    );
    store.swap(&swap)
}

/// A store that contains a running group "g".
struct Spoilt {
    _directory: TempDir,
    path: PathBuf,
}

impl Spoilt {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokens.db");
        let spoilt = Self {
            _directory: directory,
            path,
        };
        let granted = try_grant(&mut spoilt.store(), "g").unwrap();
        assert!(matches!(granted, Swapped::Done(_)));
        let run = unheld_run(&GroupName::new("g").unwrap(), 1);
        spoilt.store().record(&run).unwrap();
        spoilt
    }

    fn store(&self) -> SqliteStore {
        SqliteStore::open(&self.path, Duration::from_secs(5)).unwrap()
    }

    fn read(&self) -> Result<(), StoreError> {
        let group = GroupName::new("g").unwrap();
        self.store().read(&group).map(|_| ())
    }

    fn sqlite(&self) -> Connection {
        Connection::open(&self.path).unwrap()
    }

    /// Removes the types from the tables, as in a file made by another program.
    fn without_types(&self) {
        let sqlite = self.sqlite();
        for (table, columns) in [("tokens", stored(&TOKEN)), ("runs", run_columns())] {
            let columns = columns.join(", ");
            sqlite
                .execute_batch(&format!(
                    "CREATE TABLE untyped AS SELECT {columns} FROM {table};
                     DROP TABLE {table};
                     CREATE TABLE {table} ({columns});
                     INSERT INTO {table} SELECT * FROM untyped;
                     DROP TABLE untyped;"
                ))
                .unwrap();
        }
    }
}

fn names(error: &StoreError, path: &Path, column: &str) {
    assert_eq!(error.trouble, Trouble::Misconfigured, "{error}");
    let path = path.to_str().unwrap();
    for part in [path, "group \"g\"", &format!(": {column} ")] {
        assert!(error.to_string().contains(part), "{part:?} in {error}");
    }
    assert!(!error.to_string().contains('\n'), "{error}");
}

#[test]
fn a_malformed_row_is_an_error_that_names_file_group_and_column() {
    let spoilt = Spoilt::new();
    let good = spoilt.sqlite();
    let set = |field: &str, json: &str| {
        format!("document = json_set(document, '$.{field}', json('{json}'))")
    };
    for (change, column) in [
        ("state = 'jogging'".to_owned(), "state"),
        ("state = 'free'".into(), "client_bound"),
        ("state = 'idle'".into(), "document"),
        ("client_bound = NULL".into(), "client_bound"),
        ("client_bound = char(7)".into(), "client_bound"),
        ("stamped_at = 'yesterday'".into(), "stamped_at"),
        ("fence = -1".into(), "fence"),
        ("document = ''".into(), "document"),
        ("document = '[]'".into(), "document"),
        (
            "document = json_remove(document, '$.run')".into(),
            "document",
        ),
        (
            "document = json_remove(document, '$.keep_ms')".into(),
            "document",
        ),
        (set("run.session", "\"\""), "document"),
        (set("run.session", "\"\\u0007\""), "document"),
        (set("takeover_after_ms", "-1"), "document"),
        (set("keep_ms", "1.5"), "document"),
        (set("pid", "2147483648"), "document"),
        (set("pause", "{\"by\": \"x\"}"), "document"),
        (set("handoff", "{\"to\": \"b\"}"), "document"),
        (set("revoke", "2"), "document"),
        (set("last_outcome", "\"splendid\""), "document"),
        (set("losses", "\"many\""), "document"),
        (set("stamp_of", "\"birth\""), "document"),
        (
            "expected_client = CAST(x'ff' AS TEXT)".into(),
            "expected_client",
        ),
    ] {
        good.execute_batch("SAVEPOINT spoil").unwrap();
        good.execute_batch(&format!("UPDATE tokens SET {change}; RELEASE spoil"))
            .unwrap();
        names(&spoilt.read().unwrap_err(), &spoilt.path, column);
        let listing = spoilt.store().list().unwrap();
        assert_eq!(listing.rows, []);
        names(&listing.unreadable[0].error, &spoilt.path, column);
        good.execute_batch("DELETE FROM tokens; DELETE FROM runs")
            .unwrap();
        try_grant(&mut spoilt.store(), "g").unwrap();
    }
}

#[test]
fn a_malformed_record_is_an_error_that_names_its_column() {
    for (change, column) in [
        ("outcome = 'splendid'", "outcome"),
        ("started_at = 'once upon a time'", "started_at"),
        ("session = ''", "session"),
        ("document = ''", "document"),
        ("document = '{}'", "document"),
        (
            "document = json_set(document, '$.grant', 'gift')",
            "document",
        ),
        (
            "document = json_set(document, '$.exit_code', 4294967296)",
            "document",
        ),
    ] {
        let spoilt = Spoilt::new();
        spoilt
            .sqlite()
            .execute_batch(&format!("UPDATE runs SET {change}"))
            .unwrap();
        let error = spoilt.store().runs(&RunQuery::default());
        names(&error.unwrap_err(), &spoilt.path, column);
    }
}

/// A user who shares the store could have others run it, without an end too.
#[test]
fn a_program_in_the_database_is_not_run() {
    let spoilt = Spoilt::new();
    let other = Connection::open(&spoilt.path).unwrap();
    let trigger =
        "CREATE TRIGGER t AFTER INSERT ON tokens BEGIN SELECT RAISE(ABORT, 'it ran'); END";
    other.execute_batch(trigger).unwrap();
    create(&mut spoilt.store(), "new");
    let view = "ALTER TABLE tokens RENAME TO kept; CREATE VIEW tokens AS SELECT * FROM kept";
    other.execute_batch(view).unwrap();
    let error = spoilt.store().read(&GroupName::new("g").unwrap());
    assert_eq!(error.unwrap_err().trouble, Trouble::Misconfigured);
}

#[test]
fn the_statements_name_the_columns_in_the_order_they_are_read_in() {
    let spoilt = Spoilt::new();
    let sqlite = spoilt.sqlite();
    for (sql, columns) in [
        (include_str!("../sql/sqlite/token_read.sql"), stored(&TOKEN)),
        (include_str!("../sql/sqlite/token_list.sql"), stored(&TOKEN)),
        (
            include_str!("../sql/sqlite/waiters.sql"),
            stored(&waiter::with_group()),
        ),
        (
            include_str!("../sql/sqlite/waiters_of_group.sql"),
            stored(&waiter::with_group()),
        ),
    ] {
        let statement = sqlite.prepare(sql).unwrap();
        let found = statement.column_names();
        // Read by its name.
        let found: Vec<_> = found.filter(|name| *name != "in_queue").collect();
        assert_eq!(found, columns);
    }
}

#[test]
fn the_statements_name_the_columns_of_their_tables() {
    let spoilt = Spoilt::new();
    let sqlite = spoilt.sqlite();
    for (sql, table) in [
        (include_str!("../sql/sqlite/runs.sql"), RUNS),
        (include_str!("../sql/sqlite/runs_of_group.sql"), RUNS),
        (include_str!("../sql/sqlite/acts.sql"), ACTS),
        (include_str!("../sql/sqlite/key.sql"), KEYS),
        (include_str!("../sql/sqlite/keys.sql"), KEYS),
    ] {
        let statement = sqlite.prepare(sql).unwrap();
        let columns = table.columns.iter().map(|column| column.name);
        let columns = columns.chain(["document"]);
        assert!(statement.column_names().eq(columns), "{sql}");
    }
}

/// The columns of a record.
fn run_columns() -> Vec<String> {
    stored(&RUNS.answer())
}

/// The names in the table: a stamp is in two columns.
fn stored(columns: &[Column]) -> Vec<String> {
    let names = columns.iter().flat_map(|column| {
        let tick = (column.kind == Kind::Stamp).then(|| column.name.replace("_at", "_tick"));
        [column.name.to_owned()].into_iter().chain(tick)
    });
    names.collect()
}

fn garbage() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::Integer),
        (-3i64..3).prop_map(Value::Integer),
        any::<f64>().prop_map(Value::Real),
        ".{0,300}".prop_map(Value::Text),
        "[0-9TZ:.-]{0,30}".prop_map(Value::Text),
        "(free|idle|running|unknown|succeeded|bind)".prop_map(Value::Text),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Value::Blob),
    ]
}

#[test]
fn no_garbage_panics_and_a_readable_row_is_read_as_it_is() {
    let spoilt = Spoilt::new();
    spoilt.without_types();
    let sqlite = spoilt.sqlite();
    let update = |table: &str, column: &str, value: &Value| {
        sqlite
            .execute(&format!("UPDATE {table} SET {column} = ?1"), [value])
            .unwrap();
    };
    let good = |table: &str, column: &str| -> Value {
        sqlite
            .query_row(&format!("SELECT {column} FROM {table}"), [], |row| {
                row.get(0)
            })
            .unwrap()
    };
    let group = GroupName::new("g").unwrap();
    let store = std::cell::RefCell::new(spoilt.store());
    let swap = {
        let reading = store.borrow_mut().read(&group).unwrap();
        let version = Version::from_random(8);
        let mut swap = grant(
            &claim("g"),
            GrantKind::Renew,
            reading.row.as_ref(),
            &reading.now,
            version,
        );
        // Never the row's version: the swap must read the garbage and change nothing.
        swap.from = Some(Version::from_random(6));
        swap
    };
    let columns = stored(&TOKEN);
    proptest!(|(column in 1..columns.len(), value in garbage())| {
        let column = columns[column].as_str();
        let before = good("tokens", column);
        update("tokens", column, &value);
        let mut store = store.borrow_mut();
        let read = store.read(&group);
        let listed = store.list().unwrap();
        prop_assert_eq!(read.is_ok(), listed.unreadable.is_empty());
        prop_assert_eq!(listed.rows.len() + listed.unreadable.len(), 1);
        match read {
            // A readable row is written back in exactly the same way.
            Ok(reading) => {
                let cells = tokens::cells_of(&reading.row.unwrap());
                let written: Vec<Value> = values(&cells).collect();
                let at = columns.iter().position(|name| *name == column).unwrap();
                let same = written[at] == value || column.ends_with("_at") || column == "paused_until";
                prop_assert!(same, "{column}: {value:?} became {:?}", written[at]);
            }
            Err(error) => prop_assert_eq!(error.trouble, Trouble::Misconfigured),
        }
        match store.swap(&swap) {
            Ok(swapped) => prop_assert_eq!(swapped, Swapped::Conflict),
            Err(error) => prop_assert_eq!(error.trouble, Trouble::Misconfigured),
        }
        update("tokens", column, &before);
    });
    proptest!(|(column in 0..run_columns().len(), value in garbage())| {
        let column = run_columns()[column].clone();
        let column = column.as_str();
        let before = good("runs", column);
        update("runs", column, &value);
        if let Err(error) = store.borrow_mut().runs(&RunQuery::default()) {
            prop_assert_eq!(error.trouble, Trouble::Misconfigured);
        }
        update("runs", column, &before);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_damage_to_the_file_panics(
        spots in proptest::collection::vec((0usize..40_000, any::<u8>()), 1..40),
    ) {
        let spoilt = Spoilt::new();
        // Into the database itself, so that the log does not hide the damage.
        spoilt.sqlite().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        let mut bytes = std::fs::read(&spoilt.path).unwrap();
        for (at, byte) in spots {
            let length = bytes.len();
            bytes[at % length] = byte;
        }
        std::fs::write(&spoilt.path, bytes).unwrap();
        let opened = SqliteStore::open(&spoilt.path, Duration::from_millis(50));
        if let Ok(mut store) = opened {
            let _ = store.list();
            let _ = store.runs(&RunQuery::default());
            let _ = try_grant(&mut store, "g");
        }
    }
}
