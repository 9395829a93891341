//! Commits and announcements over a connection to a server in this process.

use super::super::EtcdKv;
use super::super::messages::TxnRequest;
use super::super::settings::Settings;
use super::super::test_peer::{done, epoch, over, seen};
use super::*;
use crate::store::kv::test_entries::{put, read};
use crate::store::kv::written::Written;
use crate::store::kv::{Delete, Kv as _};
use crate::token::WallTime;

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
    over(answer, async |link, peer| {
        link.write(&commit, seen, None).await.unwrap().unwrap();
        let sent: Vec<TxnRequest> = peer.of("Txn");
        let sizes = sent.iter().map(|it| (it.compare.len(), it.success.len()));
        let sizes: Vec<(usize, usize)> = sizes.collect();
        // The last one compares what is left and the clock, and raises the mark.
        assert_eq!(sizes, [(0, 100), (0, 100), (25, 71)]);
    });
}

#[test]
fn what_a_commit_wrote_is_known_at_its_revision() {
    over(
        |_, _| done(9, Vec::new()),
        async |link, _| {
            let mut seen = seen(4, 100);
            seen.entries.insert("a".into(), read("1", 5));
            let commit = Commit {
                puts: ["a", "b"].map(|key| put(key, "2")).to_vec(),
                ..Commit::default()
            };
            link.write(&commit, seen, None).await.unwrap().unwrap();
            let known = link.known.seen.take().unwrap().entries;
            let of = |key: &str| {
                let read = &known[key];
                (read.written.version.as_str(), read.number, read.revision)
            };
            // An entry's number is the revision that made it.
            assert_eq!(of("a"), ("2", 1, 9));
            assert_eq!(of("b"), ("2", 9, 9));
        },
    );
}

/// A stamp is a reading in whole seconds, but a rank is a wall time.
#[test]
fn what_is_known_serves_with_the_wall_time_of_its_use() {
    let mut now = seen(4, 100).now;
    let tick_ms = now.stamp.tick_ms;
    now.stamp.wall = WallTime(5);
    let before = wall();
    Link::refresh(&mut now, Duration::from_millis(200));
    assert!(now.stamp.wall >= before);
    assert_eq!(now.stamp.tick_ms, tick_ms);
    let settings = Settings::read("etcd://h/p", |_| None).unwrap();
    assert!(EtcdKv::over(settings, Duration::from_secs(1)).has_ticks());
}

#[test]
fn a_watch_lasts_until_its_connection_is_over() {
    over(
        |_, _| Ok(Vec::new()),
        async |link, peer| {
            assert!(link.drain().await, "nothing is watched");
            link.watch("line:g").await.unwrap();
            let request = peer.of::<WatchRequest>("Watch").remove(0).request;
            let key = b"p/rel/line:g".to_vec();
            let expected = Watch::Create(WatchCreateRequest { key });
            assert_eq!(request, Some(expected));
            assert!(link.drain().await);
            assert!(link.drain().await);
            peer.end().await;
            assert!(!link.drain().await);
        },
    );
}
