//! The entries of refused runs.

use std::cmp::Reverse;

use super::entries::{fields, json, limited, put};
use super::keys::{REFUSALS, TOTALS, key, list, part, whole};
use super::{Ask, Commit, Entry, KvStore, Outcome, Part, Put, Rank};
use crate::store::{RefusalQuery, StoreError};
use crate::token::{RefusalRecord, RefusalTotal, WallTime};

const REASON: &str = "reason";
const TOTAL: &str = "total";

/// The list of the records of one client and one cause.
fn of_client(refusal: &RefusalRecord) -> String {
    let RefusalRecord { client, cause, .. } = refusal;
    key([&REFUSALS, &refusal.group, client, cause])
}

fn total_key(refusal: &RefusalRecord) -> String {
    key([&TOTAL, &refusal.group, &refusal.reason])
}

/// The key of a record.
pub(super) fn refusal_key(refusal: &RefusalRecord) -> String {
    let RefusalRecord { client, cause, .. } = refusal;
    let first = refusal.first_at.0;
    key([&"refusal", &refusal.group, client, cause, &first])
}

/// The lists that a record is in.
pub(super) fn lists_of(refusal: &RefusalRecord) -> Vec<String> {
    let group = &refusal.group;
    vec![
        list(REFUSALS, None),
        list(REFUSALS, Some(group)),
        of_client(refusal),
    ]
}

fn put_record(refusal: &RefusalRecord) -> Put {
    let key = refusal_key(refusal);
    let version = refusal.count.to_string();
    let lists = lists_of(refusal).into_iter();
    Put {
        lists: lists
            .map(|list| (list, Rank::At(refusal.last_at.0)))
            .collect(),
        ..put(key, &version, &refusal.group, json(refusal))
    }
}

/// A malformed number counts as none.
fn number_in(entry: &Entry) -> u64 {
    entry.version.parse().unwrap_or_default()
}

fn put_total(refusal: &RefusalRecord, total: u64) -> Put {
    let group = refusal.group.as_str();
    let put = put(
        total_key(refusal),
        &total.to_string(),
        &refusal.group,
        String::new(),
    );
    Put {
        fields: fields([(super::entries::GROUP, group), (REASON, &refusal.reason)]),
        lists: vec![(TOTALS.to_owned(), Rank::At(0))],
        ..put
    }
}

/// Records a refusal, unless it is too close to the one before.
pub(super) fn refuse(of: &mut KvStore, refusal: &RefusalRecord) -> Result<(), StoreError> {
    of.persistently(|of| {
        let counted = total_key(refusal);
        let newest = Part {
            newest_first: true,
            limit: 2,
            ..part(of_client(refusal), i64::MIN, i64::MAX)
        };
        let mut found = of.kv.get(&[Ask::Part(newest), Ask::One(counted.clone())])?;
        let total = found.entries.remove(&counted);
        let now = found.now.stamp.wall;
        // A malformed record counts as none.
        let known = found.entries.values().filter_map(Entry::read);
        let earlier = known.filter(|it: &RefusalRecord| it.last_at <= now);
        let before = earlier.max_by_key(|it| it.last_at);
        let Some(next) = refusal.after(before.as_ref().map(RefusalRecord::repeats), now) else {
            return Ok(Some(()));
        };
        let key = refusal_key(&next);
        let version = found.entries.get(&key).map(|entry| entry.version.clone());
        let number = total.as_ref().map_or(0, number_in).saturating_add(1);
        let commit = Commit {
            compare: vec![(key, version), (counted, total.map(|it| it.version))],
            puts: vec![put_record(&next), put_total(&next, number)],
            ..Commit::default()
        };
        let is_done = of.kv.commit(&commit)?.outcome == Outcome::Done;
        Ok(is_done.then_some(()))
    })
}

/// The numbers of refusals, by group and reason.
pub(super) fn totals(of: &mut KvStore) -> Result<Vec<RefusalTotal>, StoreError> {
    let found = of.kv.get(&[whole(TOTALS.to_owned())])?;
    let mut totals = Vec::with_capacity(found.entries.len());
    for (key, entry) in &found.entries {
        totals.push(RefusalTotal {
            group: entry.group().map_err(|bad| of.bad(key, &bad))?,
            reason: entry.field(REASON).to_owned(),
            total: number_in(entry),
        });
    }
    totals.sort();
    Ok(totals)
}

/// Refused runs, the newest first.
pub(super) fn refusals(
    of: &mut KvStore,
    query: &RefusalQuery,
) -> Result<Vec<RefusalRecord>, StoreError> {
    let from = query.since.map_or(i64::MIN, |since| since.0);
    let part = part(list(REFUSALS, query.group.as_ref()), from, i64::MAX);
    let wanted = |it: RefusalRecord, _| query.wants(&it).then_some(it);
    let mut found = of.newest(part, query.limit, wanted)?;
    let by = |it: &RefusalRecord| -> (Reverse<WallTime>, String) {
        (Reverse(it.last_at), of_client(it))
    };
    found.sort_by_cached_key(by);
    Ok(limited(found, query.limit))
}
