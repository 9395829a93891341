//! Commits that a frozen server carries out late.

use std::thread;
use std::time::{Duration, Instant};

use super::settings::Settings;
use super::test_server::Cluster;
use crate::store::Tokens as _;
use crate::store::conformance::{claim, version};
use crate::store::kv::KvStore;
use crate::token::{Claim, GrantKind, Row, Swap, Swapped, swap};

const TIMEOUT: Duration = Duration::from_secs(2);

fn unopened(url: &str) -> KvStore {
    let settings = Settings::read(url, |_| None).unwrap();
    super::store(settings, TIMEOUT)
}

fn store(url: &str) -> KvStore {
    let mut store = unopened(url);
    store.init(TIMEOUT).unwrap();
    store
}

fn row(store: &mut KvStore, of: &Claim) -> Option<Row> {
    store.read(&of.group).unwrap().row
}

fn grant_of(store: &mut KvStore, claim: &Claim, n: u64) -> Swap {
    let reading = store.read(&claim.group).unwrap();
    let (row, until) = (reading.row.as_ref(), reading.now.until(TIMEOUT));
    let mut grant = swap::grant(claim, GrantKind::Bind, row, &reading.now, version(n));
    grant.expiry = until;
    grant
}

/// The token goes to a session that has given up. It counts from its request: another takes it over no later.
#[test]
fn a_late_grant_is_as_old_as_its_request() {
    let cluster = Cluster::start(1);
    let url = cluster.url();
    let (mut one, mut other) = (store(&url), store(&url));
    let ghost = claim("g", "a", "s1");
    let grant = grant_of(&mut one, &ghost, 1);
    cluster.freeze(0);
    let sent = Instant::now();
    one.swap(&grant).unwrap_err();
    let frozen = Duration::from_secs(4);
    thread::sleep(frozen.saturating_sub(sent.elapsed()));
    cluster.thaw(0);
    cluster.until_led();
    let reading = other.read(&ghost.group).unwrap();
    // The server may have seen first that the connection is over.
    let Some(row) = reading.row.filter(|row| row.session().is_some()) else {
        return;
    };
    let age = row.age(&reading.now).unwrap();
    let step = Duration::from_millis(super::entry::STEP_MS.unsigned_abs());
    assert!(age + step >= frozen, "{age:?}");
}

/// The others went on. What comes after its time changes nothing, although nothing else has touched its row.
#[test]
fn a_late_grant_is_none_once_a_later_time_is_noted() {
    let cluster = Cluster::start(3);
    let url = cluster.url();
    let leader = cluster.leader().unwrap();
    let follower = (leader + 1) % 3;
    let (_, prefix) = url.rsplit_once('/').unwrap();
    let at = |index| format!("etcd://127.0.0.1:{}/{prefix}", cluster.port(index));
    let (mut one, mut other) = (store(&at(follower)), store(&at(leader)));
    let ghost = claim("g", "a", "s1");
    let grant = grant_of(&mut one, &ghost, 1);
    cluster.freeze(follower);
    one.swap(&grant).unwrap_err();
    assert_eq!(row(&mut other, &ghost), None);
    let mut n = 1;
    let busy = claim("busy", "b", "s2");
    cluster.wait_until("a later time", || {
        n += 1;
        let granted = grant_of(&mut other, &busy, n);
        assert!(matches!(other.swap(&granted).unwrap(), Swapped::Done(_)));
        granted.expiry.tick_ms() > grant.expiry.tick_ms() + 3_000
    });
    cluster.thaw(follower);
    // A request behind the late one. The servers may elect a leader meanwhile, and refuse until then.
    cluster.wait_until("the follower", || {
        let mut store = unopened(&at(follower));
        store.init(TIMEOUT).is_ok() && store.read(&ghost.group).is_ok()
    });
    assert_eq!(row(&mut other, &ghost), None);
}
