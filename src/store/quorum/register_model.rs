//! Random schedules of rounds, rejoins, crashes and lost, late and repeated messages. A token's versions are one chain:
//! no version has two successors, and a read shows none that is older than the last one before it.

use std::collections::BTreeMap;

use super::*;

/// Random numbers that a seed repeats (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        let most = u64::try_from(most.max(1)).unwrap();
        usize::try_from(self.next() % most).unwrap()
    }
}

/// A value: a version, and the one that it succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    id: u32,
    after: u32,
    /// The position in the chain.
    depth: u32,
}

/// What a client is at.
#[derive(Debug, Clone)]
enum Doing {
    Nothing,
    /// The first round of a swap or of a read of two rounds.
    Preparing,
    /// The second; `swaps`: it writes a new version.
    Accepting {
        value: Option<Version>,
        swaps: bool,
    },
    Reading,
    /// A member rejoins, by what the others hold.
    Entering {
        member: usize,
        process: u64,
    },
    Rejoining,
}

struct Client {
    id: u64,
    doing: Doing,
    wants_swap: bool,
    ballot: Ballot,
    highest: u64,
    generation: u64,
    /// The processes that it has last met.
    processes: Vec<u64>,
    /// The answer of each member, once.
    answers: Vec<(usize, Answer<Version>)>,
    round: u64,
    /// The deepest version that was known to be chosen when this began.
    floor: u32,
}

/// A message under way: a request, or an answer to a round of a client's.
#[derive(Clone)]
enum Message {
    Request {
        to: usize,
        from: usize,
        round: u64,
        request: Request<Version>,
    },
    Answer {
        to: usize,
        by: usize,
        round: u64,
        answer: Answer<Version>,
    },
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    swaps: u64,
    reads: u64,
    rejoins: u64,
    forgotten: u64,
}

struct World {
    rules: Rules,
    members: Vec<Member<Version>>,
    clients: Vec<Client>,
    messages: Vec<Message>,
    random: Random,
    /// How often clients begin something, and messages are lost, of a hundred steps.
    haste: usize,
    loss: usize,
    ids: u32,
    processes: u64,
    /// The versions that were acknowledged, each with the one that it succeeds.
    swapped: Vec<Version>,
    /// The deepest version that any client knows to be chosen.
    chosen: u32,
    /// The versions that clients know to be chosen, by their depth.
    chain: BTreeMap<u32, u32>,
    counts: Counts,
}

impl World {
    fn new(members: usize, rules: Rules, seed: u64) -> Self {
        let count = u64::try_from(members).unwrap();
        let mut random = Random(seed);
        let member = |index: u64| Member {
            process: index,
            joined: Some(index),
            generation: 1,
            held: Held::default(),
        };
        let client = |id| Client {
            id,
            doing: Doing::Nothing,
            wants_swap: false,
            ballot: Ballot::default(),
            highest: 0,
            generation: 1,
            processes: (0..count).collect(),
            answers: Vec::new(),
            round: 0,
            floor: 0,
        };
        Self {
            rules,
            members: (0..count).map(member).collect(),
            clients: (0..3).map(client).collect(),
            messages: Vec::new(),
            haste: 2 + random.below(8),
            loss: random.below(6),
            random,
            ids: 0,
            processes: count,
            swapped: Vec::new(),
            chosen: 0,
            chain: BTreeMap::new(),
            counts: Counts::default(),
        }
    }

    /// Sends a wish to all members, or to one.
    fn send(&mut self, client: usize, only: Option<usize>, wish: &Wish<Version>) {
        let own = &mut self.clients[client];
        own.round += 1;
        own.answers.clear();
        for to in 0..self.members.len() {
            if only.is_some_and(|it| it != to) {
                continue;
            }
            let request = Request {
                process: own.processes[to],
                generation: own.generation,
                wish: wish.clone(),
            };
            let (from, round) = (client, own.round);
            self.messages.push(Message::Request {
                to,
                from,
                round,
                request,
            });
        }
    }

    /// A client begins something, or gives up what it was at.
    fn begin(&mut self, client: usize) {
        // It looks at the members' processes and generations first, as a client that connects does.
        let generation = self.members.iter().map(|it| it.generation).max().unwrap();
        let processes: Vec<u64> = self.members.iter().map(|it| it.process).collect();
        let own = &mut self.clients[client];
        if self.random.below(4) > 0 {
            (own.generation, own.processes) = (generation, processes);
        }
        own.floor = self.chosen;
        let what = self.random.below(10);
        let unsure: Vec<usize> = (0..self.members.len())
            .filter(|it| !self.members[*it].is_sure())
            .collect();
        if !unsure.is_empty() && self.random.below(10) < 4 {
            let member = unsure[self.random.below(unsure.len())];
            let process = self.members[member].process;
            // Drawn: two healers do not share one.
            own.generation = (generation / 8 + 1) * 8 + own.id;
            own.processes[member] = process;
            own.doing = Doing::Entering { member, process };
            self.send(client, None, &Wish::Enter);
        } else if what < 3 {
            own.doing = Doing::Reading;
            self.send(client, None, &Wish::Show);
        } else {
            own.highest += 1 + self.random.next() % 2;
            own.ballot = Ballot {
                number: own.highest,
                client: own.id,
            };
            own.wants_swap = what < 8;
            own.doing = Doing::Preparing;
            let wish = Wish::Prepare(own.ballot);
            self.send(client, None, &wish);
        }
    }

    /// A client goes on with the answers that it has.
    fn go_on(&mut self, client: usize) -> Result<(), String> {
        let (members, rules) = (self.members.len(), self.rules);
        let own = &mut self.clients[client];
        let answers: Vec<Answer<Version>> = own.answers.iter().map(|(_, it)| it.clone()).collect();
        match own.doing.clone() {
            Doing::Nothing | Doing::Rejoining => {}
            Doing::Preparing => match rules.prepared(members, &answers) {
                Prepared::Fails(met) => own.highest = own.highest.max(met.number),
                Prepared::Goes(value) => {
                    let swaps = own.wants_swap;
                    let value = match swaps {
                        false => value,
                        true => {
                            self.ids += 1;
                            let (after, depth) = value.map_or((0, 0), |it| (it.id, it.depth));
                            Some(Version {
                                id: self.ids,
                                after,
                                depth: depth + 1,
                            })
                        }
                    };
                    own.doing = Doing::Accepting { value, swaps };
                    let wish = Wish::Accept(own.ballot, value);
                    self.send(client, None, &wish);
                }
            },
            Doing::Accepting { value, swaps } => {
                let accepted = answers.iter().filter(|it| **it == Answer::Accepted);
                if accepted.count() >= majority(members) {
                    let floor = own.floor;
                    own.doing = Doing::Nothing;
                    self.known(value, floor, swaps)?;
                }
            }
            Doing::Reading => {
                if let Reading::Is(value) = rules.read(members, &answers) {
                    let floor = own.floor;
                    own.doing = Doing::Nothing;
                    self.counts.reads += 1;
                    self.known(value, floor, false)?;
                }
            }
            Doing::Entering { member, process } => {
                if let Some(held) = rules.rejoined(members, &answers) {
                    own.processes[member] = process;
                    own.doing = Doing::Rejoining;
                    self.send(client, Some(member), &Wish::Rejoin(held));
                }
            }
        }
        Ok(())
    }

    /// A client knows that this version is chosen. `floor`: another was, before it began.
    fn known(&mut self, value: Option<Version>, floor: u32, swapped: bool) -> Result<(), String> {
        let depth = value.map_or(0, |it| it.depth);
        if depth < floor {
            return Err(format!(
                "version {value:?} is shown after one of depth {floor}"
            ));
        }
        // All versions that are known to be chosen are one chain.
        let own = value.map(|it| (it.depth, it.id));
        let before = value.map(|it| (it.depth - 1, it.after));
        for (depth, id) in own.into_iter().chain(before) {
            let at = *self.chain.entry(depth).or_insert(id);
            if at != id {
                return Err(format!("{value:?} is chosen beside version {at}"));
            }
        }
        if let Some(version) = value.filter(|_| swapped) {
            self.counts.swaps += 1;
            if let Some(other) = self.swapped.iter().find(|it| it.after == version.after) {
                return Err(format!(
                    "{other:?} and {version:?} succeed the same version"
                ));
            }
            self.swapped.push(version);
        }
        self.chosen = self.chosen.max(depth);
        Ok(())
    }

    /// A member's process ends, and another starts, with or without its data.
    fn crash(&mut self) {
        let sure = self.members.iter().filter(|it| it.is_sure()).count();
        // A majority that has forgotten is a new store; that is seen elsewhere.
        if sure <= majority(self.members.len()) {
            return;
        }
        let at = self.random.below(self.members.len());
        self.processes += 1;
        let member = &mut self.members[at];
        member.process = self.processes;
        if self.random.below(2) == 0 {
            self.counts.forgotten += 1;
            (member.joined, member.generation, member.held) = (None, 0, Held::default());
        }
    }

    fn step(&mut self) -> Result<(), String> {
        match self.random.below(100) {
            0..4 => self.crash(),
            it if (4..4 + self.haste).contains(&it) => {
                let client = self.random.below(self.clients.len());
                self.begin(client);
            }
            it if (30..30 + self.loss).contains(&it) && !self.messages.is_empty() => {
                let at = self.random.below(self.messages.len());
                self.messages.swap_remove(at);
            }
            _ => {
                if self.messages.is_empty() {
                    let client = self.random.below(self.clients.len());
                    self.begin(client);
                    return Ok(());
                }
                let at = self.random.below(self.messages.len());
                let message = match self.random.below(20) {
                    // It comes again later.
                    0 => self.messages[at].clone(),
                    _ => self.messages.swap_remove(at),
                };
                match message {
                    Message::Request {
                        to,
                        from,
                        round,
                        request,
                    } => {
                        let was_sure = self.members[to].is_sure();
                        let answer = self.members[to].answer(&request, self.rules);
                        if !was_sure && self.members[to].is_sure() {
                            self.counts.rejoins += 1;
                        }
                        self.messages.push(Message::Answer {
                            to: from,
                            by: to,
                            round,
                            answer,
                        });
                    }
                    Message::Answer {
                        to,
                        by,
                        round,
                        answer,
                    } => {
                        let own = &mut self.clients[to];
                        let is_new = own.answers.iter().all(|(it, _)| *it != by);
                        if own.round == round && is_new {
                            own.answers.push((by, answer));
                            self.go_on(to)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Plays so many schedules. The first violation.
fn play(members: usize, rules: Rules, seeds: u64) -> (Counts, Option<String>) {
    let mut all = Counts::default();
    for seed in 0..seeds {
        let mut world = World::new(members, rules, seed);
        for step in 0..STEPS * members {
            if let Err(what) = world.step() {
                return (all, Some(format!("seed {seed}, step {step}: {what}")));
            }
        }
        all.swaps += world.counts.swaps;
        all.reads += world.counts.reads;
        all.rejoins += world.counts.rejoins;
        all.forgotten += world.counts.forgotten;
    }
    (all, None)
}

/// Schedules of each size, at a test's cost.
const SEEDS: u64 = 25_000;

/// As many until a violation is found without a rule: some need several accidents at once.
const SEARCHED: u64 = 200_000;

/// Steps of a schedule, for each member.
const STEPS: usize = 200;

#[test]
fn no_version_has_two_successors_and_none_is_forgotten() {
    for members in [3, 5] {
        let (counts, violation) = play(members, Rules::default(), SEEDS);
        assert_eq!(violation, None);
        assert!(counts.swaps > SEEDS && counts.rejoins > SEEDS, "{counts:?}");
    }
}

#[test]
fn each_rule_is_needed() {
    for rule in [
        Rule::UnsureIsSilent,
        Rule::ForOneProcess,
        Rule::GenerationsRefuse,
        Rule::RejoinsByMajority,
        Rule::PromisesBind,
        Rule::HighestBallot,
    ] {
        let rules = Rules {
            without: Some(rule),
        };
        let (_, found) = play(3, rules, SEARCHED);
        assert!(found.is_some(), "{rule:?}");
    }
}

/// Two members have the same value, of two rounds that were left half-way. The next round does not go on from it.
#[test]
fn equal_values_of_two_ballots_are_no_reading() {
    let version = |id| Version {
        id,
        after: 0,
        depth: 1,
    };
    let (one, other) = (Some(version(1)), Some(version(2)));
    let ballot = |number| Ballot { number, client: 0 };
    for rules in [
        Rules::default(),
        Rules {
            without: Some(Rule::SameBallot),
        },
    ] {
        let mut members = World::new(3, rules, 0).members;
        let mut ask = |at: &[usize], wish: Wish<Version>| -> Vec<Answer<Version>> {
            let asked = at.iter().map(|index| {
                let member = &mut members[*index];
                let request = Request {
                    process: member.process,
                    generation: 1,
                    wish: wish.clone(),
                };
                member.answer(&request, rules)
            });
            asked.collect()
        };
        ask(&[0, 1], Wish::Prepare(ballot(1)));
        ask(&[0], Wish::Accept(ballot(1), one));
        ask(&[1, 2], Wish::Prepare(ballot(2)));
        ask(&[1], Wish::Accept(ballot(2), other));
        let prepared = ask(&[0, 2], Wish::Prepare(ballot(3)));
        assert_eq!(rules.prepared(3, &prepared), Prepared::Goes(one));
        ask(&[2], Wish::Accept(ballot(3), one));
        let shown = ask(&[0, 2], Wish::Show);
        let reading = match rules.without {
            None => Reading::Unclear,
            Some(_) => Reading::Is(one),
        };
        assert_eq!(rules.read(3, &shown), reading);
        let prepared = ask(&[0, 1], Wish::Prepare(ballot(4)));
        assert_eq!(rules.prepared(3, &prepared), Prepared::Goes(other));
    }
}
