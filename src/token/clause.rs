//! The clauses of the rule, by number and in words.

use std::fmt;

/// A clause of the rule, in the order of the table in `token.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Clause {
    /// The store may have forgotten a grant.
    ForgetfulStore,
    /// The claim comes from inside the run.
    Nested,
    /// The run is provably dead.
    ProvenDead,
    /// An age is unknown.
    UnknownAge,
    /// The holder was heard recently.
    Held,
    /// The run of a silent holder is alive on this host.
    AliveHere,
    /// The group is paused.
    Paused,
    /// The claimant's client is paused.
    ClientPaused,
    /// The last run began too recently.
    TooSoon,
    /// The token is handed off to the claimant.
    HandedOff,
    /// The token is handed off to another client.
    HandedToAnother,
    /// Others come first in the queue.
    Behind,
    /// The token belongs to the claimant.
    Renewal,
    /// The expected client takes the token back.
    Failback,
    /// The token is kept for another client.
    Kept,
    /// A new group waits for its expected client.
    Reserved,
    /// The token is open.
    Open,
    /// The token is open, and another client has a head start.
    HeadStart,
}

impl Clause {
    /// Every clause, in their order.
    pub const ALL: [Self; 18] = [
        Self::ForgetfulStore,
        Self::Nested,
        Self::ProvenDead,
        Self::UnknownAge,
        Self::Held,
        Self::AliveHere,
        Self::Paused,
        Self::ClientPaused,
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

    /// The number in the table. A pause of the group and one of the client are both clause 6.
    pub const fn number(self) -> u8 {
        match self {
            Self::ForgetfulStore => 0,
            Self::Nested => 1,
            Self::ProvenDead => 2,
            Self::UnknownAge => 3,
            Self::Held => 4,
            Self::AliveHere => 5,
            Self::Paused | Self::ClientPaused => 6,
            Self::TooSoon => 7,
            Self::HandedOff => 8,
            Self::HandedToAnother => 9,
            Self::Behind => 10,
            Self::Renewal => 11,
            Self::Failback => 12,
            Self::Kept => 13,
            Self::Reserved => 14,
            Self::Open => 15,
            Self::HeadStart => 16,
        }
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
            Self::ClientPaused => "this client is paused in every group: refused",
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
        let mut clauses: Vec<_> = Clause::ALL.iter().map(ToString::to_string).collect();
        clauses.dedup();
        assert_eq!(numbers, clauses);
    }
}
