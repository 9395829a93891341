//! Tests of pruning that need a real server: locks, rights, and concurrent swaps.

use std::thread;
use std::time::Duration;

use ::postgres::{Client, NoTls};

use crate::store::conformance::{claim, version};
use crate::store::postgres::test_server::{Database, Server};
use crate::store::postgres::{PostgresStore, settings};
use crate::store::{Records, Retention, Tokens};
use crate::token::swap::{grant, heartbeat};
use crate::token::{GrantKind, OutputLimits, Row, Swapped};

const TIMEOUT: Duration = Duration::from_secs(10);

const RETENTION: Retention = Retention {
    history: Duration::from_millis(1),
    once: Duration::from_millis(1),
    outputs: OutputLimits {
        retain: Duration::from_millis(1),
        count: 100,
    },
};

fn store(url: &str) -> PostgresStore {
    PostgresStore::new(settings(url, "test").unwrap(), TIMEOUT)
}

fn granted(store: &mut PostgresStore, n: u64) -> Row {
    let claim = claim("g", "a", &format!("s{n}"));
    let reading = store.read(&claim.group).unwrap();
    let row = reading.row.as_ref();
    let swap = grant(&claim, GrantKind::Bind, row, &reading.now, version(n));
    assert!(matches!(store.swap(&swap).unwrap(), Swapped::Done(_)));
    store.read(&claim.group).unwrap().row.unwrap()
}

fn note(database: &Database<'_>) -> String {
    database.sql("SELECT pruning_note FROM tokenrun.tokens")
}

fn runs(database: &Database<'_>) -> String {
    database.sql("SELECT count(*) FROM tokenrun.runs")
}

#[test]
fn a_pruning_changes_no_token_and_waits_for_no_lock() {
    let database = Server::shared().database();
    let mut store = store(&database.url());
    let held = granted(&mut store, 1);
    store.prune(&held.group, RETENTION).unwrap();
    let first = note(&database);
    assert!(first.contains("lived_ms"), "{first}");
    assert_eq!(store.read(&held.group).unwrap().row, Some(held.clone()));

    let mut job = Client::connect(&database.tcp_url(), NoTls).unwrap();
    let mut inside = job.transaction().unwrap();
    let fence = "SELECT tokenrun.tokenrun_fence($1, $2)";
    inside.execute(fence, &[&"g", &held.fence.0]).unwrap();
    store.prune(&held.group, RETENTION).unwrap();
    let second = note(&database);
    assert_ne!(first, second, "a job's transaction lets it pass");
    inside
        .execute("SELECT FROM tokenrun.tokens FOR UPDATE", &[])
        .unwrap();
    store.prune(&held.group, RETENTION).unwrap();
    assert_eq!(note(&database), second, "a locked row is left alone");
}

#[test]
fn swaps_and_prunings_at_once_fail_neither() {
    let database = Server::shared().database();
    let mut beating = store(&database.url());
    let mut held = granted(&mut beating, 1);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut store = store(&database.url());
                for _ in 0..100 {
                    store.prune(&held.group.clone(), RETENTION).unwrap();
                }
            });
        }
    });
    let group = held.group.clone();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut store = store(&database.url());
            for _ in 0..300 {
                store.prune(&group, RETENTION).unwrap();
            }
        });
        for n in 2..300 {
            let now = beating.read(&group).unwrap().now;
            let beat = heartbeat(&held, version(n), now.until(TIMEOUT));
            let answer = beating.swap(&beat).unwrap();
            assert!(matches!(answer, Swapped::Done(_)), "{answer:?}");
            held = beating.read(&group).unwrap().row.unwrap();
        }
    });
}

#[test]
fn a_role_that_may_not_leave_a_note_prunes_nothing() {
    let server = Server::start(&[]);
    let database = server.database();
    let mut owner = store(&database.url());
    let held = granted(&mut owner, 1);
    granted(&mut owner, 2);
    granted(&mut owner, 3);
    // A note by which the first run has lived for long enough.
    let lived = format!(
        r#"{{"lived_ms": 9000, "wall_ms": 0, "tick": null, "marks": [[{}, 0]]}}"#,
        held.fence
    );
    database.sql(&format!(
        "UPDATE tokenrun.runs SET written_at = '2020-01-01' WHERE fence = {};
         UPDATE tokenrun.tokens SET pruning_note = '{lived}';
         CREATE ROLE poor LOGIN;
         GRANT USAGE ON SCHEMA tokenrun TO poor;
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA tokenrun TO poor;
         REVOKE UPDATE ON tokenrun.tokens FROM poor;
         GRANT UPDATE (version, state) ON tokenrun.tokens TO poor",
        held.fence
    ));
    let mut poor = store(&database.url().replace("postgres@", "poor@"));
    poor.prune(&held.group, RETENTION).unwrap();
    assert_eq!((note(&database), runs(&database)), (lived, "2".into()));
    owner.prune(&held.group, RETENTION).unwrap();
    assert_eq!(runs(&database), "1");
}
