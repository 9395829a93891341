//! A register that a majority of independent servers hold: compare-and-swap by two rounds (CASPaxos), with members that
//! know when they have forgotten. Pure.
//!
//! Denis Rystsov, "CASPaxos: Replicated State Machines without logs" (arXiv:1802.07000). A member that has started anew may
//! have forgotten what it promised and accepted. It counts for nothing until it has rejoined: a majority of the members
//! enter a new generation, tell all that they hold, and refuse requests of older generations from then on.

/// The order of rounds. No two rounds of all clients have the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Ballot {
    pub(super) number: u64,
    pub(super) client: u64,
}

/// What a member holds of one register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held<V> {
    /// Rounds of a lower ballot are refused.
    pub(super) promised: Ballot,
    /// The ballot of the value.
    pub(super) accepted: Ballot,
    pub(super) value: Option<V>,
}

impl<V> Default for Held<V> {
    fn default() -> Self {
        Self {
            promised: Ballot::default(),
            accepted: Ballot::default(),
            value: None,
        }
    }
}

/// A rule of members and clients, which a test takes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// A member that has started anew counts for nothing.
    UnsureIsSilent,
    /// A request is for one process of a member's.
    ForOneProcess,
    /// A member refuses requests of an older generation.
    GenerationsRefuse,
    /// A member rejoins by what a majority of all members hold.
    RejoinsByMajority,
    /// A member refuses a round of a lower ballot than it has promised.
    PromisesBind,
    /// A round goes on from the value of the highest ballot.
    HighestBallot,
    /// A value is read only if a majority has it of the same ballot.
    SameBallot,
}

/// The rules: all of them, outside of tests.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rules {
    pub(super) without: Option<Rule>,
}

impl Rules {
    pub(super) fn have(self, rule: Rule) -> bool {
        self.without != Some(rule)
    }
}

/// How many of so many members are a majority.
pub(super) const fn majority(members: usize) -> usize {
    members / 2 + 1
}

/// A member's answer to a request that it has carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer<V> {
    /// It has promised, or it shows what it holds.
    Holds(Held<V>),
    /// It has accepted.
    Accepted,
    /// It has promised a higher ballot.
    Behind(Ballot),
    /// It has not rejoined, is another process, or is in another generation.
    Refused,
}

/// What the answers to a first round say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Prepared<V> {
    /// The register's value, from which the round goes on.
    Goes(Option<V>),
    /// No majority has promised. The highest ballot that was met.
    Fails(Ballot),
}

/// What the answers to a read of one round say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reading<V> {
    /// The register's value.
    Is(Option<V>),
    /// Two rounds are needed: a round may be under way, or was left half-way.
    Unclear,
}

impl Rules {
    /// The first round of so many members.
    pub(super) fn prepared<V: Clone>(self, members: usize, answers: &[Answer<V>]) -> Prepared<V> {
        let held = |answer: &&Answer<V>| matches!(answer, Answer::Holds(_));
        if answers.iter().filter(held).count() < majority(members) {
            let met = answers.iter().filter_map(|answer| match answer {
                Answer::Behind(ballot) => Some(*ballot),
                _ => None,
            });
            return Prepared::Fails(met.max().unwrap_or_default());
        }
        let held = answers.iter().filter_map(|answer| match answer {
            Answer::Holds(held) => Some(held),
            _ => None,
        });
        let newest = match self.have(Rule::HighestBallot) {
            true => held.max_by_key(|held| held.accepted),
            false => held.last(),
        };
        Prepared::Goes(newest.and_then(|held| held.value.clone()))
    }

    /// A read in one round: members show what they hold, and promise nothing.
    pub(super) fn read<V: Clone + PartialEq>(
        self,
        members: usize,
        answers: &[Answer<V>],
    ) -> Reading<V> {
        let held: Vec<&Held<V>> = answers
            .iter()
            .filter_map(|answer| match answer {
                Answer::Holds(held) => Some(held),
                _ => None,
            })
            .collect();
        for one in &held {
            let same = |other: &&&Held<V>| match self.have(Rule::SameBallot) {
                true => other.accepted == one.accepted,
                false => other.value == one.value,
            };
            if held.iter().filter(same).count() >= majority(members) {
                return Reading::Is(one.value.clone());
            }
        }
        Reading::Unclear
    }

    /// What a member gets that rejoins, from what the members of a new generation hold. `None`: they are too few.
    pub(super) fn rejoined<V: Clone>(
        self,
        members: usize,
        answers: &[Answer<V>],
    ) -> Option<Held<V>> {
        let held = answers.iter().filter_map(|answer| match answer {
            Answer::Holds(held) => Some(held),
            _ => None,
        });
        let needed = match self.have(Rule::RejoinsByMajority) {
            true => majority(members),
            false => 1,
        };
        if held.clone().count() < needed {
            return None;
        }
        // The promises of the others bind them: rounds that counted one of this member's are of an older generation.
        held.max_by_key(|held| held.accepted).cloned()
    }
}

/// One server, as its script behaves.
#[derive(Debug, Clone)]
pub(super) struct Member<V> {
    /// The process that runs.
    pub(super) process: u64,
    /// The process that has joined; another one has forgotten.
    pub(super) joined: Option<u64>,
    pub(super) generation: u64,
    pub(super) held: Held<V>,
}

/// What a request wants of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wish<V> {
    /// Shows what it holds.
    Show,
    Prepare(Ballot),
    Accept(Ballot, Option<V>),
    /// Enters the request's generation, and shows what it holds.
    Enter,
    /// Rejoins, with this.
    Rejoin(Held<V>),
}

/// A request to one process of one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request<V> {
    pub(super) process: u64,
    pub(super) generation: u64,
    pub(super) wish: Wish<V>,
}

impl<V: Clone> Member<V> {
    pub(super) fn is_sure(&self) -> bool {
        self.joined == Some(self.process)
    }

    /// Carries a request out.
    pub(super) fn answer(&mut self, request: &Request<V>, rules: Rules) -> Answer<V> {
        if request.process != self.process && rules.have(Rule::ForOneProcess) {
            return Answer::Refused;
        }
        if let Wish::Rejoin(held) = &request.wish {
            if self.is_sure() || request.generation < self.generation {
                return Answer::Refused;
            }
            self.joined = Some(self.process);
            self.generation = request.generation;
            self.held = held.clone();
            return Answer::Accepted;
        }
        if !self.is_sure() && rules.have(Rule::UnsureIsSilent) {
            return Answer::Refused;
        }
        if request.generation < self.generation && rules.have(Rule::GenerationsRefuse) {
            return Answer::Refused;
        }
        // It has missed that another member has rejoined.
        self.generation = self.generation.max(request.generation);
        match &request.wish {
            Wish::Show | Wish::Enter => Answer::Holds(self.held.clone()),
            Wish::Prepare(ballot) => {
                if *ballot <= self.held.promised && rules.have(Rule::PromisesBind) {
                    return Answer::Behind(self.held.promised);
                }
                self.held.promised = self.held.promised.max(*ballot);
                Answer::Holds(self.held.clone())
            }
            Wish::Accept(ballot, value) => {
                if *ballot < self.held.promised && rules.have(Rule::PromisesBind) {
                    return Answer::Behind(self.held.promised);
                }
                self.held = Held {
                    promised: self.held.promised.max(*ballot),
                    accepted: *ballot,
                    value: value.clone(),
                };
                Answer::Accepted
            }
            Wish::Rejoin(_) => Answer::Refused,
        }
    }
}

#[path = "register_model.rs"]
mod model;
