//! The world of the simulation: true time, what is to happen, the store and the nodes.

use std::collections::{BTreeMap, BTreeSet};

use super::dice::Dice;
use super::happening::What;
use super::nodes::{Node, timing};
use super::processes::Process;
use super::waiting::SLEWED;
use crate::store::Retention;
use crate::store::model::{ModelData, Server};
use crate::token::WallTime;
use crate::token::{ClientId, ClockEpoch, QueueEntry, SessionId, Stamp, StoreTime};

#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) grants: u64,
    pub(super) takeovers: u64,
    pub(super) losses: u64,
    pub(super) jobs: u64,
    /// Jobs whose own process succeeded by itself.
    pub(super) successes: u64,
    /// Records that were pruned.
    pub(super) pruned: u64,
    /// How often the store has forgotten something.
    pub(super) forgotten: u64,
    /// The furthest that the store's wall clock was behind the clock of the last leap, in ms.
    pub(super) furthest_behind: u64,
}

pub(super) struct World {
    pub(super) dice: Dice,
    /// True time, in ms.
    pub(super) now: u64,
    sequence: u64,
    /// What is to happen, by its time and its sequence number.
    events: BTreeMap<(u64, u64), What>,
    pub(super) store: ModelData,
    /// The store some commits ago, with the fences granted since.
    pub(super) older: Vec<ModelData>,
    /// A backup of the store, to be restored.
    pub(super) backup: Option<ModelData>,
    /// How long records are kept; `None`: only the last few runs.
    pub(super) retention: Option<Retention>,
    /// When each fence was granted.
    pub(super) granted_at: BTreeMap<i64, u64>,
    pub(super) epoch: u64,
    /// The present server, and how many there were.
    pub(super) server: Server,
    pub(super) servers: u64,
    /// The last grant in another clock epoch than the grant before it.
    pub(super) last_leap_of_fence: u64,
    /// By how much the store's wall clock was set back since then, in ms.
    pub(super) behind: u64,
    pub(super) tick_offset: i64,
    pub(super) wall_offset: i64,
    /// True if this seed's store may lose commits; otherwise its wall clock may leap.
    pub(super) lossy: bool,
    pub(super) nodes: Vec<Node>,
    pub(super) processes: Vec<Process>,
    /// The processes whose job may be alive.
    pub(super) with_jobs: BTreeSet<usize>,
    /// The processes whose job was started.
    pub(super) ran: Vec<usize>,
    pub(super) healed: bool,
    pub(super) granted_since_heal: bool,
    pub(super) highest_fence: i64,
    /// Until when two jobs may be alive because of this session's job.
    pub(super) excused: BTreeMap<SessionId, u64>,
    /// True if steps are recorded: only for a seed that is known to fail, since recording is slow.
    traced: bool,
    steps: Vec<String>,
    /// Since when each waiter has sent its heartbeats often enough.
    pub(super) queued_since: BTreeMap<SessionId, u64>,
    /// The queue before the last swap.
    pub(super) queue_before: Vec<QueueEntry>,
    /// How long jobs last, in ms, and one in how many fails; otherwise both are random.
    pub(super) jobs_last: Option<(u64, u64, u64)>,
    pub(super) tally: Tally,
    pub(super) violation: Option<String>,
}

pub(super) const HEAL_AT: u64 = 400_000;
const END_AT: u64 = 800_000;

impl World {
    pub(super) fn new(seed: u64, traced: bool) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x1234_5678_9abc_def1));
        let clients = dice.within(2, 4);
        let expected = dice.one_in(3).then(|| ClientId::new("n0").unwrap());
        let failback = dice.one_in(2);
        let lossy = dice.one_in(2);
        // A lease longer than all before is not covered when its grant is forgotten.
        let takeover_after = (lossy && dice.one_in(2)).then(|| dice.within(20, 61));
        let nodes = (0..clients)
            .map(|n| Node {
                client: ClientId::new(&format!("n{n}")).unwrap(),
                // Clocks may be slewed: 8.3 % between two of them.
                rate_ppm: 1_000_000 - 1_000_000 / SLEWED + dice.within(0, 2_000_000 / SLEWED),
                timing: timing(&mut dice, lossy, takeover_after),
                expected: expected.clone(),
                failback,
                move_on_failure: dice.one_in(3),
                suspended: false,
                cut_off: false,
            })
            .collect();
        Self::of(dice, nodes, lossy, traced)
    }

    /// A world of these nodes, without planned events.
    pub(super) fn of(mut dice: Dice, nodes: Vec<Node>, lossy: bool, traced: bool) -> Self {
        let mut server = Server::named("s0");
        server.durable = !lossy || dice.one_in(2);
        let mut this = Self {
            dice,
            now: 0,
            sequence: 0,
            events: BTreeMap::new(),
            store: ModelData::default(),
            older: Vec::new(),
            backup: None,
            retention: None,
            granted_at: BTreeMap::new(),
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
            with_jobs: BTreeSet::new(),
            ran: Vec::new(),
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
                wall: WallTime(now + self.wall_offset),
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
            Err("no session got the token after the faults had ended".into())
        }
    }

    /// Runs all events until then.
    pub(super) fn pass_until(&mut self, end: u64) -> Result<(), String> {
        while let Some(next) = self.events.first_entry()
            && next.key().0 <= end
        {
            let ((at, _), what) = next.remove_entry();
            self.now = at;
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
}
