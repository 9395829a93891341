//! What `doctor` makes of the answers of a server in this process.

use prost::Message as _;

use super::*;
use crate::store::etcd::messages::{Member, TxnResponse, With};
use crate::store::etcd::test_peer::{Answer, done, lease, message, over};

#[test]
fn the_servers_and_the_alarms_of_a_cluster_are_told() {
    let answer = |method: &str, _: &[u8]| match method {
        "MemberList" => message(&MemberListResponse {
            members: vec![Member::default(); 3],
            ..MemberListResponse::default()
        }),
        _ => message(&AlarmResponse {
            alarms: [1, 2].map(|alarm| AlarmMember { alarm }).to_vec(),
        }),
    };
    over(answer, async |link, _| {
        assert_eq!(link.members().await.unwrap(), 3);
        assert_eq!(link.alarms().await.unwrap(), "NOSPACE CORRUPT");
    });
}

#[test]
fn a_clock_that_has_begun_tells_how_long_it_has_counted() {
    for (granted, ttl, expected) in [(100, 40, Some(60)), (5, 0, Some(5)), (0, -1, None)] {
        let answer = move |_: &str, _: &[u8]| lease(granted, ttl);
        let passed = over(answer, async |link, _| link.passed().await.unwrap());
        assert_eq!(passed, expected, "{granted} {ttl}");
    }
}

/// The range of a transaction with one.
fn range_in(request: &[u8]) -> RangeRequest {
    let mut txn = TxnRequest::decode(request).unwrap();
    match txn.success.remove(0).request {
        Some(Request::Range(range)) => range,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_store_keeps_all_revisions_if_the_first_of_many_can_be_read() {
    let keeps_all = |now, first: Answer| {
        let answer = move |_: &str, request: &[u8]| match range_in(request).revision {
            0 => done(now, Vec::new()),
            _ => first.clone(),
        };
        let keeps = over(answer, async |link, _| link.keeps_all().await);
        keeps.map_err(|fault| fault.words())
    };
    let read = || done(1, Vec::new());
    assert_eq!(keeps_all(MANY, read()), Ok(true));
    assert_eq!(keeps_all(MANY - 1, read()), Ok(false));
    let compacted = Err((11, "required revision has been compacted"));
    assert_eq!(keeps_all(MANY, compacted), Ok(false));
    let denied = keeps_all(MANY, Err((7, "permission denied")));
    assert!(denied.unwrap_err().contains("permission denied"));
}

/// A write that is compared with a revision that no key has never happens.
#[test]
fn the_right_to_write_and_to_remove_is_asked_for_without_a_write() {
    let may = |refuses_removals| {
        let answer = move |_: &str, request: &[u8]| {
            let txn = TxnRequest::decode(request).unwrap();
            let with = txn.compare[0].with.clone();
            assert_eq!(with, Some(With::ModRevision(-1)));
            let is_removal = matches!(txn.success[0].request, Some(Request::Delete(_)));
            match is_removal == refuses_removals {
                true => Err((7, "permission denied")),
                false => message(&TxnResponse::default()),
            }
        };
        over(answer, async |link, peer| {
            let refused = link.may_write().await.is_err();
            (refused, peer.of::<TxnRequest>("Txn").len())
        })
    };
    assert_eq!(may(false), (true, 1));
    assert_eq!(may(true), (true, 2));
}
