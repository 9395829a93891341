//! The transactions of a commit. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::clock::{Mark, Rules};
use super::entry::{Keys, Writes};
use super::messages::{
    Compare, Compared, Comparison, OPERATIONS, Request, RequestOp, TxnRequest, With, is_at,
    operation, put, remove,
};
use super::seen::{Seen, reads};
use crate::store::kv::Commit;
use crate::store::kv::written::Written;
use crate::token::{Fence, GroupName, Until};

/// How many operations a transaction has besides those of entries: the mark, the fence and the announcement.
const OWN: usize = 3;

/// What a commit sends.
pub(super) struct Plan {
    /// Removals that go ahead, each a transaction of its own.
    pub(super) ahead: Vec<TxnRequest>,
    pub(super) last: TxnRequest,
    /// How many operations of the last transaction come before its reads.
    pub(super) before: usize,
    /// The entries as they are then.
    pub(super) after: BTreeMap<String, Written>,
}

impl Plan {
    pub(super) fn of(keys: &Keys, commit: &Commit, seen: &Seen) -> Self {
        let mut writes = Writes::default();
        for it in &commit.puts {
            let before = seen.entries.get(&it.key).map(|read| &read.written);
            writes.put(keys, it, before, &seen.now);
        }
        for it in &commit.deletes {
            if let Some(read) = seen.entries.get(&it.key) {
                writes.delete(keys, it, &read.written);
            }
        }
        let (mut removes, mut ahead) = (writes.removes, Vec::new());
        let others = writes.sets.len() + OWN + commit.then.len();
        let room = OPERATIONS.saturating_sub(others);
        // Old records go ahead: they are of no use to each other.
        while removes.len() > room {
            let some = removes.split_off(removes.len() - removes.len().min(OPERATIONS));
            ahead.push(TxnRequest {
                success: some.into_iter().map(remove).collect(),
                ..TxnRequest::default()
            });
        }
        let compare = compare(keys, commit, seen, &removes);
        let mut success: Vec<RequestOp> = writes
            .sets
            .into_iter()
            .map(|(key, value)| put(key, value))
            .collect();
        success.extend(removes.into_iter().map(remove));
        success.push(raise(
            keys,
            Rules::default().marked(seen.more.kept.mark, seen.more.mark),
        ));
        let fence = commit.fence.iter();
        success.extend(fence.map(|(group, fence)| publish(keys, group, *fence)));
        // Without a look at the queue: that would cost more.
        let announced = commit.announces.iter();
        success.extend(announced.map(|it| {
            let channel = keys.own(&format!("rel/{}", it.channel));
            put(channel, Vec::new())
        }));
        let before = success.len();
        success.extend(reads(keys, &commit.then));
        Self {
            ahead,
            last: TxnRequest {
                compare,
                success,
                failure: Vec::new(),
            },
            before,
            after: writes.entries,
        }
    }
}

/// What a commit goes by. `removes`: the keys that its last transaction removes.
fn compare(keys: &Keys, commit: &Commit, seen: &Seen, removes: &[Vec<u8>]) -> Vec<Compare> {
    let revision = |key: &String| seen.entries.get(key).map_or(0, |read| read.revision);
    // An entry that is gone, or was removed ahead, is as it should be.
    let mut touched = commit.touched();
    let last: BTreeSet<&Vec<u8>> = removes.iter().collect();
    let stays = |key: &String| {
        commit.compare.iter().any(|(it, _)| it == key)
            || commit.puts.iter().any(|it| it.key == *key)
    };
    touched.retain(|key| stays(key) || last.contains(&keys.of_entry(key)));
    let mut compare: Vec<Compare> = touched
        .into_iter()
        .map(|key| is_at(keys.of_entry(key), revision(key)))
        .collect();
    compare.push(is_at(keys.own("epoch"), seen.more.revision));
    // A clock that a test sets does not count in seconds since an election.
    let until = commit.until.as_ref().filter(|_| seen.more.step_ms > 0);
    compare.extend(until.map(|until| not_after(keys, until)));
    compare
}

/// Refuses a write that arrives so late that another client has noted a later time than it may have.
fn not_after(keys: &Keys, until: &Until) -> Compare {
    let later = Mark {
        seconds: until.tick_ms().div_euclid(1_000).saturating_add(1),
        index: 0,
    };
    is_noted_below(keys, later)
}

/// Holds while the noted mark is lower than this one.
fn is_noted_below(keys: &Keys, mark: Mark) -> Compare {
    Compare {
        result: Comparison::Less.into(),
        target: Compared::Value.into(),
        key: keys.own("last"),
        with: Some(With::Value(mark.text())),
    }
}

/// Raises the mark, unless it is higher already.
fn raise(keys: &Keys, mark: Mark) -> RequestOp {
    operation(Request::Txn(TxnRequest {
        compare: vec![is_noted_below(keys, mark)],
        success: vec![put(keys.own("last"), mark.text())],
        failure: Vec::new(),
    }))
}

/// Writes a group's fence where a job's own transaction can compare it, unless it stands there.
fn publish(keys: &Keys, group: &GroupName, fence: Fence) -> RequestOp {
    let key = keys.own(&format!("fence/{group}"));
    let text = fence.0.to_string().into_bytes();
    operation(Request::Txn(TxnRequest {
        compare: vec![Compare {
            result: Comparison::Equal.into(),
            target: Compared::Value.into(),
            key: key.clone(),
            with: Some(With::Value(text.clone())),
        }],
        success: Vec::new(),
        failure: vec![put(key, text)],
    }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::etcd::test_peer::seen;
    use crate::store::kv::test_entries::{self, delete, read};
    use crate::store::kv::{Announcement, Ask};

    fn keys() -> Keys {
        Keys::new("p")
    }

    fn of_entry(key: &str) -> Vec<u8> {
        keys().of_entry(key)
    }

    fn group() -> GroupName {
        GroupName::new("g").unwrap()
    }

    /// A commit with one of everything.
    fn commit() -> Commit {
        Commit {
            compare: vec![("compared".into(), Some("1".into()))],
            puts: vec![test_entries::put("new", "2")],
            deletes: vec![delete("gone"), delete("old")],
            fence: Some((group(), Fence(7))),
            announces: Some(Announcement {
                channel: "line:g".into(),
                if_any_in: "waiters:g".into(),
            }),
            then: vec![Ask::One("behind".into())],
            ..Commit::default()
        }
    }

    #[test]
    fn a_commit_compares_and_writes_in_one_transaction() {
        let mut seen = seen(4, 100);
        seen.entries.insert("compared".into(), read("1", 5));
        seen.entries.insert("old".into(), read("1", 6));
        let plan = Plan::of(&keys(), &commit(), &seen);
        assert!(plan.ahead.is_empty());
        // What was removed by another is as it should be.
        let compared = [("compared", 5), ("new", 0), ("old", 6)];
        let mut compare: Vec<Compare> = compared
            .map(|(key, revision)| is_at(of_entry(key), revision))
            .to_vec();
        compare.push(is_at(b"p/epoch".to_vec(), seen.more.revision));
        assert_eq!(plan.last.compare, compare);
        let written = plan.after["new"].json();
        let writes = [
            put(of_entry("new"), written),
            remove(of_entry("old")),
            raise(&keys(), seen.more.mark),
            publish(&keys(), &group(), Fence(7)),
            put(b"p/rel/line:g".to_vec(), Vec::new()),
        ];
        let (before, behind) = plan.last.success.split_at(plan.before);
        assert_eq!(before, writes);
        assert_eq!(behind, reads(&keys(), &commit().then));
    }

    /// A server that is frozen may carry it out much later.
    #[test]
    fn a_commit_with_an_end_is_refused_when_a_later_time_is_noted() {
        let mut seen = seen(4, 100);
        let until = seen.now.until(Duration::from_millis(3_500));
        let commit = Commit {
            until: Some(until.clone()),
            ..commit()
        };
        let compared = |seen: &Seen| Plan::of(&keys(), &commit, seen).last.compare;
        let last = compared(&seen).pop().unwrap();
        assert_eq!(last, not_after(&keys(), &until));
        let with = format!("{:020} {:020}", 104, 0).into_bytes();
        assert_eq!(last.with, Some(With::Value(with)));
        // A clock that a test sets does not count in seconds since an election.
        seen.more.step_ms = 0;
        let last = compared(&seen).pop().unwrap();
        assert_eq!(last.key, b"p/epoch");
    }

    #[test]
    fn no_transaction_has_more_operations_than_a_server_takes() {
        let of = |count: usize| {
            let names: Vec<String> = (0..count).map(|n| format!("k{n}")).collect();
            let mut seen = seen(4, 100);
            seen.entries
                .extend(names.iter().map(|key| (key.clone(), read("1", 5))));
            let commit = Commit {
                puts: ["new", "newer"]
                    .map(|key| test_entries::put(key, "2"))
                    .to_vec(),
                deletes: names.iter().map(|key| delete(key)).collect(),
                then: ["a", "b", "c"].map(|key| Ask::One(key.into())).to_vec(),
                ..commit()
            };
            let plan = Plan::of(&keys(), &commit, &seen);
            let all = plan.ahead.iter().chain([&plan.last]);
            let removed = all.clone().flat_map(|txn| &txn.success).filter_map(|it| {
                match it.request.as_ref()? {
                    Request::Delete(it) => Some(it.key.clone()),
                    _ => None,
                }
            });
            let removed: BTreeSet<Vec<u8>> = removed.collect();
            assert_eq!(removed, names.iter().map(|key| of_entry(key)).collect());
            all.map(|txn| txn.success.len()).collect::<Vec<usize>>()
        };
        // Two entries, the mark, the fence, the announcement, and three reads.
        assert_eq!(of(0), [8]);
        assert_eq!(of(92), [100]);
        assert_eq!(of(93), [93, 8]);
        assert_eq!(of(101), [100, 9]);
        assert_eq!(of(193), [100, 93, 8]);
    }
}
