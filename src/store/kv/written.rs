//! An entry as it stands in one text, for back ends that keep no fields apart. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Fields, Put, Rank};
use crate::token::{ClockEpoch, Stamp, StoreTime, WallTime};

/// An entry's text, as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct Written {
    pub(in crate::store) version: String,
    /// The time of its last stamp; none, if the back end itself keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) stamp: Option<WrittenStamp>,
    /// The entry's number, if it has one and the back end itself keeps none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub(in crate::store) number: i64,
    /// Its places in lists.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(in crate::store) lists: BTreeMap<String, i64>,
    pub(in crate::store) fields: Fields,
}

/// A time by the store's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct WrittenStamp {
    tick_ms: i64,
    wall_ms: i64,
    epoch: String,
}

impl From<&StoreTime> for WrittenStamp {
    fn from(time: &StoreTime) -> Self {
        Self {
            tick_ms: time.stamp.tick_ms,
            wall_ms: time.stamp.wall.0,
            epoch: time.epoch.0.clone(),
        }
    }
}

impl From<WrittenStamp> for StoreTime {
    fn from(stamp: WrittenStamp) -> Self {
        Self {
            epoch: ClockEpoch(stamp.epoch),
            stamp: Stamp {
                tick_ms: stamp.tick_ms,
                wall: WallTime(stamp.wall_ms),
            },
        }
    }
}

/// A place in a list that an entry gets, and the rank that it had there before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Place {
    pub(in crate::store) list: String,
    pub(in crate::store) rank: i64,
    pub(in crate::store) before: Option<i64>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // As serde calls it.
const fn is_none(number: &i64) -> bool {
    *number == 0
}

impl Written {
    /// A text that is read. One that no client has written has its fault as its version, which no commit expects.
    pub(in crate::store) fn read(text: &[u8]) -> Self {
        serde_json::from_slice(text).unwrap_or_else(|why| Self {
            version: format!("no entry: {why}"),
            ..Self::default()
        })
    }

    pub(in crate::store) fn json(&self) -> Vec<u8> {
        // Texts and numbers: nothing in them can fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The entry after a write over the one before, at this time, and its places.
    pub(in crate::store) fn over(
        before: Option<&Self>,
        put: &Put,
        now: &StoreTime,
    ) -> (Self, Vec<Place>) {
        let mut entry = before.cloned().unwrap_or_default();
        if put.stamps || before.is_none() {
            entry.stamp = Some(now.into());
        }
        entry.version.clone_from(&put.version);
        entry.fields.extend(put.fields.clone());
        let place = |(list, rank): &(String, Rank)| {
            let rank = match rank {
                Rank::At(rank) => *rank,
                Rank::Now => now.stamp.wall.0,
                // The server numbers entries as it makes them: readers sort by that.
                Rank::Number => 0,
            };
            Place {
                before: entry.lists.insert(list.clone(), rank),
                list: list.clone(),
                rank,
            }
        };
        let places = put.lists.iter().map(place).collect();
        (entry, places)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mutated::mutated_text;

    const ENTRY: &str = r#"{"version":"7","stamp":{"tick_ms":-9223372036854775808,"wall_ms":9223372036854775807,"epoch":"e"},"number":9223372036854775807,"lists":{"runs":-9223372036854775808},"fields":{"document":"{}","group":"g"}}"#;

    #[test]
    fn what_no_client_has_written_is_an_entry_of_no_known_version() {
        for value in ["", "{", "[]", r#"{"version": 1}"#, r#"{"fields": null}"#] {
            let read = Written::read(value.as_bytes());
            assert!(read.version.starts_with("no entry: "), "{value}");
            assert!(read.version.parse::<i64>().is_err());
        }
        assert_eq!(Written::read(ENTRY.as_bytes()).json(), ENTRY.as_bytes());
    }

    #[test]
    fn a_write_keeps_what_it_does_not_name() {
        let time = |wall| StoreTime {
            epoch: ClockEpoch("e".into()),
            stamp: Stamp {
                tick_ms: 1,
                wall: WallTime(wall),
            },
        };
        let put = |version: &str, field: &str, stamps, ranks: [(&str, Rank); 2]| Put {
            key: "k".into(),
            version: version.into(),
            fields: Fields::from([(field.to_owned(), version.to_owned())]),
            stamps,
            numbered: false,
            lists: ranks.map(|(list, rank)| (list.to_owned(), rank)).into(),
        };
        let place = |list: &str, rank, before| Place {
            list: list.into(),
            rank,
            before,
        };
        let ranks = [("a", Rank::At(7)), ("b", Rank::Now)];
        let (first, places) = Written::over(None, &put("1", "x", false, ranks), &time(5));
        assert_eq!(first.stamp, Some((&time(5)).into()));
        assert_eq!(places, [place("a", 7, None), place("b", 5, None)]);
        let ranks = [("b", Rank::Now), ("c", Rank::Number)];
        let (second, places) = Written::over(Some(&first), &put("2", "y", false, ranks), &time(6));
        assert_eq!(places, [place("b", 6, Some(5)), place("c", 0, None)]);
        let expected = Written {
            version: "2".into(),
            stamp: first.stamp,
            number: 0,
            lists: [("a", 7), ("b", 6), ("c", 0)]
                .map(|(list, rank)| (list.to_owned(), rank))
                .into(),
            fields: [("x", "1"), ("y", "2")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
        };
        assert_eq!(second, expected);
        let (third, _) = Written::over(Some(&second), &put("3", "y", true, ranks), &time(7));
        assert_eq!(third.stamp, Some((&time(7)).into()));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Written::read(&bytes);
        }

        #[test]
        fn an_entry_that_is_read_is_the_one_that_is_written(text in mutated_text(&[ENTRY])) {
            let read = Written::read(text.as_bytes());
            prop_assert_eq!(Written::read(&read.json()), read);
        }
    }
}
