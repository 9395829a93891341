//! Commits over a connection to a server in this process.

use std::time::Instant;

use super::super::seen::tests::stat;
use super::super::test_peer::{code_of, over, removed};
use super::super::tree::Tree;
use super::*;

fn places() -> Vec<Step> {
    let path = || "/a/b/e/k".to_owned();
    let place = || Some(("x".to_owned(), 0));
    let create = || Request::Create {
        path: path(),
        data: Vec::new(),
    };
    let delete = || Request::Delete {
        path: path(),
        version: None,
    };
    let all = [(create(), None), (create(), place()), (delete(), place())];
    let step = |(request, place)| Step { request, place };
    all.into_iter().map(step).collect()
}

#[test]
fn a_transaction_is_mended_where_places_come_and_go() {
    let mend = |at, why, of_lists| {
        let answered = move |_: &str| (of_lists, Vec::new());
        over(4_000, answered, async |link, asked| {
            let (mut steps, mut parts) = (places(), vec![Answered::Failed(0); 3]);
            parts[at] = Answered::Failed(why);
            let mended = link.mend(&mut steps, at, &parts).await;
            let mended = mended.map_err(|fault| code_of(&fault));
            (mended, steps.len(), asked.take())
        })
    };
    let nothing = String::new;
    for why in [code::BAD_VERSION, code::NODE_EXISTS, code::NO_NODE] {
        assert_eq!(mend(0, why, 0), (Ok(false), 3, nothing()), "an entry");
    }
    assert_eq!(mend(1, code::NODE_EXISTS, 0), (Ok(true), 2, nothing()));
    assert_eq!(mend(2, code::NO_NODE, 0), (Ok(true), 2, nothing()));
    let bucket = Tree::new("/a/b").bucket("x", 0);
    let lists = format!("19/a/b/l/x 19{bucket} |");
    for there in [0, code::NODE_EXISTS] {
        let mended = (Ok(true), 3, lists.clone());
        assert_eq!(mend(1, code::NO_NODE, there), mended);
    }
    let denied = code::NO_RIGHT;
    assert_eq!(mend(1, code::NO_NODE, denied).0, Err(denied));
    for at in 0..3 {
        assert_eq!(mend(at, denied, 0), (Err(denied), 3, nothing()));
    }
}

/// A server refuses a transaction that is too long. Old records go ahead: they are of no use to each other.
#[test]
fn many_records_are_removed_in_parts() {
    let answered = |what: &str| {
        let count = what.strip_prefix("14:").unwrap().parse().unwrap();
        (0, removed(count))
    };
    let key = |n| format!("k{n}");
    let commit = Commit {
        deletes: (0..250)
            .map(|n| Delete {
                key: key(n),
                lists: Vec::new(),
            })
            .collect(),
        ..Commit::default()
    };
    over(4_000, answered, async |link, asked| {
        let now = Now::new(&stat((7 << 32) + 5, 9_000), "id", None);
        let read = now.read(br#"{"version":"1","fields":{}}"#, &stat(1, 1));
        let seen = Seen {
            asked_at: Instant::now(),
            now: now.time.clone(),
            entries: (0..250).map(|n| (key(n), read.clone())).collect(),
            more: now,
        };
        let found = link.write(&commit, seen, None).await.unwrap().unwrap();
        assert_eq!(found.now.stamp.tick_ms, 9_000);
        assert_eq!(asked.take(), "14:100 | 14:50 | 14:100 |");
    });
}
