//! The entries of refused runs.

use std::cmp::Reverse;

use super::entries::{limited, put, under, values};
use super::{Commit, Committed, Entry, Keys, Kv, KvStore, PART, TRIES, json};
use crate::store::sql::cell::BadColumn;
use crate::store::{RefusalQuery, StoreError};
use crate::token::{GroupName, RefusalRecord, RefusalTotal, WallTime};

pub(super) const REFUSAL: &str = "refusal\u{1f}";
const TOTAL: &str = "refusals\u{1f}";

/// The entries of one client and one cause begin with this.
fn of_client(refusal: &RefusalRecord) -> String {
    let RefusalRecord { client, cause, .. } = refusal;
    let group = under(REFUSAL, Some(&refusal.group));
    format!("{group}{client}{PART}{cause}{PART}")
}

fn total_key(refusal: &RefusalRecord) -> String {
    format!("{}{}", under(TOTAL, Some(&refusal.group)), refusal.reason)
}

/// A malformed number counts as none.
fn number_in(entry: &Entry) -> u64 {
    entry.value.parse().unwrap_or_default()
}

/// Records a refusal, unless it is too close to the one before.
pub(super) fn refuse<K: Kv>(
    of: &mut KvStore<K>,
    refusal: &RefusalRecord,
) -> Result<(), StoreError> {
    let prefix = of_client(refusal);
    for _ in 0..TRIES {
        let counted = total_key(refusal);
        let keys = [Keys::Under(prefix.clone()), Keys::One(counted.clone())];
        let mut found = of.kv.get(&keys)?;
        let total = found.entries.remove(&counted);
        let now = found.now.stamp.wall;
        let known = found.entries.values();
        // A malformed record counts as none.
        let known = known.filter_map(|entry| serde_json::from_str(&entry.value).ok());
        let earlier = known.filter(|it: &RefusalRecord| it.last_at <= now);
        let before = earlier.max_by_key(|it| it.last_at);
        let Some(next) = refusal.after(before.as_ref().map(RefusalRecord::repeats), now) else {
            return Ok(());
        };
        let key = format!("{prefix}{:020}", next.first_at.0);
        let tag = found.entries.get(&key).map(|entry| entry.tag.clone());
        let number: u64 = total.as_ref().map_or(0, number_in) + 1;
        let commit = Commit {
            compare: vec![
                (key.clone(), tag),
                (counted.clone(), total.map(|it| it.tag)),
            ],
            puts: vec![
                put(key, json(&next), &next.count.to_string()),
                put(counted, number.to_string(), &number.to_string()),
            ],
            ..Commit::default()
        };
        if let Committed::Done(_) = of.kv.commit(&commit)? {
            return Ok(());
        }
    }
    Err(of.contended())
}

/// The numbers of refusals, by group and reason.
pub(super) fn totals<K: Kv>(of: &mut KvStore<K>) -> Result<Vec<RefusalTotal>, StoreError> {
    let found = of.kv.get(&[Keys::Under(TOTAL.to_owned())])?;
    let mut totals = Vec::with_capacity(found.entries.len());
    for (key, entry) in &found.entries {
        let names = key.strip_prefix(TOTAL).and_then(|key| key.split_once(PART));
        let (group, reason) = names.unwrap_or((key, ""));
        let wrong = |why| of.bad(key, &BadColumn::of("key", format!("is wrong: {why}")));
        totals.push(RefusalTotal {
            group: GroupName::new(group).map_err(wrong)?,
            reason: reason.to_owned(),
            total: number_in(entry),
        });
    }
    totals.sort();
    Ok(totals)
}

/// Refused runs, the newest first.
pub(super) fn refusals<K: Kv>(
    of: &mut KvStore<K>,
    query: &RefusalQuery,
) -> Result<Vec<RefusalRecord>, StoreError> {
    let found = values(of, Keys::Under(under(REFUSAL, query.group.as_ref())))?;
    let found = found.into_iter().map(|(it, _): (RefusalRecord, Entry)| it);
    let mut found: Vec<RefusalRecord> = found.filter(|it| query.wants(it)).collect();
    let by = |it: &RefusalRecord| -> (Reverse<WallTime>, String) {
        (Reverse(it.last_at), of_client(it))
    };
    found.sort_by_cached_key(by);
    Ok(limited(found, query.limit))
}
