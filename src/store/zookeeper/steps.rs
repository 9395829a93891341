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
