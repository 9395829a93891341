//! Keys and values as they are written: an entry is one key with JSON, and a key for its place in each list. Pure.

use std::collections::BTreeMap;

use crate::store::kv::written::{Place, Written};
use crate::store::kv::{Delete, Entry, Part, Put};
use crate::token::{ClockEpoch, StoreTime};

/// How much later a write can be than its stamp says: a reading is in whole seconds, and may be as old as
/// [`crate::store::kv::flights::FRESH`] by
/// this process's clock, which is up to a tenth slower.
pub(super) const STEP_MS: i64 = 1_300;

/// The keys of a store.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    prefix: String,
}

/// Ranks are written so that a higher one comes first: a server reads a whole range before it sorts.
fn inverted(rank: i64) -> String {
    format!("{:016x}", !(rank.cast_unsigned() ^ (1 << 63)))
}

impl Keys {
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
        }
    }

    pub(super) fn of_entry(&self, key: &str) -> Vec<u8> {
        format!("{}/e/{key}", self.prefix).into_bytes()
    }

    /// The entry whose key this is.
    pub(super) fn entry_of<'a>(&self, key: &'a [u8]) -> Option<&'a str> {
        let key = std::str::from_utf8(key).ok()?;
        key.strip_prefix(&self.prefix)?.strip_prefix("/e/")
    }

    fn of_place(&self, list: &str, rank: i64, key: &str) -> Vec<u8> {
        format!("{}/l/{list}/{}/{key}", self.prefix, inverted(rank)).into_bytes()
    }

    /// The entry in a list whose place this is.
    pub(super) fn placed<'a>(&self, list: &str, place: &'a [u8]) -> Option<&'a str> {
        let place = std::str::from_utf8(place)
            .ok()?
            .strip_prefix(&self.prefix)?;
        let place = place
            .strip_prefix("/l/")?
            .strip_prefix(list)?
            .strip_prefix('/')?;
        place.split_once('/').map(|(_, key)| key)
    }

    /// The places of a part of a list: the first, and the first behind them.
    pub(super) fn range(&self, part: &Part) -> (Vec<u8>, Vec<u8>) {
        let (from, to) = part.ranks;
        let begin = format!("{}/l/{}/{}/", self.prefix, part.list, inverted(to));
        // `0` comes after `/`.
        let end = format!("{}/l/{}/{}0", self.prefix, part.list, inverted(from));
        (begin.into_bytes(), end.into_bytes())
    }

    /// A key of the store's own: of its clock, or of a channel.
    pub(super) fn own(&self, name: &str) -> Vec<u8> {
        format!("{}/{name}", self.prefix).into_bytes()
    }

    /// The id of the lease that is the clock: from the prefix, by FNV-1a.
    pub(super) fn clock(&self) -> i64 {
        let hash = self
            .prefix
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        (hash >> 1).max(1).cast_signed()
    }
}

/// What an entry's write needs of its place in time.
#[derive(Debug, Clone)]
pub(super) struct Now<'a> {
    pub(super) time: &'a StoreTime,
    /// How much later it may be than it says.
    pub(super) step_ms: i64,
}

/// The keys that a write sets and removes.
#[derive(Debug, Default)]
pub(super) struct Writes {
    pub(super) sets: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The entries as they are then.
    pub(super) entries: BTreeMap<String, Written>,
    pub(super) removes: Vec<Vec<u8>>,
}

/// The entry, with the stamp as it may be at the latest: no age exceeds the truth.
pub(super) fn entry(written: Written, number: i64, now: &Now<'_>) -> Entry {
    let at = now.time.stamp.tick_ms;
    let mut stamp: StoreTime = match written.stamp {
        Some(stamp) => stamp.into(),
        // No client has written it: its age is unknown.
        None => StoreTime {
            epoch: ClockEpoch(String::new()),
            stamp: now.time.stamp,
        },
    };
    let tick = &mut stamp.stamp.tick_ms;
    // A stamp a little ahead was written between two answers of one look. One further ahead stays so.
    if stamp.epoch == now.time.epoch && *tick <= at.saturating_add(2 * now.step_ms) {
        *tick = tick.saturating_add(now.step_ms).min(at);
    }
    Entry {
        version: written.version,
        stamp,
        number,
        fields: written.fields,
    }
}

impl Writes {
    /// Writes an entry over the one that was read.
    pub(super) fn put(
        &mut self,
        keys: &Keys,
        put: &Put,
        before: Option<&Written>,
        now: &StoreTime,
    ) {
        let (entry, places) = Written::over(before, put, now);
        for Place { list, rank, before } in places {
            if let Some(old) = before.filter(|old| *old != rank) {
                self.removes.push(keys.of_place(&list, old, &put.key));
            }
            // Each time: a list that was removed by hand is whole again.
            self.sets
                .insert(keys.of_place(&list, rank, &put.key), Vec::new());
        }
        self.sets.insert(keys.of_entry(&put.key), entry.json());
        self.entries.insert(put.key.clone(), entry);
    }

    /// Removes an entry that was read.
    pub(super) fn delete(&mut self, keys: &Keys, delete: &Delete, before: &Written) {
        self.removes.push(keys.of_entry(&delete.key));
        for (list, rank) in &before.lists {
            self.removes.push(keys.of_place(list, *rank, &delete.key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::kv::flights::FRESH;
    use crate::store::kv::{Fields, Rank};
    use crate::token::{Stamp, WallTime};

    #[test]
    fn a_higher_rank_comes_first() {
        let ranks = [i64::MAX, 7, 1, 0, -1, i64::MIN];
        let keys = Keys::new("p");
        let places: Vec<_> = ranks
            .iter()
            .map(|rank| keys.of_place("runs:g", *rank, "k"))
            .collect();
        assert!(places.is_sorted_by(|one, next| one < next), "{places:?}");
        for (rank, place) in ranks.iter().zip(&places) {
            let part = Part {
                list: "runs:g".into(),
                ranks: (*rank, *rank),
                newest_first: true,
                skip: 0,
                limit: 1,
            };
            let (begin, end) = keys.range(&part);
            assert!(begin <= *place && *place < end);
            assert_eq!(keys.placed("runs:g", place), Some("k"));
        }
    }

    #[test]
    fn every_key_is_under_the_prefix() {
        let keys = Keys::new("a");
        assert_eq!(keys.of_entry("token:g"), b"a/e/token:g");
        assert_eq!(keys.entry_of(b"a/e/token:g"), Some("token:g"));
        for other in [&b"b/e/token:g"[..], b"a/l/token:g", b"a/e/\xff"] {
            assert_eq!(keys.entry_of(other), None);
        }
        let place = keys.of_place("runs:g", 0, "k");
        assert_eq!(place, b"a/l/runs:g/7fffffffffffffff/k");
        assert_eq!(keys.own("clock"), b"a/clock");
        // The hash of "a" that the authors of FNV publish.
        let hash = 0xaf63_dc4c_8601_ec8c_u64;
        assert_eq!(keys.clock(), (hash >> 1).cast_signed());
    }

    fn time(tick_ms: i64) -> StoreTime {
        StoreTime {
            epoch: ClockEpoch("e".into()),
            stamp: Stamp {
                tick_ms,
                wall: WallTime(5),
            },
        }
    }

    #[test]
    fn a_write_moves_its_places_and_a_removal_leaves_none() {
        let keys = Keys::new("p");
        let put = |ranks: [i64; 2]| Put {
            key: "k".into(),
            version: "1".into(),
            fields: Fields::new(),
            stamps: true,
            numbered: false,
            lists: ["all", "own"]
                .map(str::to_owned)
                .into_iter()
                .zip(ranks.map(Rank::At))
                .collect(),
        };
        let places = |ranks: [i64; 2]| {
            [("all", ranks[0]), ("own", ranks[1])]
                .map(|(list, rank)| keys.of_place(list, rank, "k"))
        };
        let mut first = Writes::default();
        first.put(&keys, &put([1, 2]), None, &time(3));
        let before = &first.entries["k"];
        assert_eq!(first.removes, [b""; 0]);
        let mut second = Writes::default();
        second.put(&keys, &put([1, 7]), Some(before), &time(4));
        assert_eq!(second.removes, [keys.of_place("own", 2, "k")]);
        let after = &second.entries["k"];
        let mut sets = BTreeMap::from(places([1, 7]).map(|place| (place, Vec::new())));
        sets.insert(keys.of_entry("k"), after.json());
        assert_eq!(second.sets, sets);
        let mut third = Writes::default();
        let delete = Delete {
            key: "k".into(),
            lists: Vec::new(),
        };
        third.delete(&keys, &delete, after);
        let [all, own] = places([1, 7]);
        assert_eq!(third.removes, [keys.of_entry("k"), all, own]);
    }

    #[test]
    fn a_stamp_is_never_too_old() {
        let shown_at = |stored: i64, now: StoreTime| {
            let mut writes = Writes::default();
            let put = Put {
                key: "k".into(),
                version: "1".into(),
                fields: Fields::new(),
                stamps: true,
                numbered: false,
                lists: Vec::new(),
            };
            writes.put(&Keys::new("p"), &put, None, &time(stored));
            let written = Written::read(&writes.sets[b"p/e/k".as_slice()]);
            let now = Now {
                time: &now,
                step_ms: STEP_MS,
            };
            entry(written, 0, &now).stamp.stamp.tick_ms
        };
        let shown = |stored: i64, now: i64| shown_at(stored, time(now));
        // A reading is rounded up; the write comes up to FRESH later, by a clock that may be a tenth slow.
        let reading = |truth: i64| (truth + 999) / 1_000 * 1_000;
        let latest = i64::try_from(FRESH.as_millis()).unwrap() * 11 / 10;
        for read in 0..2_000 {
            for since in [0, 1, latest - 1, latest] {
                for passed in [0, 1, 500, 999, 1_000, 2_300, 7_777] {
                    let now = reading(read + since + passed);
                    let age = now - shown(reading(read), now);
                    assert!(age <= passed, "{read} {since} {passed}: {age}");
                }
            }
        }
        assert_eq!(shown(3_000, 9_000), 4_300);
        assert_eq!(shown(9_000, 9_000), 9_000);
        assert_eq!(shown(10_000, 9_000), 9_000);
        assert_eq!(shown(11_600, 9_000), 9_000);
        assert_eq!(shown(11_601, 9_000), 11_601);
        let another = StoreTime {
            epoch: ClockEpoch("f".into()),
            ..time(9_000)
        };
        assert_eq!(shown_at(3_000, another), 3_000);
    }
}
