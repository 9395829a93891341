//! What is in the file is never trusted.

use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use rusqlite::Connection;
use rusqlite::types::Value;
use tempfile::TempDir;

use super::{SqliteStore, line, runs, tokens};
use crate::store::{HistoryQuery, Store, StoreError, Trouble};
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

/// A store with a running group "g" in it.
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

    /// Takes the types off the tables, as a file by another hand could be.
    fn without_types(&self) {
        let sqlite = self.sqlite();
        for (table, columns) in [("tokens", tokens::COLUMNS), ("runs", runs::COLUMNS)] {
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
        assert!(error.message.contains(part), "{part:?} in {error}");
    }
    assert!(!error.message.contains('\n'), "{error}");
}

#[test]
fn a_row_that_no_tokenrun_wrote_is_an_error_that_names_file_group_and_column() {
    let spoilt = Spoilt::new();
    let good = spoilt.sqlite();
    for (change, column) in [
        ("state = 'jogging'", "state"),
        ("state = 'free'", "client_bound"),
        ("state = 'idle'", "session"),
        ("session = NULL", "session"),
        ("session = ''", "session"),
        ("client_bound = NULL", "client_bound"),
        ("client_bound = char(7)", "client_bound"),
        ("heartbeat_at = NULL", "heartbeat_tick"),
        ("heartbeat_at = NULL, heartbeat_tick = NULL", "heartbeat_at"),
        ("heartbeat_at = 'yesterday'", "heartbeat_at"),
        ("created_at = ''", "created_at"),
        ("acquired_tick = NULL", "acquired_tick"),
        ("released_at = created_at, released_tick = 0", "released_at"),
        ("takeover_after_ms = -1", "takeover_after_ms"),
        ("keep_ms = -9223372036854775808", "keep_ms"),
        ("fence = -1", "fence"),
        ("pid = 2147483648", "pid"),
        ("paused_reason = 'x'", "paused_reason"),
        ("paused_until = created_at", "paused_until"),
        ("handoff_to = 'b'", "handoff_at"),
        ("handoff_at = created_at", "handoff_at"),
        ("handoff_failback = 1", "handoff_failback"),
        ("revoke_requested = 2", "revoke_requested"),
        ("last_outcome = 'splendid'", "last_outcome"),
        ("losses = -1", "losses"),
        ("label = CAST(x'ff' AS TEXT)", "label"),
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
fn a_record_that_no_tokenrun_wrote_is_an_error_that_names_its_column() {
    for (change, column) in [
        ("outcome = 'splendid'", "outcome"),
        ("grant_kind = 'gift'", "grant_kind"),
        ("started_at = 'once upon a time'", "started_at"),
        ("exit_code = 4294967296", "exit_code"),
        ("session = ''", "session"),
    ] {
        let spoilt = Spoilt::new();
        spoilt
            .sqlite()
            .execute_batch(&format!("UPDATE runs SET {change}"))
            .unwrap();
        let error = spoilt.store().history(&HistoryQuery::default());
        names(&error.unwrap_err(), &spoilt.path, column);
    }
}

#[test]
fn a_fence_that_history_knows_already_is_refused_with_what_to_do() {
    let spoilt = Spoilt::new();
    spoilt
        .sqlite()
        .execute_batch("UPDATE runs SET fence = 9223372036854775807; UPDATE tokens SET fence = 9223372036854775806")
        .unwrap();
    let error = try_grant(&mut spoilt.store(), "g").unwrap_err();
    assert_eq!(error.trouble, Trouble::Misconfigured);
    assert!(
        error.message.contains("above those in the history"),
        "{error}"
    );
    let group = GroupName::new("g").unwrap();
    let row = spoilt.store().read(&group).unwrap().row.unwrap();
    assert_eq!(row.fence.0, i64::MAX - 1, "the grant did not happen");
}

#[test]
fn the_statements_name_the_columns_in_the_order_they_are_read_in() {
    let spoilt = Spoilt::new();
    let sqlite = spoilt.sqlite();
    for (sql, columns) in [
        (
            include_str!("../sql/sqlite/token_read.sql"),
            tokens::COLUMNS,
        ),
        (
            include_str!("../sql/sqlite/token_list.sql"),
            tokens::COLUMNS,
        ),
        (include_str!("../sql/sqlite/line_read.sql"), line::COLUMNS),
        (include_str!("../sql/sqlite/line_list.sql"), line::COLUMNS),
        (include_str!("../sql/sqlite/history.sql"), runs::COLUMNS),
        (
            include_str!("../sql/sqlite/history_of_group.sql"),
            runs::COLUMNS,
        ),
    ] {
        let statement = sqlite.prepare(sql).unwrap();
        let found = statement.column_names();
        // Read by its name.
        let found: Vec<_> = found.filter(|name| *name != "in_line").collect();
        assert_eq!(found, columns);
    }
}

#[test]
fn a_record_is_found_without_a_search() {
    let spoilt = Spoilt::new();
    let sqlite = spoilt.sqlite();
    for sql in [
        include_str!("../sql/sqlite/run_session.sql"),
        include_str!("../sql/sqlite/run_vanished.sql"),
    ] {
        let mut statement = sqlite
            .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
            .unwrap();
        let mut plan = statement.raw_query();
        let step: String = plan.next().unwrap().unwrap().get(3).unwrap();
        assert!(
            step.contains("PRIMARY KEY (token_group=? AND fence=?)"),
            "{step}"
        );
    }
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
fn no_garbage_panics_and_what_is_read_is_what_is_there() {
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
        // Never the row's: the swap is to look at the garbage, and to change nothing.
        swap.from = Some(Version::from_random(6));
        swap
    };
    proptest!(|(column in 1..tokens::COLUMNS.len(), value in garbage())| {
        let column = tokens::COLUMNS[column];
        let before = good("tokens", column);
        update("tokens", column, &value);
        let mut store = store.borrow_mut();
        let read = store.read(&group);
        let listed = store.list().unwrap();
        prop_assert_eq!(read.is_ok(), listed.unreadable.is_empty());
        prop_assert_eq!(listed.rows.len() + listed.unreadable.len(), 1);
        match read {
            // What was understood is written down in just the same way.
            Ok(reading) => {
                let written = tokens::to_values(&reading.row.unwrap());
                let at = tokens::COLUMNS.iter().position(|name| *name == column).unwrap();
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
    proptest!(|(column in 0..runs::COLUMNS.len(), value in garbage())| {
        let column = runs::COLUMNS[column];
        let before = good("runs", column);
        update("runs", column, &value);
        if let Err(error) = store.borrow_mut().history(&HistoryQuery::default()) {
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
            let _ = store.history(&HistoryQuery::default());
            let _ = try_grant(&mut store, "g");
        }
    }
}
