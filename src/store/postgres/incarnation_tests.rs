//! Tests that need a real server: notes that were restored, copied or edited by hand.

use std::time::Duration;

use super::test_server::{Database, Server};
use super::{PostgresStore, settings};
use crate::store::{Reading, Tokens};
use crate::token::{Doubt, GroupName, Served, Swapped, Version};

const TIMEOUT: Duration = Duration::from_secs(10);

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
