//! Every order of events around a cluster's clock, as far as small numbers go: elections, a leader that was frozen,
//! a snapshot and its restore, and two clients that look and commit.

use std::collections::HashSet;
use std::hash::BuildHasher as _;

use super::*;

/// takeover-after, in seconds.
const TAKEOVER: u8 = 3;

/// How far a search goes.
#[derive(Debug, Clone, Copy)]
struct Scenario {
    rules: Rules,
    /// The highest clock.
    clock: u8,
    /// The highest term.
    terms: u8,
    /// True if the cluster may be restored, once.
    restores: bool,
    /// How many looks there are, of both clients.
    looks: u8,
}

/// The longest log.
const LOG: u8 = 6;

/// The highest clock of a leader that was frozen.
const FROZEN: u8 = 4;

/// The log when the search begins. That of a restored cluster begins with 0.
const FIRST_LOG: u8 = 2;

/// Small numbers: a search keeps millions of worlds.
type Time = (Reign, u8);

/// [`Epoch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Reign {
    generation: u8,
    term: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Token {
    holder: Option<u8>,
    version: u8,
    stamp: Time,
}

/// The note of the generation that was seen last, and since when it is observed; never, if it has no past.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Note {
    generation: u8,
    since: Option<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Data {
    reign: Reign,
    seconds: u8,
    index: u8,
    /// The highest clock of a commit in this reign, whatever the store says.
    highest: u8,
    token: Token,
    note: Note,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Leader {
    term: u8,
    clock: u8,
}

/// A look that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Look {
    /// How long ago its first question was sent, at most [`TAKEOVER`].
    age: u8,
    /// The data, and the term of the read.
    read: Option<(Data, u8)>,
    /// The clock, and the log.
    clock: Option<(Leader, u8)>,
    is_late: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Client {
    look: Option<Look>,
    /// How long its job may still run.
    trust: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct World {
    leader: Leader,
    /// One that was frozen, and does not know that another was elected.
    frozen: Option<Leader>,
    log: u8,
    data: Data,
    snapshot: Option<Data>,
    restored: bool,
    /// How many generations were drawn.
    drawn: u8,
    /// How many looks may still begin.
    looks: u8,
    clients: [Client; 2],
}

impl Reign {
    fn epoch(self) -> Epoch {
        Epoch {
            generation: self.generation.into(),
            term: self.term.into(),
        }
    }

    fn of(epoch: Epoch) -> Self {
        Self {
            generation: epoch.generation.try_into().unwrap(),
            term: epoch.term.try_into().unwrap(),
        }
    }
}

impl Data {
    fn kept(&self) -> Kept {
        Kept {
            epoch: self.reign.epoch(),
            mark: mark(self.seconds, self.index),
        }
    }

    fn keep(&mut self, kept: Kept) {
        if Reign::of(kept.epoch) != self.reign {
            self.highest = 0;
        }
        self.reign = Reign::of(kept.epoch);
        self.seconds = kept.mark.seconds.try_into().unwrap();
        self.index = kept.mark.index.try_into().unwrap();
        self.highest = self.highest.max(self.seconds);
    }
}

fn mark(seconds: u8, index: u8) -> Mark {
    Mark {
        seconds: seconds.into(),
        index: index.into(),
    }
}

impl World {
    fn new(looks: u8) -> Self {
        let reign = Reign {
            generation: 1,
            term: 1,
        };
        let data = Data {
            reign,
            seconds: 0,
            index: FIRST_LOG,
            highest: 0,
            token: Token {
                holder: None,
                version: 0,
                stamp: (reign, 0),
            },
            note: Note {
                generation: 1,
                since: None,
            },
        };
        Self {
            leader: Leader { term: 1, clock: 0 },
            frozen: None,
            log: FIRST_LOG,
            data,
            snapshot: None,
            restored: false,
            drawn: 1,
            looks,
            clients: [Client::default(); 2],
        }
    }

    /// Every world that may come next.
    fn next(&self, scenario: &Scenario) -> Vec<Self> {
        let mut all = Vec::new();
        all.extend(self.ticked().filter(|it| it.leader.clock <= scenario.clock));
        all.extend(self.elected().filter(|it| it.leader.term <= scenario.terms));
        if scenario.restores && self.snapshot.is_none() && !self.restored {
            let snapshot = Some(self.data);
            all.push(Self { snapshot, ..*self });
        }
        all.extend(self.restore());
        all.extend(self.written_by_others());
        all.extend(self.committed_elsewhere(scenario.rules));
        for client in 0..2 {
            match self.clients[client].look {
                None if self.looks == 0 => {}
                None => {
                    let looks = self.looks - 1;
                    let next = self.with_look(client, Some(Look::default()));
                    all.push(Self { looks, ..next });
                }
                Some(look) => self.go_on(client, look, scenario.rules, &mut all),
            }
        }
        // The documented limit: a restored cluster that has come as far as the old one before any look.
        all.retain(|world| world.log <= LOG && world.shows_its_restore());
        all
    }

    fn with_look(&self, client: usize, look: Option<Look>) -> Self {
        let mut next = *self;
        next.clients[client].look = look;
        next
    }

    fn ticked(&self) -> Option<Self> {
        let mut next = *self;
        next.leader.clock += 1;
        if let Some(frozen) = &mut next.frozen {
            frozen.clock = (frozen.clock + 1).min(FROZEN);
        }
        for client in &mut next.clients {
            client.trust = client.trust.saturating_sub(1);
            if let Some(look) = &mut client.look {
                look.age = (look.age + 1).min(TAKEOVER);
            }
        }
        Some(next)
    }

    fn elected(&self) -> Option<Self> {
        Some(Self {
            leader: Leader {
                term: self.leader.term + 1,
                clock: 0,
            },
            frozen: Some(self.leader),
            log: self.log + 1,
            ..*self
        })
    }

    /// The cluster counts its terms and its log anew, and connections break.
    fn restore(&self) -> Option<Self> {
        let mut next = Self {
            leader: Leader { term: 1, clock: 0 },
            frozen: None,
            log: 0,
            data: self.snapshot?,
            snapshot: None,
            restored: true,
            ..*self
        };
        for client in &mut next.clients {
            client.look = None;
        }
        Some(next)
    }

    /// Other programs use the cluster too.
    fn written_by_others(&self) -> Option<Self> {
        let log = LOG / 2;
        (self.restored && self.log < log).then_some(Self { log, ..*self })
    }

    /// Another group's commit, whose look is as new as can be.
    fn committed_elsewhere(&self, rules: Rules) -> Option<Self> {
        let mut next = *self;
        let mut kept = self.data.kept();
        kept.mark = rules.marked(kept.mark, mark(self.leader.clock, self.log));
        next.data.keep(kept);
        next.log += 1;
        let is_usual = !self.restored && self.leader.term == self.data.reign.term;
        (is_usual && self.leader.clock > self.data.highest).then_some(next)
    }

    /// True if no restore is unnoticed, or it has a sign.
    fn shows_its_restore(&self) -> bool {
        let Leader { term, clock } = self.leader;
        let data = &self.data;
        !self.restored
            || data.reign.generation != 1
            || term < data.reign.term
            || self.log < data.index
            || (term == data.reign.term && i64::from(clock) < i64::from(data.highest) - SLACK)
    }

    fn go_on(&self, client: usize, look: Look, rules: Rules, all: &mut Vec<Self>) {
        if look.read.is_none() {
            let read = Some((self.data, self.leader.term));
            all.push(self.with_look(client, Some(Look { read, ..look })));
        }
        if look.clock.is_none() {
            for leader in [Some(self.leader), self.frozen].into_iter().flatten() {
                let clock = Some((leader, self.log));
                all.push(self.with_look(client, Some(Look { clock, ..look })));
            }
        }
        if let (Some((data, term)), Some((leader, log))) = (look.read, look.clock) {
            let sight = Sight {
                term: term.into(),
                term_of_clock: leader.term.into(),
                mark: mark(leader.clock, log),
                is_late: look.is_late,
            };
            all.push(self.judged(client, look, &data, &sight, rules));
        }
    }

    fn judged(&self, client: usize, look: Look, data: &Data, sight: &Sight, rules: Rules) -> Self {
        let over = self.with_look(client, None);
        match rules.judge(Some(data.kept()), sight, u64::from(self.drawn) + 1) {
            Judged::StartOver => over,
            Judged::AskLater => {
                let (clock, is_late) = (None, true);
                let look = Look {
                    clock,
                    is_late,
                    ..look
                };
                self.with_look(client, Some(look))
            }
            // Another has written it.
            Judged::Begins(_) if data.kept() != self.data.kept() => over,
            Judged::Begins(epoch) => {
                let mut next = over;
                next.log += 1;
                next.data
                    .keep(rules.begun(Some(data.kept()), epoch, sight.mark));
                next.drawn = next.drawn.max(next.data.reign.generation);
                next
            }
            Judged::Certain(epoch) => {
                self.committed(client, look, data, (sight.mark, epoch), rules)
            }
        }
    }

    fn committed(
        &self,
        client: usize,
        look: Look,
        data: &Data,
        (mark, epoch): (Mark, Epoch),
        rules: Rules,
    ) -> Self {
        let over = self.with_look(client, None);
        let own = u8::try_from(client).unwrap();
        let is_as_read =
            |now: &Data| (now.reign, now.token, now.note) == (data.reign, data.token, data.note);
        if !is_as_read(&self.data) {
            return over;
        }
        let now: Time = (Reign::of(epoch), mark.seconds.try_into().unwrap());
        let is_old = |since: Time| since.0 == now.0 && now.1.saturating_sub(since.1) >= TAKEOVER;
        let mut next = over;
        next.log += 1;
        let Note { generation, since } = data.note;
        let is_noted = generation == now.0.generation && since.is_none_or(|it| it.0 == now.0);
        let token = data.token;
        if token.holder != Some(own) && !is_noted {
            let (generation, since) = (now.0.generation, Some(now));
            next.data.note = Note { generation, since };
        } else {
            let is_open = token.holder.is_none() || is_old(token.stamp);
            let is_observed = since.is_none_or(is_old);
            if token.holder != Some(own) && !(is_observed && is_open) {
                return over;
            }
            next.data.token = Token {
                holder: Some(own),
                version: (token.version + 1) % 4,
                stamp: now,
            };
            next.clients[client].trust = TAKEOVER - look.age;
        }
        let mut kept = self.data.kept();
        kept.mark = rules.marked(kept.mark, mark);
        next.data.keep(kept);
        next
    }

    fn is_wrong(&self) -> Option<&'static str> {
        if self.clients.iter().all(|client| client.trust > 0) {
            return Some("two jobs");
        }
        (self.drawn > 1 + u8::from(self.restored)).then_some("a false sign")
    }
}

/// How many worlds there are; or what is wrong in one, and how it came to it.
fn search(scenario: &Scenario) -> Result<usize, (&'static str, Vec<World>)> {
    // Most of the time goes into hashes, so they are quick ones.
    let hasher = foldhash::quality::RandomState::default();
    let first = World::new(scenario.looks);
    let mut known = HashSet::<u64, foldhash::fast::RandomState>::default();
    known.insert(hasher.hash_one(first));
    let mut worlds = vec![(first, 0)];
    let mut at = 0;
    while let Some((world, _)) = worlds.get(at).copied() {
        if let Some(what) = world.is_wrong() {
            let mut path = vec![world];
            while at > 0 {
                at = worlds[at].1;
                path.push(worlds[at].0);
            }
            path.reverse();
            return Err((what, path));
        }
        for next in world.next(scenario) {
            if known.insert(hasher.hash_one(next)) {
                worlds.push((next, at));
            }
        }
        at += 1;
    }
    Ok(worlds.len())
}

const fn scenario(clock: u8, terms: u8, restores: bool, looks: u8) -> Scenario {
    Scenario {
        rules: Rules { without: None },
        clock,
        terms,
        restores,
        looks,
    }
}

/// Clients, elections and a leader that was frozen.
const ELECTIONS: Scenario = scenario(3, 2, false, 3);
/// Clients and a restore.
const RESTORE: Scenario = scenario(3, 1, true, 3);
/// All of it, for a shorter time.
const BOTH: Scenario = scenario(2, 2, true, 3);

#[test]
fn no_two_jobs_and_no_false_sign() {
    let shorter = |it: Scenario| Scenario {
        clock: it.clock - 1,
        ..it
    };
    for scenario in [shorter(ELECTIONS), RESTORE, shorter(BOTH)] {
        match search(&scenario) {
            Ok(worlds) => {
                println!("{worlds} worlds: {scenario:?}");
                assert!(worlds > 50_000, "{worlds}");
            }
            Err((what, path)) => panic!("{what}: {path:#?}"),
        }
    }
}

macro_rules! rules {
    ($($test:ident: $rule:ident, $scenario:ident, $says:literal;)+) => {
        $(#[test]
        fn $test() {
            let rules = Rules { without: Some(Rule::$rule) };
            let (what, path) = search(&Scenario { rules, ..$scenario }).expect_err("the rule is not needed");
            println!("without {:?}: {what} after {} steps", Rule::$rule, path.len() - 1);
            assert_eq!(what, $says);
        })+
    };
}

rules! {
    a_mark_rises: MarkRises, RESTORE, "two jobs";
    the_term_is_that_of_the_read: TermOfRead, ELECTIONS, "a false sign";
    the_clock_is_that_of_the_term: ClockOfTerm, ELECTIONS, "a false sign";
    a_term_that_falls_is_a_sign: TermRises, BOTH, "two jobs";
    a_log_that_shrinks_is_a_sign: LogGrows, RESTORE, "two jobs";
    a_clock_that_falls_is_a_sign: ClockRises, RESTORE, "two jobs";
    an_early_clock_is_no_sign: SignsAreLate, ELECTIONS, "a false sign";
    an_epoch_has_a_mark_of_its_own: EpochHasMark, ELECTIONS, "a false sign";
}
