//! Connections and their sessions, with a server in this process.

use std::time::Instant;

use super::super::test_peer::{opened, over};
use super::super::wire::Request;
use super::session::Link as _;
use super::*;
use crate::store::kv::flights::Flights as _;

/// A session that has been silent for longer may end on the way to the server.
#[test]
fn a_connection_is_used_for_half_of_the_time_that_its_session_lives() {
    let answered = |_: &str| (0, Vec::new());
    over(60_000, answered, async |link, peer| {
        assert!(link.is_alive().await);
        link.stay().await.unwrap();
        assert_eq!(peer.take(), "");
        let half = Duration::from_secs(30);
        link.channel.heard_at = Instant::now().checked_sub(half).unwrap();
        assert!(!link.is_alive().await);
        link.stay().await.unwrap();
        assert_eq!(peer.take(), "11 |");
        assert!(link.is_alive().await, "it was heard again");
        link.quit().await;
        tokio::task::yield_now().await;
        assert_eq!(peer.take(), "-11 |");
    });
}

/// A read brings the request for its session along, and fails without an effect if there is none.
#[test]
fn a_connection_waits_for_its_session_unless_a_read_comes_first() {
    let opened = |may_defer| {
        let answered = |_: &str| (0, Vec::new());
        opened(may_defer, answered, async |link, peer| {
            let before = peer.take();
            link.channel.flight(&[Request::Ping]).await.unwrap();
            [before, peer.take()]
        })
    };
    assert_eq!(opened(false), ["hello |", "11 |"]);
    assert_eq!(opened(true), ["", "hello 11 |"]);
}

#[test]
fn a_connection_lives_until_its_server_is_gone() {
    let answered = |_: &str| (0, Vec::new());
    over(60_000, answered, async |link, peer| {
        assert!(link.is_alive().await);
        assert!(link.drain().await);
        peer.end().await;
        assert!(!link.is_alive().await);
        assert!(!link.drain().await);
    });
}
