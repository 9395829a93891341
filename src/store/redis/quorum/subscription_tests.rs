//! Waiters are notified of a release by a majority of the members, one of which has taken it.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::QuorumKv;
use super::failure_tests::{PREFIX, client_of, look, until_joined};
use crate::store::Notifier;
use crate::store::kv::{Ask, Kv as _};
use crate::store::redis::settings::Settings;
use crate::store::redis::test_server::{Quorum, Server};

/// Far longer than a notification takes.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Announces on a channel of this store; returns how many hear it.
fn announce(server: &Server, channel: &str) -> String {
    let channel = format!("{{{PREFIX}}}:{channel}");
    server.cli(&["PUBLISH", &channel, ""])
}

fn is_same(kv: &mut QuorumKv, notifier: &Notifier) -> bool {
    let now = kv.notifier();
    now.is_some_and(|now| Arc::ptr_eq(&now.0, &notifier.0))
}

#[test]
fn a_majority_of_members_notifies_until_a_look_or_another_subscription() {
    let quorum = Quorum::start(3);
    let mut kv = client_of(&quorum);
    assert!(kv.notifier().is_none());
    kv.subscribe("x");
    let heard: Vec<String> = quorum.0.iter().map(|it| announce(it, "x")).collect();
    assert_eq!(heard, ["1", "1", "0"]);
    let notifier = kv.notifier().unwrap();
    for server in &quorum.0[..2] {
        assert!(notifier.signals_within(TIMEOUT));
        // Both of the first announcements are there by the second round at the latest.
        while notifier.signals_within(Duration::ZERO) {
            look(&mut kv);
        }
        assert!(is_same(&mut kv, &notifier));
        announce(server, "x");
    }
    assert!(notifier.signals_within(TIMEOUT));
    kv.subscribe("x");
    assert!(!notifier.signals_within(Duration::ZERO));
    assert!(is_same(&mut kv, &notifier));
    kv.subscribe("y");
    assert!(!is_same(&mut kv, &notifier));
    let left = &quorum.0[0];
    left.wait_until("the end of a connection", || announce(left, "x") == "0");
    assert_eq!(announce(&quorum.0[1], "y"), "1");
    assert!(kv.notifier().unwrap().signals_within(TIMEOUT));
}

/// A release may have reached the other members alone; and a connection that is over would notify for ever.
#[test]
fn a_subscription_to_a_minority_is_none() {
    let quorum = Quorum::start(3);
    until_joined(&quorum);
    let mut kv = client_of(&quorum);
    kv.subscribe("x");
    assert!(kv.notifier().is_some());
    quorum.0[0].kill();
    look(&mut kv);
    assert!(kv.notifier().is_none());
    assert_eq!(kv.condition().unwrap(), "2 of 3 servers answer");
    kv.subscribe("x");
    assert_eq!(announce(&quorum.0[2], "x"), "1");
    assert!(kv.notifier().unwrap().signals_within(TIMEOUT));
    quorum.0[1].kill();
    kv.subscribe("x");
    assert!(kv.notifier().is_none());
}

/// It may be away, and would take its part of the time.
#[test]
fn a_member_that_was_late_is_asked_for_no_subscription() {
    let quorum = Quorum::start(3);
    until_joined(&quorum);
    let mut kv = client_of(&quorum);
    quorum.0[0].freeze();
    look(&mut kv);
    quorum.0[0].thaw();
    kv.subscribe("x");
    let heard: Vec<String> = quorum.0.iter().map(|it| announce(it, "x")).collect();
    assert_eq!(heard, ["0", "1", "1"]);
}

/// The look that comes next has a call's time of its own.
#[test]
fn silent_members_take_no_longer_than_a_call() {
    let silent: [TcpListener; 3] =
        std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    let places = silent
        .each_ref()
        .map(|it| it.local_addr().unwrap().to_string());
    let url = format!("redis://{}/0?quorum", places.join(","));
    let settings = Settings::read(&url, |_| None).unwrap();
    let limit = Duration::from_secs(2);
    let mut kv = QuorumKv::new(settings, limit, "test").unwrap();
    let begun = Instant::now();
    kv.subscribe("x");
    assert!(begun.elapsed() < limit);
    assert!(kv.notifier().is_none());
}

#[test]
fn a_look_that_changes_nothing_lets_no_member_join() {
    let quorum = Quorum::start(3);
    let settings = Settings::read(&quorum.url(PREFIX), |_| None).unwrap();
    let kv = QuorumKv::new(settings, TIMEOUT, "test").unwrap();
    let mut kv = kv.that_changes_nothing();
    let none = kv.get(&[Ask::One("token:g".into())]).unwrap_err();
    assert!(none.what.contains("has not joined yet"), "{none}");
    assert_eq!(quorum.joined(PREFIX), 0);
    until_joined(&quorum);
    assert!(look(&mut kv).entries.is_empty());
}

/// The clock of each member can be set.
#[test]
fn the_time_of_members_has_no_ticks() {
    let settings = Settings::read("redis://a,b,c/0?quorum", |_| None).unwrap();
    let kv = QuorumKv::new(settings, TIMEOUT, "test").unwrap();
    assert!(!kv.has_ticks());
}
