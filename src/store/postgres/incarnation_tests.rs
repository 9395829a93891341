//! Tests that need a real server: notes that were restored, copied or edited by hand.

use std::time::{Duration, Instant};

use super::test_server::{Database, Server};
use super::{PostgresStore, settings};
use crate::store::conformance::{claim, version};
use crate::store::{Reading, Tokens};
use crate::token::swap::grant;
use crate::token::{Doubt, GrantKind, GroupName, Served, Swap, Swapped, Version};

const TIMEOUT: Duration = Duration::from_secs(10);

/// How long a change of the server's settings may take to show.
const PATIENCE: Duration = Duration::from_secs(60);

fn store(database: &Database<'_>) -> PostgresStore {
    store_at(&database.url())
}

fn store_at(url: &str) -> PostgresStore {
    PostgresStore::new(settings(url, "test").unwrap(), TIMEOUT)
}

fn read(store: &mut PostgresStore) -> Reading {
    store.read(&GroupName::new("g").unwrap()).unwrap()
}

fn observed(store: &mut PostgresStore) -> (Served, Doubt) {
    let reading = read(store);
    reading.memory.observed(&reading.now)
}

/// Writes the next note.
fn note(store: &mut PostgresStore) {
    let reading = read(store);
    let (memory, now) = (&reading.memory, &reading.now);
    let next = memory.next_note(now, || Version::from_stored(5)).unwrap();
    let swapped = store.note(&memory.swap(next, now, TIMEOUT)).unwrap();
    assert!(matches!(swapped, Swapped::Done(_)), "{swapped:?}");
}

/// A group without a row, one whose token is free, and one whose token a run holds: each is granted by another
/// statement.
const GROUPS: [&str; 3] = ["new", "free", "running"];

/// A grant of this group.
fn granted(store: &mut PostgresStore, group: &str, n: u64) -> Swap {
    let claim = claim(group, "a", &format!("s{n}"));
    let reading = store.read(&claim.group).unwrap();
    let row = reading.row.as_ref();
    let mut swap = grant(&claim, GrantKind::Bind, row, &reading.now, version(n));
    swap.note = reading.memory.note.clone().map(Box::new);
    swap
}

/// A grant of each of the groups.
fn grants(store: &mut PostgresStore, n: u64) -> Vec<Swap> {
    let numbers = (n..).step_by(3);
    let groups = GROUPS.iter().zip(numbers);
    groups.map(|(group, n)| granted(store, group, n)).collect()
}

fn happens(store: &mut PostgresStore, swap: &Swap) {
    let swapped = store.swap(swap).unwrap();
    assert!(matches!(swapped, Swapped::Done(_)), "{swapped:?}");
}

fn conflict(store: &mut PostgresStore, swaps: &[Swap]) {
    for swap in swaps {
        let swapped = store.swap(swap).unwrap();
        assert_eq!(swapped, Swapped::Conflict, "{}", swap.group());
    }
}

/// Grants that come too late say so: they were judged by the present note.
fn too_late(store: &mut PostgresStore, n: u64) {
    let mut then = read(store).now;
    then.stamp.tick_ms -= 1;
    for mut swap in grants(store, n) {
        swap.expiry = then.until(Duration::ZERO);
        let swapped = store.swap(&swap).unwrap();
        assert!(matches!(swapped, Swapped::Expired(_)), "{swapped:?}");
    }
}

/// Makes the note one of another clock epoch.
const OF_ANOTHER_EPOCH: &str = "UPDATE tokenrun.meta SET written_by = pg_current_xact_id()::text,
    note = jsonb_set(note::jsonb, '{epoch}', '\"x\"')::text";

fn with_groups(database: &Database<'_>) -> PostgresStore {
    let mut store = store(database);
    for (group, n) in [("free", 100), ("running", 101)] {
        let swap = granted(&mut store, group, n);
        happens(&mut store, &swap);
    }
    let free = "UPDATE tokenrun.tokens SET state = 'free', client_bound = NULL, document = document - 'run'";
    database.sql(&format!("{free} WHERE token_group = 'free'"));
    store
}

/// A backup that is put back between the look and the grant has the versions that were read.
#[test]
fn a_grant_that_was_judged_before_a_restore_conflicts() {
    let database = Server::shared().database();
    let mut store = with_groups(&database);
    let swaps = grants(&mut store, 1);
    database.sql("UPDATE tokenrun.meta SET note = note");
    conflict(&mut store, &swaps);
    note(&mut store);
    conflict(&mut store, &swaps);
    for swap in grants(&mut store, 10) {
        happens(&mut store, &swap);
    }
}

#[test]
fn a_server_that_stops_to_sync_is_noted_and_grants_nothing_by_the_note_before() {
    let server = Server::start(&[]);
    let database = server.database();
    let mut store = with_groups(&database);
    assert!(read(&mut store).memory.durable);
    too_late(&mut store, 50);
    let swaps = grants(&mut store, 1);
    server.sql("postgres", "ALTER SYSTEM SET fsync = off");
    server.sql("postgres", "SELECT pg_reload_conf()");
    let begun = Instant::now();
    while read(&mut store).memory.durable {
        assert!(
            begun.elapsed() < PATIENCE,
            "the server's new settings do not show"
        );
    }
    conflict(&mut store, &swaps);
    note(&mut store);
    let after = read(&mut store);
    let noted = after.memory.note.clone().unwrap();
    assert!(!noted.durable_then, "{noted:?}");
    assert_eq!(after.memory.observed(&after.now).0, Served::Everything);
    too_late(&mut store, 60);
    for swap in grants(&mut store, 10) {
        happens(&mut store, &swap);
    }
    // A look in another clock epoch asks the server anew.
    database.sql(OF_ANOTHER_EPOCH);
    assert!(!read(&mut store).memory.durable);
    note(&mut store);
    server.sql("postgres", "ALTER SYSTEM RESET fsync");
    server.sql("postgres", "SELECT pg_reload_conf()");
    let begun = Instant::now();
    while database.sql("SHOW fsync") != "on" {
        assert!(begun.elapsed() < PATIENCE, "the server does not sync");
    }
    let mut store = self::store(&database);
    assert!(
        !read(&mut store).memory.durable,
        "commits before may be lost"
    );
    database.sql(OF_ANOTHER_EPOCH);
    assert!(read(&mut store).memory.durable);
}

#[test]
fn a_role_that_may_not_read_the_identity_of_the_server_looks_without() {
    let database = Server::shared().database();
    read(&mut store(&database));
    database.sql(OF_ANOTHER_EPOCH);
    let role = format!("poor_{}", database.name);
    database.sql(&format!(
        "CREATE ROLE {role} LOGIN; REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC;
         GRANT USAGE ON SCHEMA tokenrun TO {role}; GRANT SELECT ON ALL TABLES IN SCHEMA tokenrun TO {role}"
    ));
    let url = database.url().replace("postgres@", &format!("{role}@"));
    let memory = read(&mut store_at(&url)).memory;
    assert_eq!((memory.incarnation, memory.durable), (None, false));
}

#[test]
fn a_note_that_was_edited_by_hand_is_observed_and_replaced() {
    let database = Server::shared().database();
    let mut store = store(&database);
    assert_eq!(observed(&mut store).0, Served::Everything);
    for (edit, why) in [
        ("note = NULL", Doubt::Another),
        (
            "note = 'nothing', written_by = pg_current_xact_id()::text",
            Doubt::Unreadable,
        ),
        ("note_version = NULL, written_by = 'x'", Doubt::Another),
        ("note = NULL, note_version = NULL", Doubt::Unnoted),
        ("written_by = '1'", Doubt::Another),
    ] {
        database.sql(&format!("UPDATE tokenrun.meta SET {edit}"));
        assert_eq!(observed(&mut store), (Served::NOTHING, why), "{edit}");
        note(&mut store);
        assert!(observed(&mut store).0 < Served::For(TIMEOUT), "{edit}");
    }
}

#[test]
fn a_copy_of_a_database_is_another_incarnation() {
    let server = Server::shared();
    let database = server.database();
    assert_eq!(observed(&mut store(&database)).0, Served::Everything);
    let name = &database.name;
    server.sql(
        "postgres",
        &format!("CREATE DATABASE {name}_copy TEMPLATE {name}"),
    );
    let copy = database
        .url()
        .replace(name.as_str(), &format!("{name}_copy"));
    let found = observed(&mut store_at(&copy));
    assert_eq!(found, (Served::NOTHING, Doubt::Another));
}
