//! The queue: the waiters and their order.

use std::thread;
use std::time::Duration;

use super::{Fixture, SUCCESS, claim, done, grant_to, row, run_of, ten_seconds_from, version};
use crate::store::{Reading, Store};
use crate::token::queue::{FORGOTTEN, LIVES};
use crate::token::swap::{grant, release};
use crate::token::{
    ClockEpoch, GrantKind, GroupName, QueueEntry, StoreTime, Swap, Swapped, Waiter,
};

fn group(name: &str) -> GroupName {
    GroupName::new(name).unwrap()
}

fn waiter(name: &str) -> Waiter {
    Waiter::of(&claim("g", &format!("client-{name}"), name))
}

/// Sends a heartbeat that arrives in time.
fn send_heartbeat(store: &mut dyn Store, group: &GroupName, waiter: &Waiter) -> Reading {
    let now = store.read(group).unwrap().now;
    store.join(group, waiter, &now.until(LIVES), None).unwrap()
}

fn join(store: &mut dyn Store, name: &str) -> Vec<QueueEntry> {
    send_heartbeat(store, &group("g"), &waiter(name)).queue
}

fn names(queue: &[QueueEntry]) -> Vec<&str> {
    let names = queue.iter().map(|entry| entry.waiter.session.as_str());
    names.collect()
}

fn queue(store: &mut dyn Store) -> Vec<QueueEntry> {
    store.read(&group("g")).unwrap().queue
}

/// A store with a token that another session holds.
fn held(fixture: &dyn Fixture) -> Box<dyn Store> {
    let mut store = fixture.store();
    grant_to(store.as_mut(), &claim("g", "holder", "s0"), 1);
    store
}

pub(super) fn a_line_keeps_the_order_of_arrival(fixture: &dyn Fixture) {
    let mut store = held(fixture);
    let store = store.as_mut();
    assert!(queue(store).is_empty());
    assert_eq!(names(&join(store, "z")), ["z"]);
    assert_eq!(names(&join(store, "b")), ["z", "b"]);
    fixture.advance(Duration::from_secs(1));
    assert_eq!(names(&join(store, "a")), ["z", "b", "a"]);
    let found = queue(fixture.store().as_mut());
    assert_eq!(names(&found), ["z", "b", "a"]);
    assert!(found.is_sorted_by(|one, next| one.number < next.number));
    assert_eq!(found[0].waiter, waiter("z"));
    let keen = Waiter {
        failback: true,
        ..waiter("keen")
    };
    let reading = send_heartbeat(store, &group("g"), &keen);
    assert_eq!(reading.queue[3].waiter, keen);
    assert_eq!(reading.now, fixture.now());
    assert!(reading.row.is_some());
}

pub(super) fn a_sign_of_life_keeps_the_place_and_takes_the_stores_time(fixture: &dyn Fixture) {
    let mut store = held(fixture);
    let store = store.as_mut();
    join(store, "a");
    join(store, "b");
    let before = queue(store);
    fixture.advance(Duration::from_millis(900));
    let after = join(store, "a");
    assert_eq!(names(&after), ["a", "b"]);
    assert_eq!(after[0].number, before[0].number);
    let kept = fixture.as_kept(fixture.now().stamp);
    assert_eq!(after[0].seen_at, kept);
    assert_eq!(after[0].epoch, fixture.now().epoch);
    assert_eq!(after[1], before[1]);
}

pub(super) fn a_sign_of_life_that_comes_too_late_is_none(fixture: &dyn Fixture) {
    let mut store = held(fixture);
    let store = store.as_mut();
    let ms = Duration::from_millis(1);
    let before = join(store, "a");
    let expiry = fixture.now().until(LIVES);
    fixture.advance(LIVES + ms);
    for name in ["a", "dead"] {
        let reading = store
            .join(&group("g"), &waiter(name), &expiry, None)
            .unwrap();
        assert_eq!(reading.queue, before, "{name}");
        assert_eq!(
            reading.now,
            fixture.now(),
            "the read is answered all the same"
        );
        assert!(reading.row.is_some());
    }
    // A heartbeat of another clock epoch has expired.
    let elsewhere = StoreTime {
        epoch: ClockEpoch("another".into()),
        ..fixture.now()
    };
    let reading = store.join(&group("g"), &waiter("dead"), &elsewhere.until(LIVES), None);
    assert_eq!(reading.unwrap().queue, before);
    // In the last millisecond it counts.
    let reading = store.join(
        &group("g"),
        &waiter("b"),
        &fixture.now().until(Duration::ZERO),
        None,
    );
    assert_eq!(names(&reading.unwrap().queue), ["a", "b"]);
    // A late heartbeat removes no waiter either.
    fixture.advance(FORGOTTEN);
    let reading = store.join(&group("g"), &waiter("dead"), &expiry, None);
    assert_eq!(names(&reading.unwrap().queue), ["a", "b"]);
}

pub(super) fn who_leaves_the_line_is_not_in_it(fixture: &dyn Fixture) {
    let mut store = held(fixture);
    let store = store.as_mut();
    for name in ["a", "b", "c"] {
        join(store, name);
    }
    for _ in 0..2 {
        store.leave(&group("g"), &waiter("b").session).unwrap();
        assert_eq!(names(&queue(store)), ["a", "c"]);
    }
    assert_eq!(names(&join(store, "b")), ["a", "c", "b"], "at its end");
}

/// The grant of the token to the waiter with this session.
fn grant_of(store: &mut dyn Store, name: &str, number: u64) -> Swap {
    let reading = store.read(&group("g")).unwrap();
    let claim = claim("g", &format!("client-{name}"), name);
    let row = reading.row.as_ref();
    let kind = GrantKind::Takeover;
    let mut swap = grant(&claim, kind, row, &reading.now, version(number));
    swap.leaves = Some(claim.session);
    swap
}

/// The most servers of a store that a test has.
const SERVERS: usize = 3;

/// A notification that stayed after a look would make a waiter look without a pause.
pub(super) fn a_look_clears_a_notification(fixture: &dyn Fixture) {
    let mut holder = held(fixture);
    let mut waiting = fixture.store();
    join(waiting.as_mut(), "w");
    let Some(notifier) = waiting.notifier() else {
        // Such a store has regular looks only.
        return;
    };
    let row = row(holder.as_mut(), "g");
    let run = run_of(&row).ended(SUCCESS);
    let limit = ten_seconds_from(fixture);
    done(holder.swap(&release(&row, run, version(2), limit)).unwrap());
    // A store of a file notifies of its writers' ends.
    drop(holder);
    assert!(notifier.signals_within(Duration::from_secs(10)));
    // Of several servers each announces it, one after the other.
    let is_quiet = |_| {
        waiting.read(&group("g")).unwrap();
        let notifier = waiting.notifier().unwrap_or(notifier.clone());
        !notifier.signals_within(Duration::ZERO)
    };
    assert!((0..SERVERS).any(is_quiet));
}

pub(super) fn a_grant_takes_the_session_out_of_the_line_and_nobody_else(fixture: &dyn Fixture) {
    let mut store = held(fixture);
    let store = store.as_mut();
    for name in ["a", "b", "c"] {
        join(store, name);
    }
    // From a session that has vanished, and from one that has not.
    for (number, name, left) in [(7, "b", &["a", "c"][..]), (8, "a", &["c"])] {
        let swap = grant_of(store, name, number);
        done(store.swap(&swap).unwrap());
        assert_eq!(names(&queue(store)), left);
    }
}

pub(super) fn a_grant_that_does_not_happen_leaves_the_line_as_it_is(fixture: &dyn Fixture) {
    let mut store = held(fixture);
    let store = store.as_mut();
    join(store, "a");
    let mut stale = grant_of(store, "a", 7);
    stale.from = Some(version(99));
    assert_eq!(store.swap(&stale).unwrap(), Swapped::Conflict);
    assert_eq!(names(&queue(store)), ["a"]);
}

pub(super) fn a_place_is_forgotten_after_a_minute(fixture: &dyn Fixture) {
    let mut store = held(fixture);
    let store = store.as_mut();
    join(store, "dead");
    fixture.advance(FORGOTTEN - Duration::from_millis(1));
    assert_eq!(names(&join(store, "a")), ["dead", "a"]);
    fixture.advance(Duration::from_millis(2));
    assert_eq!(names(&join(store, "b")), ["a", "b"]);
}

pub(super) fn a_line_is_of_one_group(fixture: &dyn Fixture) {
    let mut store = held(fixture);
    let store = store.as_mut();
    grant_to(store, &claim("h", "holder", "s1"), 2);
    join(store, "a");
    send_heartbeat(store, &group("h"), &waiter("b"));
    assert_eq!(names(&queue(store)), ["a"]);
    store.leave(&group("h"), &waiter("a").session).unwrap();
    assert_eq!(names(&queue(store)), ["a"]);
    let queues = store.list().unwrap().queues;
    let all = queues.iter().map(|(group, entry)| {
        let session = entry.waiter.session.as_str();
        (group.as_str(), session)
    });
    assert_eq!(all.collect::<Vec<_>>(), [("g", "a"), ("h", "b")]);
    let _ = fixture;
}

pub(super) fn a_line_that_many_join_at_once_has_one_order(fixture: &dyn Fixture) {
    let mut store = held(fixture);
    thread::scope(|scope| {
        for n in 0..8 {
            let mut store = fixture.store();
            scope.spawn(move || {
                for _ in 0..5 {
                    join(store.as_mut(), &format!("w{n}"));
                }
            });
        }
    });
    let queue = queue(store.as_mut());
    assert_eq!(queue.len(), 8);
    assert!(queue.is_sorted_by(|one, next| one.number < next.number));
}
