//! What a look asks for, and what it has found. Pure.

use std::collections::BTreeMap;

use super::clock::{Epoch, Kept, Mark};
use super::entry::Keys;
use super::messages::{Member, RangeRequest, RangeResponse, Request, RequestOp, operation, range};
use crate::store::kv::flights::{self, Gathered, Read};
use crate::store::kv::written::Written;
use crate::store::kv::{Ask, Part};
use crate::token::Incarnation;

/// How many entries the first flight of a look reads. Others follow at its revision.
const AT_ONCE: usize = 60;

/// What a look has found.
pub(super) type Seen = flights::Seen<Clocked>;

/// The clock of a look.
#[derive(Clone)]
pub(in crate::store) struct Clocked {
    pub(super) epoch: Epoch,
    pub(super) kept: Kept,
    /// The revision of the kept epoch, which a commit compares.
    pub(super) revision: i64,
    pub(super) mark: Mark,
    pub(super) step_ms: i64,
    pub(super) incarnation: Incarnation,
}

/// The incarnation of a cluster with these servers.
pub(super) fn incarnation(cluster: u64, members: &[Member], generation: u64) -> Incarnation {
    let mut ids: Vec<u64> = members.iter().map(|member| member.id).collect();
    ids.sort_unstable();
    let ids = ids.iter().fold(0_u64, |all, id| all.rotate_left(7) ^ id);
    Incarnation(format!("{cluster:016x}-{ids:016x}-{generation:016x}"))
}

/// What the first flight of a look asks for, and the keys of the entries that follow.
fn in_flights(asked: &[Ask]) -> (Vec<&Ask>, Vec<&String>) {
    let (mut first, mut ones, mut later) = (Vec::new(), 0, Vec::new());
    for ask in asked {
        match ask {
            Ask::One(key) if ones == AT_ONCE => later.push(key),
            Ask::One(_) => {
                ones += 1;
                first.push(ask);
            }
            Ask::Part(_) => first.push(ask),
        }
    }
    (first, later)
}

/// One entry of a part of a list for each place that was found.
fn keys_in(keys: &Keys, part: &Part, range: &RangeResponse) -> Vec<String> {
    let placed = range
        .kvs
        .iter()
        .filter_map(|kv| keys.placed(&part.list, &kv.key));
    let mut placed: Vec<String> = placed.map(str::to_owned).collect();
    if !part.newest_first {
        placed.reverse();
    }
    let skipped = placed.into_iter().skip(part.skip as usize);
    skipped.take(part.limit as usize).collect()
}

/// The places and keys that are asked for, in the order of the questions.
pub(super) fn reads(keys: &Keys, asked: &[Ask]) -> Vec<RequestOp> {
    let read = |ask: &Ask| match ask {
        Ask::One(key) => range(keys.of_entry(key)),
        Ask::Part(part) => {
            let (key, range_end) = keys.range(part);
            // The newest come first; without them all are read.
            let limit = i64::from(part.skip).saturating_add(part.limit.into());
            RangeRequest {
                key,
                range_end,
                limit: if part.newest_first { limit } else { 0 },
                keys_only: true,
                ..RangeRequest::default()
            }
        }
    };
    in_flights(asked)
        .0
        .into_iter()
        .map(read)
        .map(Request::Range)
        .map(operation)
        .collect()
}

/// Questions for entries as they were at a revision; 0: as they are.
pub(super) fn read_keys<'a>(
    keys: &Keys,
    those: impl IntoIterator<Item = &'a String>,
    revision: i64,
) -> impl Iterator<Item = RequestOp> {
    let read = move |key: &String| RangeRequest {
        revision,
        ..range(keys.of_entry(key))
    };
    let reads = those.into_iter().map(read);
    reads.map(Request::Range).map(operation)
}

/// Adds the entries that were found.
pub(super) fn read(keys: &Keys, range: RangeResponse, entries: &mut BTreeMap<String, Read>) {
    for kv in range.kvs {
        let Some(key) = keys.entry_of(&kv.key) else {
            continue;
        };
        let written = Written::read(&kv.value);
        let read = Read {
            written,
            number: kv.create_revision,
            revision: kv.mod_revision,
        };
        entries.insert(key.to_owned(), read);
    }
}

/// The entries in the answers to [`reads`] and to guesses behind them, and the keys of those that are left to be read.
pub(super) fn gather(
    keys: &Keys,
    asked: &[Ask],
    found: Vec<RangeResponse>,
) -> (Gathered, Vec<String>) {
    let mut gathered = Gathered::default();
    let mut found = found.into_iter();
    let (first, later) = in_flights(asked);
    for (ask, range) in first.into_iter().zip(&mut found) {
        match ask {
            Ask::One(_) => read(keys, range, &mut gathered.entries),
            Ask::Part(part) => gathered.listed.extend(keys_in(keys, part, &range)),
        }
    }
    let mut guessed = BTreeMap::new();
    found.for_each(|range| read(keys, range, &mut guessed));
    let mut unread = gathered.add_guessed(guessed);
    unread.extend(later.into_iter().cloned());
    (gathered, unread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::etcd::messages::KeyValue;

    fn part(newest_first: bool, skip: u32, limit: u32) -> Part {
        Part {
            list: "l".into(),
            ranks: (i64::MIN, i64::MAX),
            newest_first,
            skip,
            limit,
        }
    }

    fn found<const N: usize>(keys: [&str; N]) -> RangeResponse {
        let kv = |key: &str| KeyValue {
            key: key.as_bytes().to_vec(),
            ..KeyValue::default()
        };
        RangeResponse {
            kvs: keys.map(kv).to_vec(),
            ..RangeResponse::default()
        }
    }

    /// Places come with the highest rank first.
    #[test]
    fn a_part_of_a_list_is_read_in_the_order_that_is_asked_for() {
        let keys = Keys::new("p");
        let places = found(["p/l/l/00/c", "p/l/l/01/b", "p/l/l/02/a"]);
        let keys_in =
            |newest_first, skip, limit| keys_in(&keys, &part(newest_first, skip, limit), &places);
        assert_eq!(keys_in(true, 0, 9), ["c", "b", "a"]);
        assert_eq!(keys_in(true, 1, 1), ["b"]);
        assert_eq!(keys_in(false, 0, 2), ["a", "b"]);
        let limit = |part| match reads(&keys, &[Ask::Part(part)]).remove(0).request {
            Some(Request::Range(range)) => range.limit,
            other => panic!("{other:?}"),
        };
        assert_eq!(limit(part(true, 2, 5)), 7);
        // The lowest ranks are at the end.
        assert_eq!(limit(part(false, 2, 5)), 0);
    }

    #[test]
    fn the_first_flight_of_a_look_reads_so_many_entries() {
        let keys = Keys::new("p");
        let asked: Vec<Ask> = (0..AT_ONCE + 2)
            .map(|n| Ask::One(format!("k{n}")))
            .collect();
        assert_eq!(reads(&keys, &asked).len(), AT_ONCE);
        let (_, unread) = gather(&keys, &asked, Vec::new());
        assert_eq!(unread, ["k60", "k61"]);
    }

    #[test]
    fn what_was_guessed_is_read_no_second_time() {
        let keys = Keys::new("p");
        let asked = [Ask::Part(part(true, 0, 9)), Ask::One("x".into())];
        let answers = ["p/e/x", "p/e/a", "p/e/gone"].map(|key| found([key]));
        let places = [found(["p/l/l/00/a", "p/l/l/01/b"])];
        let all: Vec<RangeResponse> = places.into_iter().chain(answers).collect();
        let (gathered, unread) = gather(&keys, &asked, all);
        assert_eq!(gathered.entries.keys().collect::<Vec<_>>(), ["a", "x"]);
        assert_eq!(unread, ["b"]);
    }

    /// The servers are listed in any order.
    #[test]
    fn an_incarnation_is_a_cluster_with_its_servers() {
        let of = |cluster, ids: [u64; 3], generation| {
            let members = ids.map(|id| Member {
                id,
                ..Member::default()
            });
            incarnation(cluster, &members, generation)
        };
        let first = of(1, [5, 6, 7], 8);
        assert_eq!(first, of(1, [7, 5, 6], 8));
        for other in [
            of(2, [5, 6, 7], 8),
            of(1, [5, 6, 9], 8),
            of(1, [5, 6, 7], 9),
        ] {
            assert_ne!(first, other);
        }
    }
}
