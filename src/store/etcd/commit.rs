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
        writes.removes.retain(|key| !writes.sets.contains_key(key));
        let (mut removes, mut ahead) = (writes.removes, Vec::new());
        let room = OPERATIONS.saturating_sub(writes.sets.len() + 5 + commit.then.len());
        // Old records go ahead: they are of no use to each other.
        while removes.len() > room {
            let some = removes.split_off(removes.len() - removes.len().min(OPERATIONS));
            ahead.push(TxnRequest {
                success: some.into_iter().map(remove).collect(),
                ..TxnRequest::default()
            });
        }
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

/// Refuses a write that arrives so late that another client has noted a later time than it may have.
fn not_after(keys: &Keys, until: &Until) -> Compare {
    let later = Mark {
        seconds: until.tick_ms().div_euclid(1_000).saturating_add(1),
        index: 0,
    };
    Compare {
        result: Comparison::Less.into(),
        target: Compared::Value.into(),
        key: keys.own("last"),
        with: Some(With::Value(later.text())),
    }
}

/// Raises the mark, unless it is higher already.
fn raise(keys: &Keys, mark: Mark) -> RequestOp {
    let key = keys.own("last");
    operation(Request::Txn(TxnRequest {
        compare: vec![Compare {
            result: Comparison::Less.into(),
            target: Compared::Value.into(),
            key: key.clone(),
            with: Some(With::Value(mark.text())),
        }],
        success: vec![put(key, mark.text())],
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
