//! What a real server does: nodes that others have changed, and commits that come late.

use std::thread;
use std::time::{Duration, Instant};

use super::link::Link;
use super::settings::Settings;
use super::test_server::Cluster;
use super::wire::Request;
use crate::store::conformance::{claim, version};
use crate::store::kv::KvStore;
use crate::store::net::session::Session;
use crate::store::{Queue as _, Tokens as _};
use crate::token::{Claim, GrantKind, Swap, Swapped, Waiter, swap};

const TIMEOUT: Duration = Duration::from_secs(2);

fn store(url: &str) -> KvStore {
    let mut store = super::store(Settings::read(url).unwrap(), TIMEOUT);
    store.init(TIMEOUT).unwrap();
    store
}

fn grant_of(store: &mut KvStore, claim: &Claim, n: u64) -> Swap {
    let reading = store.read(&claim.group).unwrap();
    let (row, until) = (reading.row.as_ref(), reading.now.until(TIMEOUT));
    let mut grant = swap::grant(claim, GrantKind::Bind, row, &reading.now, version(n));
    grant.expiry = until;
    grant
}

/// Removes a node as an administrator does by hand.
fn remove(url: &str, path: impl FnOnce(&super::tree::Tree) -> String) {
    let settings = Settings::read(url).unwrap().with_session(TIMEOUT);
    let mut session = Session::<Link>::new(settings);
    let removed = session.run(TIMEOUT, async |session, deadline| {
        let mut link = session.first_link(deadline).await?;
        let path = path(&link.tree);
        let version = None;
        link.channel
            .flight(&[Request::Delete { path, version }])
            .await
    });
    assert_eq!(removed.unwrap()[0].error, 0);
}

#[test]
fn a_place_without_its_entry_stops_no_grant() {
    let url = Cluster::shared().url();
    let mut store = store(&url);
    let of = claim("g", "a", "s1");
    let grant = grant_of(&mut store, &of, 1);
    assert!(matches!(store.swap(&grant).unwrap(), Swapped::Done(_)));
    remove(&url, |tree| tree.entry("token:g"));
    assert!(store.list().unwrap().rows.is_empty());
    let grant = grant_of(&mut store, &of, 2);
    assert!(matches!(store.swap(&grant).unwrap(), Swapped::Done(_)));
    assert_eq!(store.list().unwrap().rows.len(), 1);
}

/// A run's record is removed with its places, also when one of them is gone.
#[test]
fn an_entry_without_its_place_is_written_and_removed() {
    let url = Cluster::shared().url();
    let mut store = store(&url);
    let of = claim("g", "a", "s1");
    let waits = Waiter {
        session: of.session,
        client: of.client,
        failback: false,
    };
    let until = store.read(&of.group).unwrap().now.until(TIMEOUT);
    store.join(&of.group, &waits, &until, None).unwrap();
    remove(&url, |tree| tree.place("waiters:g", 0, "waiter:g:s1"));
    store.leave(&of.group, &waits.session).unwrap();
    let listed = store.list().unwrap();
    assert_eq!(listed.waiters(&of.group), 0);
}

/// Its session has ended by then. If the server carries it out first, the token goes to a session that has given up,
/// and no other session has it as well.
#[test]
fn a_grant_that_a_frozen_server_carries_out_late_is_one_grant() {
    let cluster = Cluster::start(1);
    let url = cluster.url();
    let (mut one, mut other) = (store(&url), store(&url));
    let ghost = claim("g", "a", "s1");
    let grant = grant_of(&mut one, &ghost, 1);
    cluster.freeze(0);
    let sent = Instant::now();
    one.swap(&grant).unwrap_err();
    thread::sleep(Duration::from_secs(6).saturating_sub(sent.elapsed()));
    cluster.thaw(0);
    cluster.until_led();
    let reading = other.read(&ghost.group).unwrap();
    match reading.row.filter(|row| row.session().is_some()) {
        None => {
            let grant = grant_of(&mut other, &claim("g", "b", "s2"), 2);
            assert!(matches!(other.swap(&grant).unwrap(), Swapped::Done(_)));
        }
        Some(row) => assert_eq!(row.session(), Some(&ghost.session)),
    }
}
