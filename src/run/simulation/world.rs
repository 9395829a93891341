//! The world of the simulation: true time, the store, the network, the invariants.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use super::processes::{Node, Process};
use super::waiting::SLEWED;
use crate::run::event::Event;
use crate::run::machine::Wait;
use crate::store::Request;
use crate::store::model::{ModelData, Server};
use crate::store::{Reading, StoreError};
use crate::token::swap::EPOCH_FENCE_STEP;
use crate::token::{
    ClientId, ClockEpoch, Evidence, GroupName, OnceMark, QueueEntry, Row, SessionId, Stamp,
    StampOf, State, StoreTime, Swap, Swapped, Timing, Wishes,
};

/// Randomness that a seed repeats (SplitMix64, Steele, Lea and Flood 2014).
#[derive(Debug, Clone)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `low..high`.
    pub(super) fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low).max(1)
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
}

/// What is to happen at some time.
#[derive(Debug)]
pub(super) enum What {
    /// A cron slot on a node.
    Slot(usize),
    /// A process may be due.
    Wake(usize),
    /// A request reaches the store.
    Arrive {
        process: usize,
        call: u64,
        request: Box<Request>,
    },
    /// An answer reaches a process.
    Answer {
        process: usize,
        call: u64,
        event: Box<Event>,
    },
    /// The job's own process comes to its end.
    JobEnds(usize),
    /// What the job left behind comes to its end.
    TreeEnds(usize),
    Fault,
    Heal,
    Operator,
    Thaw(usize),
    Continue {
        process: usize,
        guard: bool,
    },
    /// What a plan holds for a certain time.
    Planned(Planned),
}

/// What happens because it was planned, and not by chance.
#[derive(Debug)]
pub(super) enum Planned {
    /// A node starts the job's wrapper.
    Start { node: usize, start: Start },
    /// A node is cut off from the store, or not any more.
    Cut { node: usize, cut: bool },
    /// A node loses its power.
    PowerOff(usize),
    /// The store has been started anew; its wall clock was set by so many ms.
    Restart(i64),
}

/// How a wrapper is started.
#[derive(Debug, Clone)]
pub(super) struct Start {
    pub(super) wait: Wait,
    pub(super) locks: bool,
    pub(super) once_key: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) grants: u64,
    pub(super) takeovers: u64,
    pub(super) losses: u64,
    pub(super) jobs: u64,
    /// Jobs whose own process ended well by itself.
    pub(super) successes: u64,
    /// The furthest that the store's wall clock was behind the one of the last leap, in ms.
    pub(super) furthest_behind: u64,
}

pub(super) struct World {
    pub(super) dice: Dice,
    /// True time, in ms.
    pub(super) now: u64,
    sequence: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: BTreeMap<(u64, u64), What>,
    pub(super) store: ModelData,
    /// ModelData some commits ago, with the fences granted since.
    pub(super) older: Vec<ModelData>,
    pub(super) epoch: u64,
    /// Which server has the store, and how many there were.
    pub(super) server: Server,
    pub(super) servers: u64,
    /// When a grant was last made in another clock epoch than the one before it.
    pub(super) last_leap_of_fence: u64,
    /// By how much the store's wall clock was set back since then, in ms.
    pub(super) behind: u64,
    pub(super) tick_offset: i64,
    pub(super) wall_offset: i64,
    /// Whether this seed's store may lose commits; else its wall clock may leap.
    pub(super) lossy: bool,
    pub(super) nodes: Vec<Node>,
    pub(super) processes: Vec<Process>,
    pub(super) healed: bool,
    granted_since_heal: bool,
    highest_fence: i64,
    /// Until when two jobs may be alive because of this session's.
    pub(super) excused: BTreeMap<SessionId, u64>,
    /// Whether steps are kept: only of a seed that is known to fail, for they cost time.
    traced: bool,
    steps: Vec<String>,
    /// Since when who waits has given a sign of life often enough.
    pub(super) queued_since: BTreeMap<SessionId, u64>,
    /// The line before the last swap.
    pub(super) queue_before: Vec<QueueEntry>,
    /// How long jobs last, in ms, and one in how many fails; else both are left to chance.
    pub(super) jobs_last: Option<(u64, u64, u64)>,
    pub(super) tally: Tally,
    pub(super) violation: Option<String>,
}

pub(super) const HEAL_AT: u64 = 400_000;
const END_AT: u64 = 800_000;

/// History is pruned to this length: nobody reads further back here.
const RUNS_KEPT: usize = 20;

pub(super) fn group() -> GroupName {
    GroupName::new("g").unwrap()
}

impl World {
    pub(super) fn new(seed: u64, traced: bool) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x1234_5678_9abc_def1));
        let clients = dice.within(2, 4);
        let expected = dice.one_in(3).then(|| ClientId::new("n0").unwrap());
        let failback = dice.one_in(2);
        let lossy = dice.one_in(2);
        // A lease that is longer than any before is covered by nothing when its grant is forgotten.
        let takeover_after = (lossy && dice.one_in(2)).then(|| dice.within(20, 61));
        let nodes = (0..clients)
            .map(|n| Node {
                client: ClientId::new(&format!("n{n}")).unwrap(),
                // Clocks may be slewed: 8.3 % between two of them.
                rate_ppm: 1_000_000 - 1_000_000 / SLEWED + dice.within(0, 2_000_000 / SLEWED),
                timing: timing(&mut dice, lossy, takeover_after),
                expected: expected.clone(),
                failback,
                suspended: false,
                cut_off: false,
            })
            .collect();
        Self::of(dice, nodes, lossy, traced)
    }

    /// A world of these nodes, in which nothing has been planned yet.
    pub(super) fn of(mut dice: Dice, nodes: Vec<Node>, lossy: bool, traced: bool) -> Self {
        let mut server = Server::named("s0");
        server.durable = !lossy || dice.one_in(2);
        let mut this = Self {
            dice,
            now: 0,
            sequence: 0,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            store: ModelData::default(),
            older: Vec::new(),
            epoch: 0,
            server,
            servers: 1,
            last_leap_of_fence: 0,
            behind: 0,
            tick_offset: 5_000_000,
            wall_offset: 1_790_000_000_000,
            lossy,
            nodes,
            processes: Vec::new(),
            healed: false,
            granted_since_heal: false,
            highest_fence: 0,
            excused: BTreeMap::new(),
            traced,
            steps: Vec::new(),
            queued_since: BTreeMap::new(),
            queue_before: Vec::new(),
            jobs_last: None,
            tally: Tally::default(),
            violation: None,
        };
        this.store = ModelData::made(&this.server, &this.store_time());
        this
    }

    pub(super) fn store_time(&self) -> StoreTime {
        let now = i64::try_from(self.now).unwrap();
        StoreTime {
            epoch: ClockEpoch(format!("d{}", self.epoch)),
            stamp: Stamp {
                tick_ms: now + self.tick_offset,
                wall_ms: now + self.wall_offset,
            },
        }
    }

    pub(super) fn say(&mut self, step: impl FnOnce() -> String) {
        if !self.traced {
            return;
        }
        let now = self.now;
        self.steps
            .push(format!("{:>9.3} {}", now as f64 / 1000.0, step()));
    }

    pub(super) fn last_steps(&self) -> String {
        self.steps.join("\n")
    }

    pub(super) fn violated(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    pub(super) fn after(&mut self, ms: u64, what: What) {
        self.sequence += 1;
        let key = (self.now + ms, self.sequence);
        self.queue.push(Reverse(key));
        self.events.insert(key, what);
    }

    pub(super) fn run(&mut self) -> Result<(), String> {
        for node in 0..self.nodes.len() {
            let first = self.dice.within(0, 5_000);
            self.after(first, What::Slot(node));
        }
        self.after(1_000, What::Fault);
        self.after(3_000, What::Operator);
        self.after(HEAL_AT, What::Heal);
        self.pass_until(END_AT)?;
        if self.granted_since_heal {
            Ok(())
        } else {
            Err("nobody got the token after the faults had ended".into())
        }
    }

    /// Lets everything happen until then.
    pub(super) fn pass_until(&mut self, end: u64) -> Result<(), String> {
        while self.queue.peek().is_some_and(|Reverse(key)| key.0 <= end) {
            let Some(Reverse(key)) = self.queue.pop() else {
                break;
            };
            self.now = key.0;
            let what = self.events.remove(&key).unwrap();
            self.happen(what);
            self.check_overlap();
            if let Some(violation) = self.violation.take() {
                return Err(violation);
            }
        }
        self.now = end;
        Ok(())
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Slot(node) => self.slot(node),
            What::Wake(process) => self.wake(process),
            What::Arrive {
                process,
                call,
                request,
            } => self.arrive(process, call, &request),
            What::Answer {
                process,
                call,
                event,
            } => self.answer(process, call, *event),
            What::JobEnds(process) => self.job_ends(process),
            What::TreeEnds(process) => self.tree_ends(process),
            What::Fault => self.fault(),
            What::Heal => self.heal(),
            What::Operator => self.operator(),
            What::Thaw(node) => self.thaw(node),
            What::Continue { process, guard } => self.carry_on(process, guard),
            What::Planned(planned) => self.planned(planned),
        }
    }

    /// A process sends a request: it may be lost, late, or answered in vain.
    pub(super) fn send(&mut self, process: usize, call: u64, request: Request) {
        let timing = self.processes[process].machine.claim().timing;
        let timeout = u64::try_from(timing.store_timeout.as_millis()).unwrap();
        let error = Event::failed(&request);
        self.after(
            timeout,
            What::Answer {
                process,
                call,
                event: Box::new(error),
            },
        );
        let node = self.processes[process].node;
        if self.nodes[node].cut_off || (!self.healed && self.dice.one_in(20)) {
            return self.say(|| format!("p{process} call {call} is lost on its way"));
        }
        let delay = self.delay(timeout);
        self.after(
            delay,
            What::Arrive {
                process,
                call,
                request: Box::new(request),
            },
        );
    }

    /// Mostly fast, sometimes later than the sender waits.
    fn delay(&mut self, timeout: u64) -> u64 {
        if !self.healed && self.dice.one_in(12) {
            self.dice.within(0, 4 * timeout)
        } else {
            self.dice.within(0, 20)
        }
    }

    fn arrive(&mut self, process: usize, call: u64, request: &Request) {
        let now = self.store_time();
        let event = match request {
            Request::Leave(group, session) => {
                self.store.leave(group, session);
                Event::Left(Ok(()))
            }
            Request::Read(group) | Request::Join(group, ..) => {
                if let Request::Join(_, waiter, expiry) = request {
                    self.join(process, waiter, expiry, &now);
                }
                let row = self.store.rows.get(group).cloned();
                let evidence = self.evidence(process, row.as_ref());
                let reading = Reading {
                    row,
                    now,
                    queue: self.store.queue_of(group),
                    memory: self.store.memory(&self.server),
                };
                Event::Looked(Ok((Box::new(reading), evidence)))
            }
            Request::Swap(swap) => Event::Swapped(Ok(self.swap(process, swap, &now))),
            Request::Note(swap) => {
                let saved = self.lossy.then(|| self.store.clone());
                let swapped = self.store.note(swap, &now);
                self.say(|| format!("p{process} notes {:?}: {swapped:?}", swap.to));
                if matches!(swapped, Swapped::Done(_)) {
                    self.committed(saved);
                }
                Event::Swapped(Ok(swapped))
            }
            Request::Once { group, key } => {
                let done = |mark: &&OnceMark| mark.group == *group && mark.key == *key;
                let mark = self.store.marks.iter().find(done).cloned();
                Event::OnceLooked(Ok(mark.map(Box::new)))
            }
            Request::Prune { .. } => Event::Tick,
            Request::Record(run) => Event::Recorded(Ok(self.store.record(run, &now))),
        };
        let node = self.processes[process].node;
        if self.nodes[node].cut_off || (!self.healed && self.dice.one_in(20)) {
            return self.say(|| format!("p{process} call {call}: its answer is lost"));
        }
        let delay = self.delay(2_000);
        self.after(
            delay,
            What::Answer {
                process,
                call,
                event: Box::new(event),
            },
        );
    }

    fn swap(&mut self, process: usize, swap: &Swap, now: &StoreTime) -> Swapped {
        let before = self.store.rows.get(&swap.to.group).cloned();
        let saved = self.lossy.then(|| self.store.clone());
        self.queue_before = self.store.queue_of(&swap.to.group);
        let swapped = self.store.swap(swap, now);
        self.say(|| {
            let (stamp, version) = (swap.stamp, swap.to.version.number() % 100_000);
            let fence = swap.to.fence;
            let answer = match &swapped {
                Swapped::Done(_) => "done",
                Swapped::Conflict => "conflict",
                Swapped::Expired(_) => "expired",
            };
            format!("p{process} swap {stamp:?} v{version} fence {fence}: {answer}")
        });
        if matches!(swapped, Swapped::Done(_)) {
            self.committed(saved);
            let old = self.store.runs.len().saturating_sub(RUNS_KEPT);
            self.store.runs.drain(..old);
            self.check_swap(process, swap, before.as_ref(), now);
        }
        swapped
    }

    /// Keeps what the store held before its last commits, for a failover to lose them.
    pub(super) fn committed(&mut self, before: Option<ModelData>) {
        self.older.extend(before);
        if self.older.len() > 3 {
            self.older.remove(0);
        }
    }

    fn check_swap(&mut self, process: usize, swap: &Swap, before: Option<&Row>, now: &StoreTime) {
        let session = self.processes[process].machine.claim().session.clone();
        match swap.stamp {
            Some(StampOf::Granted) => self.check_grant(process, swap, before, now),
            Some(StampOf::Heartbeat) => {
                if before.and_then(Row::session) != Some(&session) {
                    self.violated(format!(
                        "p{process}'s heartbeat overwrote another session's grant"
                    ));
                }
            }
            Some(StampOf::Released) => {
                if self.processes[process].job_alive() {
                    self.violated(format!("p{process} released while its job was alive"));
                }
            }
            Some(StampOf::Created) | None => {}
        }
    }

    fn check_grant(&mut self, process: usize, swap: &Swap, before: Option<&Row>, now: &StoreTime) {
        self.tally.grants += 1;
        self.granted_since_heal |= self.healed;
        let fence = swap.to.fence.0;
        if fence <= self.highest_fence {
            let highest = self.highest_fence;
            self.violated(format!("fence {fence} was granted after {highest}"));
        }
        self.highest_fence = fence;
        let other_epoch = |row: &Row| row.document.granted_epoch.as_ref() != Some(&now.epoch);
        let leaps = fence >= now.stamp.wall_ms + EPOCH_FENCE_STEP;
        if leaps || before.is_none_or(other_epoch) {
            self.last_leap_of_fence = self.now;
            self.behind = 0;
        }
        let timing = self.processes[process].machine.claim().timing;
        if let Some(died) = self.processes[process].died_at {
            let timeout = u64::try_from(timing.store_timeout.as_millis()).unwrap();
            if self.now > died + timeout {
                self.violated(format!(
                    "the token was granted to p{process}, a dead process"
                ));
            }
        }
        let Some(before) = before else { return };
        // A pause that ends by the calendar may end between the look and the
        // swap, and begin again when the wall clock leaps.
        if before
            .document
            .paused
            .as_ref()
            .is_some_and(|p| p.until_wall_ms.is_none())
        {
            self.violated(format!("p{process} was granted a paused token"));
        }
        self.check_queue(process, before, now);
        let acquired = before
            .acquired_at()
            .zip(before.document.granted_epoch.as_ref());
        let age = acquired.and_then(|(at, epoch)| now.age_of(at, Some(epoch)));
        if age.is_some_and(|age| age < before.document.not_before) {
            self.violated(format!(
                "p{process} was granted a token within its --at-least"
            ));
        }
        let client = &self.processes[process].machine.claim().client;
        if before.client_bound().is_some_and(|bound| bound != client) {
            self.tally.takeovers += 1;
        }
        if let State::Idle { client: bound } = &before.state {
            let young = before
                .age(now)
                .is_some_and(|age| age < before.document.keep);
            let handed = before
                .document
                .handoff
                .as_ref()
                .is_some_and(|h| h.to == *client);
            let waited = swap.leaves.is_some();
            if bound != client && young && !handed && !waited {
                self.violated(format!(
                    "p{process} was granted a token whose slot has just run"
                ));
            }
        }
        if before.session().is_some() {
            self.tally.losses += 1;
        }
    }

    /// The invariant: never two jobs alive at once.
    fn check_overlap(&mut self) {
        let mut alive = Vec::new();
        for (index, process) in self.processes.iter().enumerate() {
            if process.job_alive() && !self.nodes[process.node].suspended {
                alive.push(index);
            }
        }
        for (i, one) in alive.iter().enumerate() {
            for other in &alive[i + 1..] {
                let excused = [one, other].iter().any(|p| {
                    let session = &self.processes[**p].machine.claim().session;
                    self.excused
                        .get(session)
                        .is_some_and(|until| self.now <= *until)
                });
                if !excused {
                    self.violated(format!("two jobs are alive: p{one}'s and p{other}'s"));
                }
            }
        }
    }

    /// What the process's host can prove about the run in the row.
    pub(super) fn evidence(&self, process: usize, row: Option<&Row>) -> Evidence {
        let node = self.processes[process].node;
        let Some(row) = row.filter(|row| row.run().is_some_and(|run| run.lock_file.is_some()))
        else {
            return Evidence::None;
        };
        let runs = |p: &&Process| Some(&p.machine.claim().session) == row.session();
        match self.processes.iter().find(runs) {
            Some(run) if run.node == node => Evidence::of_locks(
                run.died_at.is_none(),
                run.guard.is_some() || run.job_alive(),
                vec!["job".into()],
            ),
            Some(_) | None => Evidence::None,
        }
    }
}

/// Durations that fit each other. At-least goes by the calendar, so only stores
/// whose wall clock does not leap have one.
fn timing(dice: &mut Dice, steady: bool, takeover_after: Option<u64>) -> Timing {
    let seconds = |n| Some(Duration::from_secs(n));
    let keep = [0, 10, 30][usize::try_from(dice.within(0, 3)).unwrap()];
    let at_least = if steady && dice.one_in(6) { 40 } else { 0 };
    Timing::new(&Wishes {
        heartbeat: seconds(dice.within(2, 5)),
        takeover_after: seconds(takeover_after.unwrap_or_else(|| dice.within(20, 61))),
        keep: seconds(keep),
        head_start: seconds(dice.within(0, 6)),
        at_least: seconds(at_least),
        kill_grace: seconds(dice.within(1, 4)),
        store_timeout: seconds(dice.within(1, 4)),
    })
    .unwrap()
}

impl Event {
    /// What a process is told when a request was not answered in time.
    fn failed(request: &Request) -> Self {
        let error = StoreError::unavailable("no answer");
        match request {
            Request::Read(_) | Request::Join(..) => Self::Looked(Err(error)),
            Request::Leave(..) => Self::Left(Err(error)),
            Request::Swap(_) | Request::Note(_) => Self::Swapped(Err(error)),
            Request::Once { .. } => Self::OnceLooked(Err(error)),
            Request::Prune { .. } => Self::Tick,
            Request::Record(_) => Self::Recorded(Err(error)),
        }
    }
}
