//! What a look makes of the answers of a server in this process.

use std::sync::atomic::{AtomicBool, Ordering};

use prost::Message as _;

use super::super::entry::{Keys, Writes};
use super::super::messages::{KeyValue, Member, RangeRequest};
use super::super::test_peer::{Answer, done, epoch, header, lease, message, over, seen};
use super::*;
use crate::store::kv::flights::Flights as _;
use crate::store::kv::keys::whole;
use crate::store::kv::{Put, Rank, test_entries};

/// The answers to what a look asks besides its reads.
fn beside(method: &str) -> Answer {
    match method {
        "MemberList" => message(&MemberListResponse {
            members: vec![Member::default(); 3],
            ..MemberListResponse::default()
        }),
        "LeaseTimeToLive" => lease(100, 40),
        "Status" => message(&StatusResponse {
            raft_index: 9,
            ..StatusResponse::default()
        }),
        other => panic!("{other}"),
    }
}

/// What a store with the entries `a` and `b` in a list answers to a read.
fn found(asked: &RangeRequest) -> RangeResponse {
    let keys = Keys::new("p");
    let mut writes = Writes::default();
    for key in ["a", "b"] {
        let put = Put {
            lists: vec![("l".into(), Rank::At(0))],
            ..test_entries::put(key, "1")
        };
        writes.put(&keys, &put, None, &seen(4, 50).now);
    }
    let (seconds, index) = (50, 8);
    let mark = Mark { seconds, index };
    let mut all = writes.sets;
    all.insert(keys.own("epoch"), epoch(4).text().into_bytes());
    all.insert(keys.own("last"), mark.text());
    let range = &asked.key..&asked.range_end;
    let is_in = |key: &Vec<u8>| *key == asked.key || range.contains(&key);
    let those = all.into_iter().filter(|(key, _)| is_in(key));
    let kv = |(key, value)| KeyValue {
        key,
        value,
        ..KeyValue::default()
    };
    RangeResponse {
        header: header(7),
        kvs: those.map(kv).collect(),
        ..RangeResponse::default()
    }
}

/// The reads of a transaction.
fn ranges_in(request: &[u8]) -> Vec<RangeRequest> {
    let all = TxnRequest::decode(request).unwrap().success.into_iter();
    let range = |it: RequestOp| match it.request {
        Some(Request::Range(range)) => range,
        other => panic!("{other:?}"),
    };
    all.map(range).collect()
}

/// The answer to a transaction of reads.
fn all_found(request: &[u8]) -> Answer {
    done(7, ranges_in(request).iter().map(found).collect())
}

/// The entries that a look at the list finds.
async fn listed(link: &mut Link) -> Vec<String> {
    let seen = link.look(&[whole("l".into())], None).await.unwrap();
    seen.entries.into_keys().collect()
}

#[test]
fn entries_of_a_list_are_guessed_from_the_last_look() {
    let answer = |method: &str, request: &[u8]| match method {
        "Txn" => all_found(request),
        _ => beside(method),
    };
    over(answer, async |link, peer| {
        let flights = || peer.of::<TxnRequest>("Txn").len();
        assert_eq!(listed(link).await, ["a", "b"]);
        assert_eq!(flights(), 2);
        assert_eq!(listed(link).await, ["a", "b"]);
        assert_eq!(flights(), 3);
    });
}

/// A store that is new.
#[test]
fn an_epoch_is_written_before_a_look_is_certain() {
    let has_begun = AtomicBool::new(false);
    let answer = move |method: &str, request: &[u8]| match method {
        "Txn" if TxnRequest::decode(request).unwrap().compare.is_empty() => {
            match has_begun.load(Ordering::Relaxed) {
                true => all_found(request),
                false => done(7, vec![RangeResponse::default(); 3]),
            }
        }
        "Txn" => {
            has_begun.store(true, Ordering::Relaxed);
            done(8, Vec::new())
        }
        _ => beside(method),
    };
    over(answer, async |link, peer| {
        assert_eq!(listed(link).await, ["a", "b"]);
        let begins = peer.of::<TxnRequest>("Txn").remove(1);
        // Of two clients one begins.
        assert_eq!(begins.compare, [is_at(b"p/epoch".to_vec(), 0)]);
        let put = |it: &RequestOp| match &it.request {
            Some(Request::Put(put)) => put.key.clone(),
            other => panic!("{other:?}"),
        };
        let keys: Vec<Vec<u8>> = begins.success.iter().map(put).collect();
        assert_eq!(keys, [b"p/epoch", &b"p/last"[..]]);
    });
}

/// Another client compacts the revision of a look before its second flight.
#[test]
fn a_look_at_a_revision_that_is_compacted_starts_over() {
    let is_compacted = AtomicBool::new(false);
    let answer = move |method: &str, request: &[u8]| match method {
        "Txn" if ranges_in(request)[0].revision == 0 => all_found(request),
        "Txn" if !is_compacted.swap(true, Ordering::Relaxed) => {
            Err((11, "etcdserver: mvcc: required revision has been compacted"))
        }
        "Txn" => all_found(request),
        _ => beside(method),
    };
    over(answer, async |link, peer| {
        assert_eq!(listed(link).await, ["a", "b"]);
        assert_eq!(peer.of::<TxnRequest>("Txn").len(), 4);
    });
}

#[test]
fn a_look_at_a_full_database_needs_no_transaction() {
    let answer = |method: &str, request: &[u8]| match method {
        "Txn" => Err((8, "etcdserver: mvcc: database space exceeded")),
        "Range" => message(&found(&RangeRequest::decode(request).unwrap())),
        _ => beside(method),
    };
    over(answer, async |link, _| {
        assert_eq!(listed(link).await, ["a", "b"]);
    });
}

/// The clock of a look; an error is in words.
fn clock(granted: i64, ttl: i64, begins: Answer) -> (Result<Option<(u64, Mark)>, String>, usize) {
    let answer = move |method: &str, _: &[u8]| match method {
        "LeaseTimeToLive" => lease(granted, ttl),
        "Status" => beside(method),
        _ => begins.clone(),
    };
    over(answer, async |link, peer| {
        let clock = link.clock().await.map_err(|fault| fault.words());
        let begun: Vec<LeaseGrantRequest> = peer.of("LeaseGrant");
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
    over(answer, async |link, peer| {
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
        let ranges: Vec<RangeRequest> = peer.of("Range");
        let revisions: Vec<i64> = ranges.iter().map(|it| it.revision).collect();
        assert_eq!(revisions, [0, 7, 5]);
    });
}
