//! Connections and their sessions, with a server in this process.

use std::time::Instant;

use super::super::test_peer::over;
use super::session::Link as _;
use super::*;
use crate::store::kv::flights::Flights as _;

/// A session that has been silent for longer may end on the way to the server.
#[test]
fn a_connection_is_used_for_half_of_the_time_that_its_session_lives() {
    let answered = |_: &str| (0, Vec::new());
    over(60_000, answered, async |link, asked| {
        assert!(link.is_alive().await);
        link.stay().await.unwrap();
        assert_eq!(asked.take(), "");
        let half = Duration::from_secs(30);
        link.channel.heard_at = Instant::now().checked_sub(half).unwrap();
        assert!(!link.is_alive().await);
        link.stay().await.unwrap();
        assert_eq!(asked.take(), "11 |");
        assert!(link.is_alive().await, "it was heard again");
        link.quit().await;
        tokio::task::yield_now().await;
        assert_eq!(asked.take(), "-11 |");
    });
}
