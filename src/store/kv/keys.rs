//! The keys of entries, and the names of lists.

use std::fmt::Display;

use crate::store::kv::{Ask, Part};
use crate::token::{ActRecord, Fence, GroupName, SessionId};

/// The list of all tokens.
pub(super) const TOKENS: &str = "tokens";
/// The note of the store's incarnation.
pub(super) const INCARNATION: &str = "incarnation";
pub(super) const WAITERS: &str = "waiters";
pub(super) const RUNS: &str = "runs";
pub(super) const ACTS: &str = "acts";
pub(super) const KEYS: &str = "keys";
pub(super) const REFUSALS: &str = "refusals";
pub(super) const TOTALS: &str = "totals";
pub(super) const OUTPUTS: &str = "outputs";

/// So many entries of a long list are read at a time.
pub(super) const PAGE: u32 = 500;

/// The parts with `:` between them. A `:` inside a part is written `%3A`, and `%` is written `%25`,
/// so that no two names have one key.
pub(super) fn key<const N: usize>(parts: [&dyn Display; N]) -> String {
    let escaped = parts.map(|part| part.to_string().replace('%', "%25").replace(':', "%3A"));
    escaped.join(":")
}

/// The group in a key: the part after the first, as it was before it was escaped.
pub(super) fn group_in(key: &str) -> String {
    let part = key.split(':').nth(1).unwrap_or_default();
    part.replace("%3A", ":").replace("%25", "%")
}

pub(super) fn token(group: &GroupName) -> String {
    key([&"token", group])
}

pub(super) fn waiter(group: &GroupName, session: &SessionId) -> String {
    key([&"waiter", group, session])
}

pub(super) fn run(group: &GroupName, fence: Fence, session: &SessionId) -> String {
    key([&"run", group, &fence, session])
}

pub(super) fn once(group: &GroupName, name: &str) -> String {
    key([&"key", group, &name])
}

pub(super) fn act(act: &ActRecord) -> String {
    key([&"act", &act.group, &act.version.number()])
}

/// A kind's list of one group, or of all groups.
pub(super) fn list(kind: &str, group: Option<&GroupName>) -> String {
    group.map_or_else(|| kind.to_owned(), |group| key([&kind, group]))
}

/// The lists of an entry of this kind: that of all groups, and that of its own.
pub(super) fn lists(kind: &str, group: &GroupName) -> Vec<String> {
    vec![list(kind, None), list(kind, Some(group))]
}

/// A whole list, by rank.
pub(in crate::store) fn whole(list: String) -> Ask {
    Ask::Part(part(list, i64::MIN, i64::MAX))
}

/// The entries of a list between these ranks, the lowest first.
pub(super) const fn part(list: String, from: i64, to: i64) -> Part {
    Part {
        list,
        ranks: (from, to),
        newest_first: false,
        skip: 0,
        limit: u32::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_have_one_key() {
        let group = |name| GroupName::new(name).unwrap();
        assert_eq!(token(&group("nightly")), "token:nightly");
        assert_eq!(once(&group("a:b"), "c"), "key:a%3Ab:c");
        assert_eq!(once(&group("a"), "b:c"), "key:a:b%3Ac");
        assert_eq!(token(&group("a%3Ab")), "token:a%253Ab");
        assert_eq!(lists(RUNS, &group("50 %")), ["runs", "runs:50 %25"]);
        for name in ["nightly", "a:b", "a%3Ab", "50 %"] {
            assert_eq!(group_in(&token(&group(name))), name);
        }
    }
}
