//! The requests of a commit's transaction, and what their answers say. Pure.

use std::collections::BTreeMap;

use super::seen::Seen;
use super::tree::Tree;
use super::wire::{Part, Request};
use crate::store::kv::Commit;
use crate::store::kv::written::{Place, Written};

/// A request of a transaction, and what it is about.
pub(super) struct Step {
    pub(super) request: Request,
    /// The list and the rank, if it is a place in a list; else it is an entry.
    pub(super) place: Option<(String, i64)>,
}

/// The requests of a commit, and the entries as they are then, without the server's stamps.
pub(super) fn steps(
    tree: &Tree,
    commit: &Commit,
    seen: &Seen,
) -> (Vec<Step>, BTreeMap<String, Written>) {
    let (mut steps, mut after) = (Vec::new(), BTreeMap::new());
    let mut entry = |request| {
        steps.push(Step {
            request,
            place: None,
        });
    };
    for key in commit.touched() {
        let path = tree.entry(key);
        let version = seen
            .entries
            .get(key)
            .map(|read| i32::try_from(read.revision).unwrap_or(-1));
        let put = commit.puts.iter().find(|it| it.key == *key);
        let is_removed = commit.deletes.iter().any(|it| it.key == *key);
        let data = put.map(|put| {
            let before = seen.entries.get(key).map(|read| &read.written);
            let mut written = Written::over(before, put, &seen.now).0;
            // The server stamps it.
            if (put.stamps || before.is_none()) && !seen.more.is_turned {
                written.stamp = None;
            }
            let data = written.json();
            after.insert(key.clone(), written);
            data
        });
        match (version, data, is_removed) {
            (Some(version), Some(data), _) => entry(Request::Set {
                path,
                data,
                version: Some(version),
            }),
            (None, Some(data), _) => entry(Request::Create { path, data }),
            (Some(version), None, true) => entry(Request::Delete {
                path,
                version: Some(version),
            }),
            (Some(version), None, false) => entry(Request::Check { path, version }),
            (None, None, false) => {
                // What must be absent can be made, and removed.
                let data = Vec::new();
                entry(Request::Create {
                    path: path.clone(),
                    data,
                });
                let version = None;
                entry(Request::Delete { path, version });
            }
            (None, None, true) => {}
        }
    }
    let mut place = |is_new, list: &str, rank, key: &str| {
        let path = tree.place(list, rank, key);
        let request = match is_new {
            true => Request::Create {
                path,
                data: Vec::new(),
            },
            false => Request::Delete {
                path,
                version: None,
            },
        };
        let place = Some((list.to_owned(), rank));
        steps.push(Step { request, place });
    };
    for put in &commit.puts {
        let before = seen.entries.get(&put.key).map(|read| &read.written);
        for Place { list, rank, before } in Written::over(before, put, &seen.now).1 {
            if before != Some(rank) {
                place(true, &list, rank, &put.key);
                if let Some(old) = before {
                    place(false, &list, old, &put.key);
                }
            }
        }
    }
    for delete in &commit.deletes {
        let read = seen.entries.get(&delete.key);
        for (list, rank) in read.into_iter().flat_map(|read| &read.written.lists) {
            place(false, list, *rank, &delete.key);
        }
    }
    (steps, after)
}

/// The version of an entry after a transaction that wrote it.
pub(super) fn version_of(path: &str, steps: &[Step], parts: &[Part]) -> i64 {
    let mut both = steps.iter().zip(parts);
    let set = both.find_map(|(step, part)| match part {
        Part::Set(stat) if step.request.path() == path => Some(*stat),
        _ => None,
    });
    // A new node begins with version 0.
    set.map_or(0, |stat| stat.version.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::kv::flights::Read;
    use crate::store::kv::test_entries::{delete, put, read};
    use crate::store::kv::{Put, Rank};
    use crate::store::zookeeper::test_peer::seen;
    use crate::store::zookeeper::wire::Stat;
    use crate::token::StoreTime;

    fn tree() -> Tree {
        Tree::new("/a/b")
    }

    /// An entry with these places.
    fn listed<const N: usize>(revision: i64, places: [(&str, i64); N]) -> Read {
        let mut read = read("1", revision);
        let owned = places.map(|(list, rank)| (list.to_owned(), rank));
        read.written.lists = owned.into();
        read
    }

    fn words(step: &Step) -> String {
        match &step.request {
            Request::Create { path, .. } => format!("create {path}"),
            Request::Set { path, version, .. } => format!("set {path} {version:?}"),
            Request::Delete { path, version } => format!("delete {path} {version:?}"),
            Request::Check { path, version } => format!("check {path} {version}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_transaction_goes_by_all_that_was_read() {
        let mut seen = seen(9_000);
        seen.entries.insert("a".into(), read("1", 3));
        seen.entries.insert("b".into(), listed(4, [("x", 5)]));
        seen.entries.insert("d".into(), read("1", 6));
        let commit = Commit {
            compare: vec![("a".into(), Some("1".into())), ("absent".into(), None)],
            puts: vec![put("d", "2"), put("new", "2")],
            deletes: vec![delete("b"), delete("gone")],
            ..Commit::default()
        };
        let (steps, _) = steps(&tree(), &commit, &seen);
        let place = tree().place("x", 5, "b");
        assert_eq!(
            steps.iter().map(words).collect::<Vec<_>>(),
            [
                "check /a/b/e/a 3",
                // What must be absent can be made.
                "create /a/b/e/absent",
                "delete /a/b/e/absent None",
                "delete /a/b/e/b Some(4)",
                "set /a/b/e/d Some(6)",
                "create /a/b/e/new",
                &format!("delete {place} None"),
            ]
        );
    }

    #[test]
    fn an_entry_moves_in_its_lists() {
        let mut seen = seen(9_000);
        let before = listed(3, [("moved", 5), ("same", 6)]);
        seen.entries.insert("k".into(), before);
        let lists = [("moved", 7), ("new", 8), ("same", 6)];
        let put = Put {
            lists: lists
                .map(|(list, rank)| (list.to_owned(), Rank::At(rank)))
                .to_vec(),
            ..put("k", "2")
        };
        let commit = Commit {
            puts: vec![put],
            ..Commit::default()
        };
        let (steps, _) = steps(&tree(), &commit, &seen);
        let place = |list, rank| tree().place(list, rank, "k");
        assert_eq!(
            steps[1..].iter().map(words).collect::<Vec<_>>(),
            [
                format!("create {}", place("moved", 7)),
                format!("delete {} None", place("moved", 5)),
                format!("create {}", place("new", 8)),
            ]
        );
        assert_eq!(steps[2].place, Some(("moved".to_owned(), 5)));
    }

    /// An operator's act keeps the stamp of the heartbeat before it.
    #[test]
    fn the_server_stamps_what_is_stamped() {
        let earlier = seen(4_000).now;
        let mut seen = seen(9_000);
        for key in ["beaten", "kept"] {
            let mut before = read("1", 3);
            before.written.stamp = Some((&earlier).into());
            seen.entries.insert(key.into(), before);
        }
        let unstamped = |key| Put {
            stamps: false,
            ..put(key, "2")
        };
        let commit = Commit {
            puts: vec![put("beaten", "2"), unstamped("kept"), unstamped("new")],
            ..Commit::default()
        };
        let stamps = |seen: &Seen| {
            let (steps, after) = steps(&tree(), &commit, seen);
            let written = steps.iter().map(|step| match &step.request {
                Request::Set { data, .. } | Request::Create { data, .. } => Written::read(data),
                other => panic!("{other:?}"),
            });
            let written: Vec<Written> = written.collect();
            assert!(after.values().eq(&written));
            assert!(after.keys().eq(["beaten", "kept", "new"]));
            let stamp = |it: Written| it.stamp.map(|it| StoreTime::from(it).stamp.tick_ms);
            written.into_iter().map(stamp).collect::<Vec<_>>()
        };
        assert_eq!(stamps(&seen), [None, Some(4_000), None]);
        // By a clock that a test sets.
        seen.more.is_turned = true;
        assert_eq!(stamps(&seen), [Some(9_000), Some(4_000), Some(9_000)]);
    }

    #[test]
    fn an_entry_has_the_version_that_its_own_request_gave_it() {
        let set = |key: &str| Step {
            request: Request::Set {
                path: tree().entry(key),
                data: Vec::new(),
                version: None,
            },
            place: None,
        };
        let part = |version| {
            Part::Set(Stat {
                created: 1,
                changed: 1,
                at_ms: 1,
                version,
            })
        };
        let (steps, parts) = ([set("a"), set("b")], [part(3), part(4)]);
        let version = |key| version_of(&tree().entry(key), &steps, &parts);
        assert_eq!(["a", "b", "made"].map(version), [3, 4, 0]);
    }
}
