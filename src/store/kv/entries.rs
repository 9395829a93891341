//! Reading and writing entries.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::keys::{self, PAGE};
use super::{Ask, Delete, Entry, Fields, KvStore, Part, Put, Rank};
use crate::store::StoreError;
use crate::store::sql::cell::BadColumn;
use crate::token::GroupName;

/// The field with everything that only programs read, in JSON.
pub(super) const DOCUMENT: &str = "document";
/// The field with the group's name.
pub(super) const GROUP: &str = "token_group";

/// An entry of a group's.
pub(super) fn put(key: String, version: &str, group: &GroupName, document: String) -> Put {
    Put {
        key,
        version: version.to_owned(),
        fields: fields([(GROUP, group.as_str()), (DOCUMENT, &document)]),
        stamps: true,
        numbered: false,
        lists: Vec::new(),
    }
}

impl Put {
    /// Puts the entry into both lists of this kind: with the first rank into that of all groups, with the
    /// second one into that of its group.
    pub(super) fn listed(mut self, kind: &str, group: &GroupName, ranks: [Rank; 2]) -> Self {
        self.lists = keys::lists(kind, group).into_iter().zip(ranks).collect();
        self
    }
}

/// The removal of an entry of this kind.
pub(super) fn delete(key: String, kind: &str, group: &GroupName) -> Delete {
    Delete {
        key,
        lists: keys::lists(kind, group),
    }
}

pub(super) fn fields<const N: usize>(from: [(&str, &str); N]) -> Fields {
    let owned = from.map(|(name, value)| (name.to_owned(), value.to_owned()));
    BTreeMap::from(owned)
}

impl Entry {
    /// A field; an absent one is empty.
    pub(super) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    /// A name that may be missing.
    pub(super) fn maybe(&self, name: &str) -> Option<&str> {
        Some(self.field(name)).filter(|text| !text.is_empty())
    }

    /// The group's name.
    pub(super) fn group(&self) -> Result<GroupName, BadColumn> {
        GroupName::new(self.field(GROUP)).map_err(|why| BadColumn::of(GROUP, why))
    }

    /// The value of the document, if it is readable.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.field(DOCUMENT)).ok()
    }
}

/// The values have texts as keys and whole numbers: nothing in them can fail.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

impl KvStore {
    /// The values of these entries.
    pub(super) fn values<T: DeserializeOwned>(
        &self,
        entries: BTreeMap<String, Entry>,
    ) -> Result<Vec<(T, Entry)>, StoreError> {
        let mut values = Vec::with_capacity(entries.len());
        for (key, entry) in entries {
            let value = serde_json::from_str(entry.field(DOCUMENT));
            let wrong = |why| self.bad(&key, &BadColumn::of(DOCUMENT, format!("is wrong: {why}")));
            values.push((value.map_err(wrong)?, entry));
        }
        Ok(values)
    }

    /// The newest values of a list that `of` turns into something, at least so many if there are;
    /// page by page.
    pub(super) fn newest<T: DeserializeOwned, U>(
        &mut self,
        part: Part,
        limit: Option<u32>,
        of: impl Fn(T, Entry) -> Option<U>,
    ) -> Result<Vec<U>, StoreError> {
        let enough = limit.and_then(|limit| usize::try_from(limit).ok());
        let mut found = Vec::new();
        let mut asked = Part {
            newest_first: true,
            limit: PAGE,
            ..part
        };
        loop {
            let page = self.kv.get(&[Ask::Part(asked.clone())])?.entries;
            let is_last = page.len() < PAGE as usize;
            let values = self.values(page)?.into_iter();
            found.extend(values.filter_map(|(value, entry)| of(value, entry)));
            if is_last || enough.is_some_and(|enough| found.len() >= enough) {
                return Ok(found);
            }
            asked.skip = asked.skip.saturating_add(PAGE);
        }
    }
}

pub(super) fn limited<T>(mut values: Vec<T>, limit: Option<u32>) -> Vec<T> {
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    values.truncate(limit.unwrap_or(usize::MAX));
    values
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::*;
    use crate::store::kv::{Commit, Committed, Found, Kv, Server};
    use crate::token::{ClockEpoch, Served, Stamp, StoreTime, WallTime};

    /// A list of so many numbers, and what was skipped in each read of it.
    struct Numbers {
        count: u32,
        skipped: Arc<Mutex<Vec<u32>>>,
    }

    fn now() -> StoreTime {
        StoreTime {
            epoch: ClockEpoch("e".into()),
            stamp: Stamp {
                tick_ms: 0,
                wall: WallTime(0),
            },
        }
    }

    impl Kv for Numbers {
        fn name(&self) -> &'static str {
            "numbers"
        }

        fn has_ticks(&self) -> bool {
            true
        }

        fn get(&mut self, asked: &[Ask]) -> Result<Found, StoreError> {
            let [Ask::Part(part)] = asked else {
                panic!("{asked:?}");
            };
            assert_eq!((part.newest_first, part.limit), (true, PAGE));
            self.skipped.lock().unwrap().push(part.skip);
            let page = (part.skip..self.count).take(part.limit as usize);
            let entry = |number: u32| Entry {
                version: String::new(),
                stamp: now(),
                number: 0,
                fields: fields([(DOCUMENT, &json(&number))]),
            };
            Ok(Found {
                entries: page.map(|it| (it.to_string(), entry(it))).collect(),
                now: now(),
                server: Server {
                    incarnation: None,
                    durable: true,
                    unnoted: Served::NOTHING,
                    lag: Duration::ZERO,
                },
                refuses: None,
            })
        }

        fn commit(&mut self, _: &Commit) -> Result<Committed, StoreError> {
            panic!("nothing is written");
        }
    }

    #[test]
    fn a_long_list_is_read_page_by_page_until_there_is_enough() {
        for (count, limit, skips) in [
            (0, None, &[0][..]),
            (PAGE - 1, None, &[0]),
            (PAGE, None, &[0, PAGE]),
            (PAGE + 1, None, &[0, PAGE]),
            (2 * PAGE, Some(PAGE), &[0]),
            (2 * PAGE, Some(PAGE + 1), &[0, PAGE]),
        ] {
            let skipped = Arc::default();
            let mut store = KvStore::new(Numbers {
                count,
                skipped: Arc::clone(&skipped),
            });
            let part = keys::part("numbers".into(), 0, 7);
            let mut found = store
                .newest(part, limit, |number: u32, _| Some(number))
                .unwrap();
            found.sort_unstable();
            let expected: Vec<u32> =
                (0..count.min(PAGE * u32::try_from(skips.len()).unwrap())).collect();
            assert_eq!(found, expected, "{count} {limit:?}");
            assert_eq!(*skipped.lock().unwrap(), skips, "{count} {limit:?}");
        }
        // Most of them are of no interest.
        let skipped = Arc::default();
        let mut store = KvStore::new(Numbers {
            count: 3 * PAGE,
            skipped: Arc::clone(&skipped),
        });
        let rare = |number: u32, _| number.is_multiple_of(PAGE).then_some(number);
        let part = keys::part("numbers".into(), 0, 7);
        assert_eq!(store.newest(part, Some(2), rare).unwrap(), [0, PAGE]);
        assert_eq!(*skipped.lock().unwrap(), [0, PAGE]);
        assert_eq!(limited(vec![3, 2, 1], Some(2)), [3, 2]);
        assert_eq!(limited(vec![3, 2, 1], None), [3, 2, 1]);
    }
}
