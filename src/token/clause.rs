//! The clauses of the rule, by number and in words.

use std::fmt;

/// A clause of the rule, in the order of the table in `token.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Clause {
    /// The store may have forgotten a grant.
    ForgetfulStore = 0,
    /// The claim comes from inside the run.
    Nested = 1,
    /// The run is provably dead.
    ProvenDead = 2,
    /// An age is unknown.
    UnknownAge = 3,
    /// The holder was heard recently.
    Held = 4,
    /// The run of a silent holder is alive on this host.
    AliveHere = 5,
    /// The group is paused.
    Paused = 6,
    /// The last run began too recently.
    TooSoon = 7,
    /// The token is handed off to the claimant.
    HandedOff = 8,
    /// The token is handed off to another client.
    HandedToAnother = 9,
    /// Others come first in the queue.
    Behind = 10,
    /// The token belongs to the claimant.
    Renewal = 11,
    /// The expected client takes the token back.
    Failback = 12,
    /// The token is kept for another client.
    Kept = 13,
    /// A new group waits for its expected client.
    Reserved = 14,
    /// The token is open.
    Open = 15,
    /// The token is open, and another client has a head start.
    HeadStart = 16,
}

impl Clause {
    /// Every clause, in their order.
    pub const ALL: [Self; 17] = [
        Self::ForgetfulStore,
        Self::Nested,
        Self::ProvenDead,
        Self::UnknownAge,
        Self::Held,
        Self::AliveHere,
        Self::Paused,
        Self::TooSoon,
        Self::HandedOff,
        Self::HandedToAnother,
        Self::Behind,
        Self::Renewal,
        Self::Failback,
        Self::Kept,
        Self::Reserved,
        Self::Open,
        Self::HeadStart,
    ];

    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The clause in words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::ForgetfulStore => {
                "the store may have forgotten a grant: it is observed until every such lease is over"
            }
            Self::Nested => {
                "the asker runs inside the job of this very group: it runs under that lease"
            }
            Self::ProvenDead => {
                "the token is running, and its run is provably dead: it counts as open"
            }
            Self::UnknownAge => {
                "the age of a stamp is unknown (another clock made it): the row is watched until it has stood unchanged for that long"
            }
            Self::Held => {
                "the token is running, and its holder was heard less than its takeover-after ago: refused"
            }
            Self::AliveHere => {
                "the holder is silent, but something of its run is alive on this host: refused"
            }
            Self::Paused => "the group is paused: refused",
            Self::TooSoon => "the last run began too recently for its --at-least: refused",
            Self::HandedOff => "the token is handed off to this client: it takes it",
            Self::HandedToAnother => {
                "the token is handed off to another client: that one gets a head start"
            }
            Self::Behind => "others are ahead in the queue: refused",
            Self::Renewal => "the token is idle and belongs to this client: it runs again",
            Self::Failback => {
                "the expected client wants the token back, but its slot has just run elsewhere: refused, and handed off to it for its next look"
            }
            Self::Kept => {
                "the token is idle, belongs to another client and is kept for it: refused"
            }
            Self::Reserved => {
                "the group is new and reserved for the client that is expected: refused"
            }
            Self::Open => {
                "the token is open, and no other client comes before this one: it takes it"
            }
            Self::HeadStart => {
                "the token is open, and another client comes first: that one gets a head start"
            }
        }
    }
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_clause_is_a_line_of_the_table() {
        let table = include_str!("../token.rs");
        let numbers: Vec<&str> = table
            .lines()
            .filter_map(|line| line.strip_prefix("//! | ")?.split(" |").next())
            .filter(|cell| cell.parse::<u8>().is_ok())
            .collect();
        let clauses = Clause::ALL.map(|clause| clause.to_string());
        assert_eq!(numbers, clauses);
    }
}
