//! The entries of refused runs.

use std::cmp::Reverse;

use super::records::{limited, put, under, values};
use super::{Commit, Committed, Entry, Keys, Kv, KvStore, PART, TRIES, json};
use crate::store::{RefusalQuery, StoreError};
use crate::token::{RefusalRecord, WallTime};

pub(super) const REFUSAL: &str = "refusal\u{1f}";

/// The entries of one client and one reason begin with this.
fn of_client(refusal: &RefusalRecord) -> String {
    let RefusalRecord { client, reason, .. } = refusal;
    let group = under(REFUSAL, Some(&refusal.group));
    format!("{group}{client}{PART}{reason}{PART}")
}

/// Records a refusal, unless it is too close to the one before.
pub(super) fn refuse<K: Kv>(
    of: &mut KvStore<K>,
    refusal: &RefusalRecord,
) -> Result<(), StoreError> {
    let prefix = of_client(refusal);
    for _ in 0..TRIES {
        let found = of.kv.get(&[Keys::Under(prefix.clone())])?;
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
        let commit = Commit {
            compare: vec![(key.clone(), tag)],
            puts: vec![put(key, json(&next), &next.count.to_string())],
            ..Commit::default()
        };
        if let Committed::Done(_) = of.kv.commit(&commit)? {
            return Ok(());
        }
    }
    Err(of.contended())
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
