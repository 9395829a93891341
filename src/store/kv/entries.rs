//! Keys and values of the entries of records.

use serde::de::DeserializeOwned;

use super::{Entry, Keys, Kv, KvStore, PART, Put};
use crate::store::StoreError;
use crate::store::sql::cell::BadColumn;
use crate::token::GroupName;

pub(super) fn under(kind: &str, group: Option<&GroupName>) -> String {
    group.map_or_else(|| kind.to_owned(), |group| format!("{kind}{group}{PART}"))
}

pub(super) fn put(key: String, value: String, tag: &str) -> Put {
    Put {
        key,
        value,
        tag: tag.to_owned(),
        stamps: true,
    }
}

/// The values under a prefix, with their entries. The store's time is in the entries alone.
pub(super) fn values<K: Kv, T: DeserializeOwned>(
    of: &mut KvStore<K>,
    keys: Keys,
) -> Result<Vec<(T, Entry)>, StoreError> {
    let found = of.kv.get(&[keys])?;
    let mut values = Vec::with_capacity(found.entries.len());
    for (key, entry) in found.entries {
        let value = serde_json::from_str(&entry.value);
        let wrong = |why| of.bad(&key, &BadColumn::of("value", format!("is wrong: {why}")));
        values.push((value.map_err(wrong)?, entry));
    }
    Ok(values)
}

pub(super) fn limited<T>(mut values: Vec<T>, limit: Option<u32>) -> Vec<T> {
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    values.truncate(limit.unwrap_or(usize::MAX));
    values
}
