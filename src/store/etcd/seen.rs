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
