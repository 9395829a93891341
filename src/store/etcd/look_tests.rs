//! What a look makes of the answers of a server in this process.

use super::super::messages::RangeRequest;
use super::super::test_peer::{Answer, header, lease, message, over};
use super::*;

/// The clock of a look; an error is in words.
fn clock(granted: i64, ttl: i64, begins: Answer) -> (Result<Option<(u64, Mark)>, String>, usize) {
    let answer = move |method: &str, _: &[u8]| match method {
        "LeaseTimeToLive" => lease(granted, ttl),
        "Status" => message(&StatusResponse {
            raft_index: 9,
            ..StatusResponse::default()
        }),
        _ => begins.clone(),
    };
    over(answer, async |link, asked| {
        let clock = link.clock().await.map_err(|fault| fault.words());
        let begun: Vec<LeaseGrantRequest> = asked.of("LeaseGrant");
        assert!(begun.iter().all(|it| it.ttl == EVER));
        (clock, begun.len())
    })
}

/// A server that does not lead counts up to a minute more than was granted. One that says more does not count at all.
#[test]
fn a_clock_is_read_where_it_counts_and_begins_once() {
    let nothing = || Ok(Vec::new());
    let at = |seconds| (Ok(Some((4, Mark { seconds, index: 9 }))), 0);
    assert_eq!(clock(100, 40, nothing()), at(60));
    assert_eq!(clock(5, 0, nothing()), at(5));
    assert_eq!(clock(100, 100 + NOT_LED, nothing()), at(0));
    let (refused, _) = clock(100, 101 + NOT_LED, nothing());
    assert!(refused.unwrap_err().contains("does not lead"));
    assert_eq!(clock(0, -1, nothing()), (Ok(None), 1));
    let there = Err((9, "etcdserver: lease already exists"));
    assert_eq!(clock(0, -1, there), (Ok(None), 1));
    let (denied, _) = clock(0, -1, Err((7, "permission denied")));
    assert!(denied.unwrap_err().contains("permission denied"));
}

/// Some versions refuse every transaction when the database is full. The reads are of one revision nevertheless.
#[test]
fn a_full_database_is_read_without_transactions() {
    let answer = |method: &str, _: &[u8]| match method {
        "Txn" => Err((8, "etcdserver: mvcc: database space exceeded")),
        _ => message(&RangeResponse {
            header: header(7),
            ..RangeResponse::default()
        }),
    };
    over(answer, async |link, asked| {
        let at = |revision| {
            operation(Request::Range(RangeRequest {
                revision,
                ..RangeRequest::default()
            }))
        };
        let txn = TxnRequest {
            success: vec![at(0), at(0), put(Vec::new(), Vec::new()), at(5)],
            ..TxnRequest::default()
        };
        let read = link.one_by_one(txn).await.unwrap();
        assert_eq!((read.header, read.responses.len()), (header(7), 3));
        let ranges: Vec<RangeRequest> = asked.of("Range");
        let revisions: Vec<i64> = ranges.iter().map(|it| it.revision).collect();
        assert_eq!(revisions, [0, 7, 5]);
    });
}
