//! What a server of a test's own shows: grants that come later than their look, and connections.

use std::time::Duration;

use super::RedisKv;
use super::settings::Settings;
use super::test_server::Server;
use crate::store::conformance::{claim, version};
use crate::store::kv::KvStore;
use crate::store::kv::{Ask, Commit, Fields, Kv as _, Put};
use crate::store::{Reading, Store, Tokens as _, Trouble};
use crate::token::swap::grant;
use crate::token::{GrantKind, GroupName, State, Swap, Swapped, Version};

const TIMEOUT: Duration = Duration::from_secs(10);

fn store(server: &Server) -> KvStore {
    KvStore::new(kv(&server.url()))
}

fn kv(url: &str) -> RedisKv {
    RedisKv::new(Settings::read(url, |_| None).unwrap(), TIMEOUT, "test")
}

fn unstamped() -> Commit {
    Commit {
        puts: vec![Put {
            key: "x".into(),
            version: "1".into(),
            fields: Fields::new(),
            stamps: false,
            numbered: false,
            lists: Vec::new(),
        }],
        then: vec![Ask::One("x".into())],
        ..Commit::default()
    }
}

/// A look, after the note is written.
fn look(store: &mut dyn Store) -> Reading {
    let group = GroupName::new("g").unwrap();
    let reading = store.read(&group).unwrap();
    let note = reading.memory.next_note(&reading.now, || {
        Version::from_random(reading.now.stamp.tick_ms.unsigned_abs())
    });
    let Some(note) = note else {
        return reading;
    };
    let swap = reading.memory.swap(note, &reading.now, TIMEOUT);
    assert!(matches!(store.note(&swap), Ok(Swapped::Done(_))));
    store.read(&group).unwrap()
}

fn grant_after(look: &Reading, client: &str, n: u64) -> Swap {
    let claim = claim("g", client, client);
    let kind = GrantKind::Bind;
    let row = look.row.as_ref();
    let mut swap = grant(&claim, kind, row, &look.now, version(n));
    swap.note = look.memory.note.clone().map(Box::new);
    swap
}

#[test]
fn a_grant_that_was_delayed_across_flushall_conflicts() {
    let server = Server::start(&[]);
    let mut store = store(&server);
    let seen = look(&mut store);
    assert_eq!(seen.row, None);
    let late = grant_after(&seen, "a", 1);
    let first = store.swap(&grant_after(&seen, "b", 2)).unwrap();
    assert!(matches!(first, Swapped::Done(_)), "{first:?}");
    server.cli(&["FLUSHALL"]);
    assert_eq!(store.swap(&late).unwrap(), Swapped::Conflict);
    // With the note of another look, too.
    look(&mut store);
    assert_eq!(store.swap(&late).unwrap(), Swapped::Conflict);
}

/// The run that vanished is no reason to try again.
#[test]
fn a_takeover_after_another_note_conflicts() {
    let server = Server::start(&[]);
    let mut store = store(&server);
    let seen = look(&mut store);
    store.swap(&grant_after(&seen, "a", 1)).unwrap();
    let seen = look(&mut store);
    let late = grant_after(&seen, "b", 2);
    assert!(late.ended.is_some());
    let incarnation = seen.memory.incarnation.clone().unwrap();
    let note = seen
        .memory
        .judged(&incarnation, false, &seen.now, version(3));
    let swap = seen.memory.swap(note, &seen.now, TIMEOUT);
    assert!(matches!(store.note(&swap), Ok(Swapped::Done(_))));
    assert_eq!(store.swap(&late).unwrap(), Swapped::Conflict);
    let row = look(&mut store).row.unwrap();
    assert!(matches!(row.state, State::Running { client, .. } if client.as_str() == "a"));
}

/// Whatever its writer asks for: an age of nothing is no age.
#[test]
fn a_new_entry_is_stamped() {
    let server = Server::start(&[]);
    let mut kv = kv(&server.url());
    let first = kv.commit(&unstamped()).unwrap().found;
    assert_eq!(first.entries["x"].stamp, first.now);
    let next = kv.commit(&unstamped()).unwrap().found;
    assert_eq!(next.entries["x"].stamp, first.now, "an old one is not");
}

/// A server closes connections that are idle for long (`timeout`). Nothing is sent over such a one.
#[test]
fn a_write_over_a_connection_that_was_closed_meanwhile_has_a_clear_answer() {
    let server = Server::start(&[]);
    let mut kv = kv(&server.tcp_url());
    kv.commit(&unstamped()).unwrap();
    for _ in 0..5 {
        server.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
        kv.commit(&unstamped()).unwrap();
    }
}

/// It is sent only after the database was selected: else it would be another store's.
#[test]
fn a_write_to_a_database_that_is_not_there_reaches_no_other() {
    let server = Server::start(&["databases 2"]);
    let mut kv = kv(&format!("{}/9", server.tcp_url()));
    let refused = kv.commit(&unstamped()).unwrap_err();
    assert_eq!(refused.trouble, Trouble::Misconfigured, "{refused}");
    assert_eq!(server.cli(&["DBSIZE"]), "0");
}

/// Heartbeats go on, so that a holder learns whether its token is still there.
#[test]
fn a_server_that_evicts_grants_nothing_and_takes_heartbeats() {
    let server = Server::start(&["maxmemory-policy allkeys-lru"]);
    let mut store = store(&server);
    let seen = look(&mut store);
    store.swap(&grant_after(&seen, "a", 1)).unwrap();
    // As after an eviction whose count was reset.
    server.cli(&["CONFIG", "RESETSTAT"]);
    let seen = look(&mut store);
    assert!(seen.refuses.is_some(), "a contender waits for nothing");
    let refused = store.swap(&grant_after(&seen, "b", 2)).unwrap_err();
    assert_eq!(refused.trouble, Trouble::Misconfigured, "{refused}");
    let row = seen.row.unwrap();
    let beat = crate::token::swap::heartbeat(&row, version(3), seen.now.until(TIMEOUT));
    assert!(matches!(store.swap(&beat), Ok(Swapped::Done(_))));
    server.cli(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    let seen = look(&mut store);
    assert_eq!(seen.refuses, None);
    let granted = store.swap(&grant_after(&seen, "b", 4)).unwrap();
    assert!(matches!(granted, Swapped::Done(_)), "{granted:?}");
}
