//! The nodes of a store: an entry is one node, and one more for its place in each list. Pure.
//!
//! A listing of children has no order, range or limit. So the places of a list are in buckets of some 2.3 hours, and a
//! part of a list is read bucket by bucket.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::store::kv::Part;

/// What stands in a name as it is. The rest is written as `%2F`: a name takes no slash and no control character.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b':')
    .remove(b'-')
    .remove(b'_')
    .remove(b'.');

/// Ranks with the same higher bits are in one bucket: 2²³ ms.
const BUCKET_BITS: u32 = 23;

/// The nodes under one path.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    root: String,
}

/// A number whose text is ordered as it is.
fn ordered(number: i64) -> String {
    format!("{:016x}", number.cast_unsigned() ^ (1 << 63))
}

fn number_of(text: &str) -> Option<i64> {
    let bits = u64::from_str_radix(text, 16).ok()?;
    Some((bits ^ (1 << 63)).cast_signed())
}

fn name(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

impl Tree {
    /// The nodes under `root`, which begins with a slash and ends with none.
    pub(super) fn new(root: &str) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// The node whose data are the store's id.
    pub(super) fn root(&self) -> &str {
        &self.root
    }

    /// The nodes above the root, from the top.
    pub(super) fn above(&self) -> impl Iterator<Item = &str> {
        let ends = self.root.match_indices('/').map(|(at, _)| at);
        ends.filter(|at| *at > 0).map(|at| &self.root[..at])
    }

    /// The node that each look writes: its time is the store's.
    pub(super) fn now(&self) -> String {
        format!("{}/now", self.root)
    }

    /// The nodes that hold the others.
    pub(super) fn holders(&self) -> [String; 3] {
        ["e", "l", "rel"].map(|it| format!("{}/{it}", self.root))
    }

    pub(super) fn entry(&self, key: &str) -> String {
        format!("{}/e/{}", self.root, name(key))
    }

    pub(super) fn channel(&self, channel: &str) -> String {
        format!("{}/rel/{}", self.root, name(channel))
    }

    pub(super) fn list(&self, list: &str) -> String {
        format!("{}/l/{}", self.root, name(list))
    }

    /// The bucket of a rank in a list.
    pub(super) fn bucket(&self, list: &str, rank: i64) -> String {
        format!("{}/{}", self.list(list), ordered(rank >> BUCKET_BITS))
    }

    /// The place of an entry in a list.
    pub(super) fn place(&self, list: &str, rank: i64, key: &str) -> String {
        format!(
            "{}/{}-{}",
            self.bucket(list, rank),
            ordered(rank),
            name(key)
        )
    }
}

/// The buckets that a part of a list may be in, in the order in which they are read.
pub(super) fn buckets<'a>(part: &Part, names: &[&'a str]) -> Vec<&'a str> {
    let (from, to) = part.ranks;
    let range = from >> BUCKET_BITS..=to >> BUCKET_BITS;
    let is_in = |name: &&&str| number_of(name).is_some_and(|it| range.contains(&it));
    let mut found: Vec<&str> = names.iter().filter(is_in).copied().collect();
    found.sort_unstable();
    if part.newest_first {
        found.reverse();
    }
    found
}

/// The keys in a part of a list, from the names of all its places that were read.
pub(super) fn keys(part: &Part, names: &[String]) -> Vec<String> {
    let (from, to) = part.ranks;
    let placed = |name: &String| -> Option<(i64, String)> {
        let (rank, key) = name.split_once('-')?;
        let key = percent_decode_str(key).decode_utf8().ok()?;
        Some((number_of(rank)?, key.into_owned()))
    };
    let mut placed: Vec<(i64, String)> = names.iter().filter_map(placed).collect();
    placed.retain(|(rank, _)| (from..=to).contains(rank));
    placed.sort_unstable();
    if part.newest_first {
        placed.reverse();
    }
    let keys = placed.into_iter().map(|(_, key)| key);
    let some = keys.skip(part.skip as usize);
    some.take(part.limit as usize).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn part(ranks: (i64, i64), newest_first: bool) -> Part {
        Part {
            list: "l".into(),
            ranks,
            newest_first,
            skip: 0,
            limit: 1_000,
        }
    }

    fn last(path: &str) -> &str {
        path.rsplit_once('/').unwrap().1
    }

    proptest! {
        /// Whatever the ranks and keys are, a part is what it would be of a sorted list.
        #[test]
        fn a_part_of_a_list_is_found(
            placed in prop::collection::btree_map("[a-z/%:é.-]{1,8}", any::<i64>(), 0..20),
            from: i64,
            to: i64,
            newest_first: bool,
        ) {
            let tree = Tree::new("/a/b");
            let part = part((from, to), newest_first);
            let bucket = |rank: &i64| tree.bucket("l", *rank);
            let all: Vec<String> = placed.values().map(bucket).collect();
            let all: Vec<&str> = all.iter().map(|it| last(it)).collect();
            let read = buckets(&part, &all);
            let is_read = |path: &String| read.contains(&last(path.rsplit_once('/').unwrap().0));
            let places = placed.iter().map(|(key, rank)| tree.place("l", *rank, key));
            let names: Vec<String> = places.filter(is_read).map(|it| last(&it).to_owned()).collect();
            let mut expected: Vec<(i64, &String)> = placed.iter().map(|(key, rank)| (*rank, key)).collect();
            expected.retain(|(rank, _)| (from..=to).contains(rank));
            expected.sort_unstable();
            if newest_first {
                expected.reverse();
            }
            let expected: Vec<&String> = expected.into_iter().map(|(_, key)| key).collect();
            let found = keys(&part, &names);
            prop_assert_eq!(found.iter().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_part_of_a_list_is_read_in_the_order_of_its_ranks() {
        let tree = Tree::new("/a");
        let bucket = |rank: i64| last(&tree.bucket("l", rank)).to_owned();
        let [first, second, third] = [-1, 0, 1 << BUCKET_BITS].map(bucket);
        let unordered = [&second, &third, &first].map(String::as_str);
        let all = (i64::MIN, i64::MAX);
        assert_eq!(
            buckets(&part(all, false), &unordered),
            [&first, &second, &third]
        );
        assert_eq!(
            buckets(&part(all, true), &unordered),
            [&third, &second, &first]
        );
        assert_eq!(buckets(&part((0, 7), true), &unordered), [&second]);
        let place = |(rank, key)| last(&tree.place("l", rank, key)).to_owned();
        let names = [(3, "c"), (4, "b"), (1, "d"), (2, "a")].map(place);
        assert_eq!(keys(&part((2, 3), false), &names), ["a", "c"]);
        let page = Part {
            skip: 1,
            limit: 2,
            ..part(all, true)
        };
        assert_eq!(keys(&page, &names), ["c", "a"]);
    }

    #[test]
    fn every_node_is_under_the_root() {
        let tree = Tree::new("/a/b");
        assert_eq!(tree.now(), "/a/b/now");
        assert_eq!(tree.holders(), ["/a/b/e", "/a/b/l", "/a/b/rel"]);
        assert_eq!(tree.channel("line:g/h"), "/a/b/rel/line:g%2Fh");
        let place = "/a/b/l/runs:%C3%A9/8000000000000000/8000000000000007-k";
        assert_eq!(tree.place("runs:é", 7, "k"), place);
    }

    #[test]
    fn the_nodes_above_the_root_come_from_the_top() {
        let tree = Tree::new("/a/b/c");
        assert_eq!(tree.above().collect::<Vec<_>>(), ["/a", "/a/b"]);
        assert_eq!(tree.entry("token:a/b"), "/a/b/c/e/token:a%2Fb");
        assert_eq!(keys(&part((0, 0), true), &["x".to_owned()]), [""; 0]);
    }
}
