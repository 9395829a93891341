//! Commits and announcements over a connection to a server in this process.

use super::super::test_peer::{done, epoch, over, seen};
use super::*;
use crate::store::etcd::messages::TxnRequest;
use crate::store::kv::Delete;
use crate::store::kv::written::Written;

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
    over(answer, async |link, asked| {
        link.write(&commit, seen, None).await.unwrap().unwrap();
        let sent: Vec<TxnRequest> = asked.of("Txn");
        let sizes = sent.iter().map(|it| (it.compare.len(), it.success.len()));
        let sizes: Vec<(usize, usize)> = sizes.collect();
        // The last one compares what is left and the clock, and raises the mark.
        assert_eq!(sizes, [(0, 100), (0, 100), (25, 71)]);
    });
}
