//! Commits over a connection to a server in this process.

use std::sync::atomic::{AtomicBool, Ordering};

use super::super::ZkKv;
use super::super::settings::Settings;
use super::super::test_peer::{carried_out, code_of, failed_at, node, over, seen};
use super::super::tree::Tree;
use super::*;
use crate::store::kv::test_entries::{delete, put, read};
use crate::store::kv::{Announcement, Kv as _, Put, Rank};

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
        over(4_000, answered, async |link, peer| {
            let (mut steps, mut parts) = (places(), vec![Answered::Failed(0); 3]);
            parts[at] = Answered::Failed(why);
            let mended = link.mend(&mut steps, at, &parts).await;
            let mended = mended.map_err(|fault| code_of(&fault));
            (mended, steps.len(), peer.take())
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
        (0, carried_out(&vec![None; count]))
    };
    let keys: Vec<String> = (0..250).map(|n| format!("k{n}")).collect();
    let commit = Commit {
        deletes: keys.iter().map(|key| delete(key)).collect(),
        ..Commit::default()
    };
    over(4_000, answered, async |link, peer| {
        let mut seen = seen(5_000);
        seen.entries
            .extend(keys.into_iter().map(|key| (key, read("1", 0))));
        link.write(&commit, seen, None).await.unwrap().unwrap();
        assert_eq!(peer.take(), "14:100 | 14:50 | 14:100 |");
    });
}

/// What is announced to no waiter has no node.
#[test]
fn a_commit_is_one_flight_and_is_known_at_its_time() {
    let answered = |what: &str| match what {
        "14:2" => (0, carried_out(&[Some(3), None])),
        "5/a/b/rel/line" => (code::NO_NODE, Vec::new()),
        "4/a/b/e/behind" => (0, node(r#"{"version":"7","fields":{}}"#)),
        other => panic!("{other}"),
    };
    let commit = Commit {
        puts: vec![put("changed", "2")],
        deletes: vec![delete("old")],
        announces: Some(Announcement {
            channel: "line".into(),
            if_any_in: "waiters".into(),
        }),
        then: vec![Ask::One("behind".into())],
        ..Commit::default()
    };
    over(4_000, answered, async |link, peer| {
        let mut seen = seen(5_000);
        for key in ["changed", "old"] {
            seen.entries.insert(key.into(), read("1", 2));
        }
        let found = link.write(&commit, seen, None).await.unwrap().unwrap();
        assert_eq!(peer.take(), "14:2 5/a/b/rel/line 4/a/b/e/behind |");
        assert_eq!(found.now.stamp.tick_ms, 9_000);
        assert!(found.entries.keys().eq(["behind"]));
        let known = link.known.seen.take().unwrap();
        assert_eq!(known.now, found.now);
        assert!(known.entries.keys().eq(["behind", "changed"]));
        let changed = &known.entries["changed"];
        let stamp = changed.written.stamp.clone().map(StoreTime::from);
        assert_eq!((changed.revision, stamp), (3, Some(found.now)));
    });
}

/// The server removes a bucket some time after its last place.
#[test]
fn a_commit_makes_the_bucket_of_a_place_and_ends_when_an_entry_has_changed() {
    let commit = Commit {
        puts: vec![Put {
            lists: vec![("x".into(), Rank::At(0))],
            ..put("k", "1")
        }],
        ..Commit::default()
    };
    let write = |at, why| {
        let has_failed = AtomicBool::new(false);
        let answered = move |what: &str| match what {
            "14:2" if !has_failed.swap(true, Ordering::Relaxed) => (0, failed_at(at, why, 2)),
            "14:2" => (0, carried_out(&[None; 2])),
            _ => (0, Vec::new()),
        };
        over(4_000, answered, async |link, peer| {
            let written = link.write(&commit, seen(5_000), None).await.unwrap();
            (written.is_some(), peer.take())
        })
    };
    let bucket = Tree::new("/a/b").bucket("x", 0);
    let asked = format!("14:2 | 19/a/b/l/x 19{bucket} | 14:2 |");
    assert_eq!(write(1, code::NO_NODE), (true, asked));
    assert_eq!(write(0, code::NODE_EXISTS), (false, "14:2 |".to_owned()));
}

#[test]
fn a_watch_that_is_refused_is_none() {
    let watch = |why| {
        let answered = move |what: &str| match what {
            "1/a/b/rel/line" => (code::NODE_EXISTS, Vec::new()),
            _ => (why, Vec::new()),
        };
        over(4_000, answered, async |link, peer| {
            let watched = link.watch("line").await;
            assert_eq!(peer.take(), "1/a/b/rel/line 106/a/b/rel/line |");
            watched.map_err(|fault| code_of(&fault))
        })
    };
    assert_eq!(watch(0), Ok(()));
    assert_eq!(watch(code::NO_RIGHT), Err(code::NO_RIGHT));
}

/// It is the leader's wall clock, which may be set: no reading is judged by the one before.
#[test]
fn the_clock_is_taken_as_it_is_and_goes_on_between_two_answers() {
    let mut now = seen(5_000).now;
    Link::refresh(&mut now, Duration::from_millis(200));
    assert_eq!(now, seen(5_200).now);
    over(
        4_000,
        |_| (0, Vec::new()),
        async |link, _| {
            assert!(link.goes_on(&seen(5_000)));
            assert!(link.goes_on(&seen(4_000)));
        },
    );
    let settings = Settings::read("zk://h/a/b").unwrap();
    assert!(!ZkKv::over(settings, Duration::from_secs(1)).has_ticks());
}
