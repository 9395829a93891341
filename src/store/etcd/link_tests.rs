//! Connections and their log-ins, with a server in this process.

use super::super::test_peer::{message, opened, over};
use super::session::Link as _;
use super::*;

#[test]
fn a_log_in_goes_along_with_each_request() {
    let answer = |method: &str, _: &[u8]| match method {
        "Authenticate" => message(&AuthenticateResponse {
            token: "known".into(),
        }),
        _ => message(&TxnResponse::default()),
    };
    opened("ann:secret@", answer, async |link, peer| {
        link.txn(&TxnRequest::default()).await.unwrap();
        assert_eq!(peer.logged_in(), ["Authenticate ", "Txn known"]);
        let of: Vec<AuthenticateRequest> = peer.of("Authenticate");
        let named = (of[0].name.as_str(), of[0].password.as_str());
        assert_eq!(named, ("ann", "secret"));
    });
    opened("", answer, async |link, peer| {
        link.txn(&TxnRequest::default()).await.unwrap();
        assert_eq!(peer.logged_in(), ["Txn "]);
    });
}

#[test]
fn a_connection_lives_until_its_server_is_gone() {
    over(
        |_, _| Ok(Vec::new()),
        async |link, peer| {
            assert!(link.is_alive().await);
            peer.end().await;
            assert!(!link.is_alive().await);
        },
    );
}
