//! What a connection asks, and what it makes of the answers of a server in this process.

use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hyper::http::{HeaderMap, HeaderValue, Response as Head};
use prost::Message;
use tokio::io::{DuplexStream, duplex};

use super::super::messages::{Header, Member};
use super::*;
use crate::store::kv::Delete;
use crate::store::net::session::event_loop;

/// What a server answers: a message, or an error's number and text.
type Answer = Result<Vec<u8>, (u32, &'static str)>;

/// The method of a request, and its message.
type Call = (String, Vec<u8>);

/// What a server was asked.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<Call>>>);

impl Asked {
    fn all(&self) -> MutexGuard<'_, Vec<Call>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The messages of one method, in their order.
    fn of<M: Message + Default>(&self, method: &str) -> Vec<M> {
        let all = self.all();
        let those = all.iter().filter(|(name, _)| name == method);
        those.map(|(_, it)| M::decode(&it[..]).unwrap()).collect()
    }
}

async fn serve(client: DuplexStream, asked: Asked, answer: impl Fn(&str, &[u8]) -> Answer) {
    let mut connection = h2::server::handshake(client).await.unwrap();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let (request, mut body) = request.into_parts();
        let mut message = Vec::new();
        // The connection moves while the next request is waited for: a message comes with its head.
        while let Some(part) = body.data().await {
            message.extend_from_slice(&part.unwrap());
        }
        let method = request.uri.path().rsplit('/').next().unwrap().to_owned();
        let answered = answer(&method, &message[5..]);
        asked.all().push((method, message.split_off(5)));
        let mut stream = respond.send_response(Head::new(()), false).unwrap();
        let mut trailers = HeaderMap::new();
        match answered {
            Ok(message) => {
                let length = u32::try_from(message.len()).unwrap().to_be_bytes();
                let framed = [&[0][..], &length, &message].concat();
                stream.send_data(Bytes::from(framed), false).unwrap();
                trailers.insert("grpc-status", HeaderValue::from_static("0"));
            }
            Err((code, text)) => {
                trailers.insert("grpc-status", code.into());
                trailers.insert("grpc-message", HeaderValue::from_static(text));
            }
        }
        stream.send_trailers(trailers).unwrap();
    }
}

/// Carries out `work` on a connection to a server that answers so.
fn over<T>(
    answer: impl Fn(&str, &[u8]) -> Answer + Send + Sync + 'static,
    work: impl AsyncFnOnce(&mut Link, &Asked) -> T,
) -> T {
    event_loop().unwrap().block_on(async {
        let (near, far) = duplex(1 << 20);
        let asked = Asked::default();
        tokio::spawn(serve(far, asked.clone(), answer));
        let channel = Channel::open(Box::new(near), "http://h".into()).await;
        let mut link = Link {
            channel: channel.unwrap(),
            keys: Keys::new("p"),
            socket: Arc::new(UnixStream::pair().unwrap().0.into()),
            secured: false,
            last: None,
            known: Known::default(),
            incoming: None,
        };
        work(&mut link, &asked).await
    })
}

fn message(of: &impl Message) -> Answer {
    Ok(of.encode_to_vec())
}

fn header(revision: i64) -> Option<Header> {
    Some(Header {
        revision,
        raft_term: 4,
        ..Header::default()
    })
}

/// The answer to a transaction with these reads.
fn done(revision: i64, reads: Vec<RangeResponse>) -> Answer {
    let response = |read| ResponseOp {
        response: Some(Response::Range(read)),
    };
    message(&TxnResponse {
        header: header(revision),
        succeeded: true,
        responses: reads.into_iter().map(response).collect(),
    })
}

fn lease(granted: i64, ttl: i64) -> Answer {
    message(&TimeToLiveResponse {
        header: header(1),
        ttl,
        granted,
    })
}

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
        over(answer, async |link, asked| {
            let refused = link.may_write().await.is_err();
            (refused, asked.of::<TxnRequest>("Txn").len())
        })
    };
    assert_eq!(may(false), (true, 1));
    assert_eq!(may(true), (true, 2));
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

/// A cluster's clock goes on as this process's does: by no more than the time that has passed, and never back.
#[test]
fn a_clock_goes_on_within_the_time_that_has_passed() {
    let answer = |_: &str, _: &[u8]| Ok(Vec::new());
    over(answer, async |link, _| {
        let before = |ms| Instant::now().checked_sub(Duration::from_millis(ms));
        let mut goes_on = |ms, term, seconds| {
            let before = before(ms).unwrap();
            link.last = Some((epoch(4), 100, before));
            let goes_on = link.goes_on(&seen(term, seconds));
            let (of, noted, at) = link.last.unwrap();
            assert_eq!((of, noted), (epoch(term), seconds));
            assert!(at > before);
            goes_on
        };
        for (ms, seconds, expected) in [
            (0, 100, true),
            (0, 100 + SLACK, true),
            (0, 105 + SLACK, false),
            (0, 99, false),
            (10_100, 110 + SLACK, true),
            (10_100, 115 + SLACK, false),
        ] {
            assert_eq!(goes_on(ms, 4, seconds), expected, "{ms} {seconds}");
            // Another leader counts anew.
            assert!(goes_on(ms, 5, seconds));
        }
    });
}

fn epoch(term: u64) -> Epoch {
    Epoch {
        generation: 1,
        term,
    }
}

fn seen(term: u64, seconds: i64) -> Seen {
    let (epoch, mark) = (epoch(term), Mark { seconds, index: 9 });
    Seen {
        asked_at: Instant::now(),
        now: StoreTime {
            epoch: ClockEpoch(epoch_text(epoch)),
            stamp: Stamp {
                tick_ms: seconds * 1_000,
                wall: wall(),
            },
        },
        entries: BTreeMap::new(),
        more: Clocked {
            epoch,
            kept: Kept { epoch, mark },
            revision: 3,
            mark,
            step_ms: STEP_MS,
            incarnation: Incarnation("i".into()),
        },
    }
}

/// A transaction has at most so many operations. Old records go ahead: they are of no use to each other.
#[test]
fn many_removals_are_sent_in_parts() {
    let key = |n: usize| format!("k{n}");
    let lists = ["x", "y"].map(str::to_owned);
    let delete = |n| Delete {
        key: key(n),
        lists: lists.to_vec(),
    };
    let commit = Commit {
        deletes: (0..90).map(delete).collect(),
        ..Commit::default()
    };
    let mut seen = seen(4, 100);
    let written = Written {
        lists: lists.into_iter().map(|list| (list, 1)).collect(),
        ..Written::default()
    };
    let read = Read {
        written,
        number: 0,
        revision: 5,
    };
    seen.entries = (0..90).map(|n| (key(n), read.clone())).collect();
    let answer = |_: &str, _: &[u8]| done(9, Vec::new());
    over(answer, async |link, asked| {
        link.write(&commit, seen, None).await.unwrap().unwrap();
        let sent: Vec<TxnRequest> = asked.of("Txn");
        let sizes = sent.iter().map(|it| (it.compare.len(), it.success.len()));
        let sizes: Vec<(usize, usize)> = sizes.collect();
        // The last one compares what is left and the clock, and raises the mark.
        assert_eq!(sizes, [(0, 100), (0, 100), (25, 71)]);
    });
}
