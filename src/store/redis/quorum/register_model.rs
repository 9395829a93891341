//! Random schedules of rounds, rejoins, crashes and lost, late and repeated messages. A token's versions are one chain:
//! no version has two successors, and a read shows none that is older than the last one before it. Some swaps write a
//! record beside the token: no later read misses it. A client that has given a swap up looks, and knows from then on if the
//! swap is one of the chain.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::*;

/// A rule of members and clients, which a test takes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Rule {
    /// A member that has started anew counts for nothing.
    UnsureIsSilent,
    /// A request is for one process of a member's.
    ForOneProcess,
    /// A member refuses requests of an older generation.
    GenerationsRefuse,
    /// Answers count together if they are of one generation.
    OneGeneration,
    /// A member rejoins by what a majority of all members hold.
    RejoinsByMajority,
    /// A member refuses a round of a lower ballot than it has promised.
    PromisesBind,
    /// A round goes on from the value of the highest ballot.
    HighestBallot,
    /// A value is read only if a majority has it of the same ballot.
    SameBallot,
    /// A value that a majority does not have is completed with the registers that were written with it.
    Together,
    /// A read shows what a majority has, whatever a minority has of a higher ballot.
    ShowsChosen,
    /// A look after a swap that was given up goes on until a later ballot has a majority.
    LookSettles,
}

/// The rules: all of them, or all but one.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct Rules {
    pub(in super::super) without: Option<Rule>,
}

impl Rules {
    fn have(self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    fn newest<V>(self, held: &[Held<V>]) -> Option<&Held<V>> {
        match self.have(Rule::HighestBallot) {
            true => newest(held),
            false => held.last(),
        }
    }

    fn chosen<V: PartialEq>(self, members: usize, held: &[Held<V>]) -> Option<&Held<V>> {
        match self.have(Rule::SameBallot) {
            true => chosen(members, held),
            false => of_majority(members, held, |one, other| one.value == other.value),
        }
    }
}

/// What a member holds of the token. `with`: it was written together with a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in super::super) struct Token {
    pub(in super::super) version: Option<Version>,
    pub(in super::super) with: bool,
}

/// What a member holds of the record: the depth of the version that it was written with.
type Record = u32;

/// A member's answer to a request that it has carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Answer {
    /// It has promised, or it shows what it holds.
    Holds(u64, Held<Token>, Held<Record>),
    /// It has accepted.
    Accepted,
    /// It has promised a higher ballot.
    Behind(Ballot),
    /// It has not rejoined, is another process, or is in another generation.
    Refused,
}

/// One server, as its script behaves.
#[derive(Debug, Clone)]
pub(in super::super) struct Member {
    /// The process that runs.
    pub(in super::super) process: u64,
    /// The process that has joined; another one has forgotten.
    pub(in super::super) joined: Option<u64>,
    pub(in super::super) generation: u64,
    /// Rounds of a lower ballot are refused.
    pub(in super::super) promised: Ballot,
    pub(in super::super) token: Held<Token>,
    pub(in super::super) record: Held<Record>,
}

/// What a request wants of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Wish {
    /// Shows what it holds.
    Show,
    Prepare(Ballot),
    /// Accepts the token, and a record beside it, which has a ballot of its own.
    Accept(Ballot, Token, Option<Held<Record>>),
    /// Takes the record, if it is newer.
    Keep(Held<Record>),
    /// Enters the request's generation, and shows what it holds.
    Enter,
    /// Rejoins, with this.
    Rejoin(Held<Token>, Held<Record>),
}

/// A request to one process of one member. `generation`: none, if the client does not know any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Request {
    pub(in super::super) process: u64,
    pub(in super::super) generation: Option<u64>,
    pub(in super::super) wish: Wish,
}

impl Member {
    pub(in super::super) fn is_sure(&self) -> bool {
        self.joined == Some(self.process)
    }

    fn shows(&self) -> Answer {
        Answer::Holds(self.generation, self.token.clone(), self.record.clone())
    }

    fn keep(&mut self, record: &Held<Record>) {
        if self.record.accepted < record.accepted {
            self.record = record.clone();
        }
    }

    /// Carries a request out.
    pub(in super::super) fn answer(&mut self, request: &Request, rules: Rules) -> Answer {
        if request.process != self.process && rules.have(Rule::ForOneProcess) {
            return Answer::Refused;
        }
        let is_old = request.generation.is_some_and(|it| it < self.generation);
        if let Wish::Rejoin(token, record) = &request.wish {
            if self.is_sure() || is_old {
                return Answer::Refused;
            }
            self.joined = Some(self.process);
            self.generation = request.generation.unwrap();
            // What it has accepted later itself stays.
            if self.token.accepted < token.accepted {
                self.promised = self.promised.max(token.accepted);
                self.token = token.clone();
            }
            self.keep(record);
            return Answer::Accepted;
        }
        if !self.is_sure() && rules.have(Rule::UnsureIsSilent) {
            return Answer::Refused;
        }
        if is_old && rules.have(Rule::GenerationsRefuse) {
            return Answer::Refused;
        }
        // It has missed that another member has rejoined.
        self.generation = self.generation.max(request.generation.unwrap_or_default());
        let is_behind = |ballot: &Ballot| self.promised > *ballot && rules.have(Rule::PromisesBind);
        match &request.wish {
            Wish::Prepare(ballot) | Wish::Accept(ballot, ..) if is_behind(ballot) => {
                Answer::Behind(self.promised)
            }
            Wish::Show | Wish::Enter => self.shows(),
            Wish::Prepare(ballot) => {
                self.promised = self.promised.max(*ballot);
                self.shows()
            }
            Wish::Accept(ballot, token, record) => {
                self.promised = self.promised.max(*ballot);
                self.token = Held {
                    accepted: *ballot,
                    value: *token,
                };
                if let Some(record) = record {
                    self.keep(record);
                }
                Answer::Accepted
            }
            Wish::Keep(record) => {
                self.keep(record);
                Answer::Accepted
            }
            Wish::Rejoin(..) => Answer::Refused,
        }
    }
}

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

/// A value of the token: a version, and the one that it succeeds. The record's is the version that it was written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Version {
    pub(in super::super) id: u32,
    pub(in super::super) after: u32,
    /// The position in the chain.
    pub(in super::super) depth: u32,
    /// That of the last version with a record.
    pub(in super::super) recorded: u32,
}

/// What a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    ReadToken,
    ReadRecord,
    /// To swap the token.
    Swap,
    /// To swap the token, and write a record.
    End,
}

/// What a client is at.
#[derive(Debug, Clone)]
enum Doing {
    Nothing,
    /// The first round of a swap or of a read of two rounds.
    Preparing,
    /// The second; `swaps`: it writes a new version.
    Accepting {
        token: Token,
        swaps: bool,
    },
    /// A read of one round.
    Showing,
    /// The record that was read, to those who do not have it.
    Keeping(Record),
    /// A member rejoins, by what the others hold.
    Entering {
        member: usize,
        process: u64,
    },
    Rejoining,
}

/// The deepest version, and the last record, that are known to be chosen.
#[derive(Debug, Clone, Copy, Default)]
struct Floor {
    version: u32,
    record: Record,
}

struct Client {
    id: u64,
    doing: Doing,
    wants: Wanted,
    ballot: Ballot,
    highest: u64,
    /// `None`: it does not know any.
    generation: Option<u64>,
    /// The processes that it has last met.
    processes: Vec<u64>,
    /// The answer of each member, once.
    answers: Vec<(usize, Answer)>,
    round: u64,
    /// The deepest version, and the last record, that were known to be chosen when this began.
    floor: Floor,
    /// A swap that it has given up, and that may still be completed, with its ballot.
    unsettled: Option<(Version, Ballot)>,
}

/// What members hold of the token, and of the record.
type Columns = (Vec<Held<Token>>, Vec<Held<Record>>);

/// A message under way: a request, or an answer to a round of a client's.
#[derive(Clone)]
enum Message {
    Request {
        to: usize,
        from: usize,
        round: u64,
        request: Request,
    },
    Answer {
        to: usize,
        by: usize,
        round: u64,
        answer: Answer,
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
    members: Vec<Member>,
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
    /// The deepest version, and the last record, that any client knows to be chosen.
    chosen: Floor,
    /// The versions that clients know to be chosen, by their depth.
    chain: BTreeMap<u32, u32>,
    /// The versions that clients know to be none of the chain.
    dead: BTreeSet<u32>,
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
            promised: Ballot::default(),
            token: Held::default(),
            record: Held::default(),
        };
        let client = |id| Client {
            id,
            doing: Doing::Nothing,
            wants: Wanted::ReadToken,
            ballot: Ballot::default(),
            highest: 0,
            generation: Some(1),
            processes: (0..count).collect(),
            answers: Vec::new(),
            round: 0,
            floor: Floor::default(),
            unsettled: None,
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
            chosen: Floor::default(),
            chain: BTreeMap::new(),
            dead: BTreeSet::new(),
            counts: Counts::default(),
        }
    }

    /// Sends a wish to all members, or to one.
    fn send(&mut self, client: usize, only: Option<usize>, wish: &Wish) {
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
        if let Doing::Accepting { token, swaps: true } = own.doing {
            own.unsettled = token.version.map(|version| (version, own.ballot));
        }
        if self.random.below(4) > 0 {
            (own.generation, own.processes) = (Some(generation), processes);
        }
        own.floor = self.chosen;
        let what = self.random.below(10);
        let unsure: Vec<usize> = (0..self.members.len())
            .filter(|it| !self.members[*it].is_sure())
            .collect();
        own.wants = match what {
            0..2 => Wanted::ReadToken,
            2..4 => Wanted::ReadRecord,
            4..7 => Wanted::Swap,
            _ => Wanted::End,
        };
        if !unsure.is_empty() && self.random.below(10) < 4 {
            let member = unsure[self.random.below(unsure.len())];
            let process = self.members[member].process;
            // Drawn: two healers do not share one.
            own.generation = Some((generation / 8 + 1) * 8 + own.id);
            own.processes[member] = process;
            own.doing = Doing::Entering { member, process };
            self.send(client, None, &Wish::Enter);
        } else if matches!(own.wants, Wanted::ReadToken | Wanted::ReadRecord) {
            own.doing = Doing::Showing;
            // A process that has just started knows of no generation.
            let known = own.generation;
            own.generation = known.filter(|_| self.random.below(2) == 0);
            self.send(client, None, &Wish::Show);
            self.clients[client].generation = known;
        } else {
            self.prepare(client);
        }
    }

    /// Begins a first round.
    fn prepare(&mut self, client: usize) {
        let own = &mut self.clients[client];
        own.highest += 1 + self.random.next() % 2;
        own.ballot = Ballot {
            number: own.highest,
            client: own.id,
        };
        own.doing = Doing::Preparing;
        let wish = Wish::Prepare(own.ballot);
        self.send(client, None, &wish);
    }

    /// What members of one generation hold, if they are a majority.
    fn of_majority(&mut self, client: usize) -> Option<Columns> {
        let own = &mut self.clients[client];
        let (mut newest, mut met) = (None, own.highest);
        for (_, answer) in &own.answers {
            match answer {
                Answer::Holds(generation, token, record) => {
                    newest = newest.max(Some(*generation));
                    let accepted = token.accepted.number.max(record.accepted.number);
                    met = met.max(accepted);
                }
                Answer::Behind(ballot) => met = met.max(ballot.number),
                _ => {}
            }
        }
        own.highest = met;
        let all = !self.rules.have(Rule::OneGeneration);
        let held = own.answers.iter().filter_map(|(_, answer)| match answer {
            Answer::Holds(generation, token, record) if all || Some(*generation) == newest => {
                Some((token.clone(), record.clone()))
            }
            _ => None,
        });
        let (tokens, records): (Vec<_>, Vec<_>) = held.unzip();
        // It may have more answers than it needs.
        let waits = own.answers.len() < self.members.len() && self.random.below(4) == 0;
        (tokens.len() >= majority(self.members.len()) && !waits).then_some((tokens, records))
    }

    fn has_accepted(&self, client: usize) -> bool {
        let answers = self.clients[client].answers.iter();
        let accepted = answers.filter(|it| it.1 == Answer::Accepted).count();
        accepted >= majority(self.members.len())
    }

    /// A client goes on with the answers that it has.
    fn go_on(&mut self, client: usize) -> Result<(), String> {
        let (members, rules) = (self.members.len(), self.rules);
        match self.clients[client].doing.clone() {
            Doing::Nothing | Doing::Rejoining => {}
            Doing::Preparing => {
                let Some((tokens, records)) = self.of_majority(client) else {
                    return Ok(());
                };
                let newest = rules.newest(&tokens).unwrap();
                let chosen = rules.chosen(members, &tokens);
                let is_chosen = chosen.is_some_and(|it| it.accepted == newest.accepted);
                let mut token = newest.value;
                // The record goes on with a token that a majority may not have yet.
                let carries = token.with && !is_chosen && rules.have(Rule::Together);
                let carried = records.iter().max_by_key(|it| it.accepted).cloned();
                let mut record = carried.filter(|_| carries);
                let own = &mut self.clients[client];
                let swaps = matches!(own.wants, Wanted::Swap | Wanted::End);
                if swaps {
                    self.ids += 1;
                    let (after, depth, recorded) = token
                        .version
                        .map_or((0, 0, 0), |it| (it.id, it.depth, it.recorded));
                    let mut next = Version {
                        id: self.ids,
                        after,
                        depth: depth + 1,
                        recorded,
                    };
                    if own.wants == Wanted::End {
                        next.recorded = next.depth;
                        record = Some(Held {
                            accepted: own.ballot,
                            value: next.depth,
                        });
                    }
                    token.version = Some(next);
                }
                token.with = record.is_some();
                own.doing = Doing::Accepting { token, swaps };
                let wish = Wish::Accept(own.ballot, token, record);
                self.send(client, None, &wish);
            }
            Doing::Accepting { token, swaps } if self.has_accepted(client) => {
                let own = &mut self.clients[client];
                own.doing = Doing::Nothing;
                let chosen = Held {
                    accepted: own.ballot,
                    value: token,
                };
                self.known(client, &chosen, swaps)?;
            }
            Doing::Keeping(record) if self.has_accepted(client) => {
                self.clients[client].doing = Doing::Nothing;
                self.recorded(client, record)?;
            }
            Doing::Accepting { .. } | Doing::Keeping(_) => {}
            Doing::Showing => {
                let Some((tokens, records)) = self.of_majority(client) else {
                    return Ok(());
                };
                self.counts.reads += 1;
                if self.clients[client].wants == Wanted::ReadRecord {
                    let newest = records
                        .iter()
                        .max_by_key(|it| it.accepted)
                        .cloned()
                        .unwrap();
                    let has = |it: &&Held<Record>| it.accepted == newest.accepted;
                    if records.iter().filter(has).count() >= majority(members) {
                        self.clients[client].doing = Doing::Nothing;
                        return self.recorded(client, newest.value);
                    }
                    self.clients[client].doing = Doing::Keeping(newest.value);
                    self.send(client, None, &Wish::Keep(newest));
                    return Ok(());
                }
                let chosen = rules.chosen(members, &tokens);
                let shown = match rules.have(Rule::ShowsChosen) {
                    true => chosen,
                    false => chosen.and(rules.newest(&tokens)),
                };
                let own = &mut self.clients[client];
                let settles = |it: &&Held<Token>| {
                    let unsettled = own.unsettled.filter(|_| rules.have(Rule::LookSettles));
                    unsettled.is_none_or(|(_, ballot)| it.accepted >= ballot)
                };
                if let Some(shown) = shown.filter(settles) {
                    own.doing = Doing::Nothing;
                    self.known(client, shown, false)?;
                } else {
                    self.prepare(client);
                }
            }
            Doing::Entering { member, process } => {
                let needed = match rules.have(Rule::RejoinsByMajority) {
                    true => majority(members),
                    false => 1,
                };
                let own = &mut self.clients[client];
                let held = own.answers.iter().filter_map(|(_, answer)| match answer {
                    Answer::Holds(_, token, record) => Some((token.clone(), record.clone())),
                    _ => None,
                });
                let (tokens, records): (Vec<_>, Vec<_>) = held.unzip();
                if tokens.len() < needed {
                    return Ok(());
                }
                // The promises of the others bind them: rounds that counted one of this member's are of an older
                // generation.
                let token = tokens.into_iter().max_by_key(|it| it.accepted).unwrap();
                let record = records.into_iter().max_by_key(|it| it.accepted).unwrap();
                own.processes[member] = process;
                own.doing = Doing::Rejoining;
                self.send(client, Some(member), &Wish::Rejoin(token, record));
            }
        }
        Ok(())
    }

    /// A client knows that this record is chosen.
    fn recorded(&mut self, client: usize, record: Record) -> Result<(), String> {
        let floor = self.clients[client].floor.record;
        if record < floor {
            return Err(format!("record {record} is shown after {floor}"));
        }
        self.chosen.record = self.chosen.record.max(record);
        Ok(())
    }

    /// A client knows that this token is chosen.
    fn known(&mut self, client: usize, token: &Held<Token>, swapped: bool) -> Result<(), String> {
        let value = token.value.version;
        let depth = value.map_or(0, |it| it.depth);
        let floor = self.clients[client].floor.version;
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
            if self.dead.contains(&id) {
                return Err(format!("{id} of {value:?} is chosen after it was refused"));
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
        if let Some((given_up, _)) = self.clients[client].unsettled.take() {
            let happened = self.chain.get(&given_up.depth);
            if depth < given_up.depth || happened.is_some_and(|id| *id != given_up.id) {
                self.dead.insert(given_up.id);
            }
        }
        let recorded = value.map_or(0, |it| it.recorded);
        self.chosen.version = self.chosen.version.max(depth);
        self.chosen.record = self.chosen.record.max(recorded);
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
            (member.joined, member.generation) = (None, 0);
            (member.promised, member.token, member.record) = Default::default();
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
fn play(members: usize, rules: Rules, seeds: Range<u64>) -> (Counts, Option<String>) {
    let mut all = Counts::default();
    for seed in seeds {
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
        let (counts, violation) = play(members, Rules::default(), 0..SEEDS);
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
        Rule::Together,
        Rule::ShowsChosen,
        Rule::LookSettles,
    ] {
        let rules = Rules {
            without: Some(rule),
        };
        let (_, found) = play(3, rules, 0..SEARCHED);
        assert!(found.is_some(), "{rule:?}");
    }
    // It takes five members, and the first of these schedules that shows it is far.
    let rules = Rules {
        without: Some(Rule::OneGeneration),
    };
    let (_, found) = play(5, rules, 66_000..66_000 + SEARCHED);
    assert!(found.is_some());
}

/// Two members have the same value, of two rounds that were left half-way. The next round does not go on from it.
#[test]
fn equal_values_of_two_ballots_are_no_reading() {
    let version = |id| Version {
        id,
        after: 0,
        depth: 1,
        recorded: 0,
    };
    let token = |id| Token {
        version: Some(version(id)),
        with: false,
    };
    let ballot = |number| Ballot { number, client: 0 };
    for rules in [
        Rules::default(),
        Rules {
            without: Some(Rule::SameBallot),
        },
    ] {
        let mut members = World::new(3, rules, 0).members;
        let mut ask = |at: &[usize], wish: Wish| -> Vec<Held<Token>> {
            let asked = at.iter().filter_map(|index| {
                let member = &mut members[*index];
                let request = Request {
                    process: member.process,
                    generation: Some(1),
                    wish: wish.clone(),
                };
                match member.answer(&request, rules) {
                    Answer::Holds(_, token, _) => Some(token),
                    _ => None,
                }
            });
            asked.collect()
        };
        let accept = |number, id| Wish::Accept(ballot(number), token(id), None);
        ask(&[0, 1], Wish::Prepare(ballot(1)));
        ask(&[0], accept(1, 1));
        ask(&[1, 2], Wish::Prepare(ballot(2)));
        ask(&[1], accept(2, 2));
        let prepared = ask(&[0, 2], Wish::Prepare(ballot(3)));
        assert_eq!(rules.newest(&prepared).unwrap().value, token(1));
        ask(&[2], accept(3, 1));
        let shown = ask(&[0, 2], Wish::Show);
        let reading = rules.chosen(3, &shown).map(|held| held.value);
        assert_eq!(reading, rules.without.map(|_| token(1)));
        let prepared = ask(&[0, 1], Wish::Prepare(ballot(4)));
        assert_eq!(rules.newest(&prepared).unwrap().value, token(2));
    }
}
