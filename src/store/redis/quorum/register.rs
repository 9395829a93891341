//! A register that a majority of independent servers hold: compare-and-swap by two rounds (CASPaxos), with members that
//! know when they have forgotten. Pure.
//!
//! Denis Rystsov, "CASPaxos: Replicated State Machines without logs" (arXiv:1802.07000). A member that has started anew may
//! have forgotten what it promised and accepted. It counts for nothing until it has rejoined: a majority of the members
//! enter a new generation, tell all that they hold, and refuse requests of older generations from then on.
//!
//! A round may write several registers. A member accepts all of them or none, and keeps the names of the others with
//! each: a value that a majority does not have yet is completed together with them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The order of rounds, and of generations. No two of all clients are equal.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(into = "String", try_from = "String")]
pub(super) struct Ballot {
    pub(super) number: u64,
    pub(super) client: u64,
}

impl Ballot {
    pub(super) const LOWEST: Self = Self {
        number: 0,
        client: 0,
    };

    /// The next one after all that were met.
    pub(super) const fn after(highest: Self, client: u64) -> Self {
        Self {
            number: highest.number.saturating_add(1),
            client,
        }
    }

    /// A number that rises with ballots, and differs for two clients' (but for one in a million).
    pub(super) fn rising(self) -> i64 {
        const BITS: u32 = 20;
        let number = i64::try_from(self.number).unwrap_or(i64::MAX);
        let client = i64::try_from(self.client % (1 << BITS)).unwrap_or_default();
        number.saturating_mul(1 << BITS).saturating_add(client)
    }

    /// Reads a text of [`fmt::Display`]. An empty one is the lowest.
    pub(super) fn read(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::default());
        }
        let (number, client) = text.split_once('.')?;
        let read = |text| u64::from_str_radix(text, 16).ok();
        let ballot = Self {
            number: read(number)?,
            client: read(client)?,
        };
        // Members compare texts.
        (ballot.to_string() == text).then_some(ballot)
    }
}

impl From<Ballot> for String {
    fn from(ballot: Ballot) -> Self {
        ballot.to_string()
    }
}

impl TryFrom<String> for Ballot {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::read(&text).ok_or("no ballot")
    }
}

impl fmt::Display for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}.{:016x}", self.number, self.client)
    }
}

/// What a member shows of one register: the last value that it has accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Held<V> {
    /// The ballot of the value; the lowest, if there was none.
    pub(super) accepted: Ballot,
    pub(super) value: V,
}

/// What a round goes on from, of the answers of a majority.
pub(super) fn newest<V>(held: &[Held<V>]) -> Option<&Held<V>> {
    held.iter().max_by_key(|held| held.accepted)
}

/// What a majority of so many members hold of one ballot: it is the register's value, and stays it until the next round.
/// Equal values are not enough.
pub(super) fn chosen<V>(members: usize, held: &[Held<V>]) -> Option<&Held<V>> {
    of_majority(members, held, |one, other| one.accepted == other.accepted)
}

fn of_majority<V>(
    members: usize,
    held: &[Held<V>],
    same: impl Fn(&Held<V>, &Held<V>) -> bool,
) -> Option<&Held<V>> {
    held.iter().find(|one| {
        let count = held.iter().filter(|other| same(one, other)).count();
        count >= majority(members)
    })
}

/// How many of so many members are a majority.
pub(super) const fn majority(members: usize) -> usize {
    members / 2 + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Members compare them as texts.
        #[test]
        fn texts_of_ballots_have_their_order(one: (u64, u64), other: (u64, u64)) {
            let of = |(number, client)| Ballot { number, client };
            let (one, other) = (of(one), of(other));
            prop_assert_eq!(one.cmp(&other), one.to_string().cmp(&other.to_string()));
            prop_assert_eq!(Ballot::read(&one.to_string()), Some(one));
        }

        #[test]
        fn numbers_rise_with_ballots_and_differ_by_client(number in 0..1_u64 << 40, client in 0..(1_u64 << 20) - 1) {
            let rising = |number, client| Ballot { number, client }.rising();
            prop_assert!(rising(number, client) < rising(number, client + 1));
            prop_assert!(rising(number, client) < rising(number + 1, 0));
            prop_assert_eq!(rising(number, client), rising(number, client + (1 << 20)));
        }

        #[test]
        fn what_is_no_ballot_is_none(text in "[0-9a-fA-F.+]{1,40}") {
            let read = Ballot::read(&text);
            prop_assert!(read.is_none_or(|it| it.to_string() == text));
        }
    }
}

#[cfg(test)]
#[path = "register_model.rs"]
pub(super) mod model;
