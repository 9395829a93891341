//! A week of a fleet: a thousand groups, each on three of fifty nodes, run every nine minutes. Nodes lose their power,
//! their network and their time, and are drained; the store goes away, restarts and forgets.
//!
//! Groups share nothing but their nodes and their store, so each has a world of its own, with the same troubles.
//! `TOKENRUN_GROUPS=1000 cargo test --lib simulation::week -- --nocapture` plays all of them, and prints how fast.

mod fleet;

use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use super::dice::Dice;
use super::happening::{Planned, Start, What};
use super::nodes::Node;
use super::world::World;
use crate::run::ending::{Ending, JobEnd};
use crate::run::machine::Wait;
use crate::store::Retention;
use crate::sys::wait::Status;
use crate::token::{ClientId, OutputLimits, Timing, Wishes};
use fleet::{Fleet, Kind, NODES, Trouble, WEEK};

/// How many groups there are if nothing else is asked for.
const BRIEF: u64 = 24;

const PERIOD: u64 = 9 * 60_000;

/// What happens in this time before a slot may still show in it: a run may have been late by the time of an observation, or
/// a holder silent.
const ECHO: u64 = 20 * 60_000;

/// A node starts an entry late by its clock, and by cron. Two differ by less than the head start.
const LATE: u64 = 7_000;
const CRON: u64 = 1_500;

/// How many nodes a group has.
const MEMBERS: u64 = 3;

/// A group in this week.
struct Group<'a> {
    seed: u64,
    fleet: &'a Fleet,
    world: World,
    /// The numbers of its nodes in the fleet.
    nodes: Vec<usize>,
    late: Vec<u64>,
    moves: bool,
    failback: bool,
    /// The process that ran last.
    last: Option<usize>,
    served: u64,
}

impl<'a> Group<'a> {
    fn new(seed: u64, fleet: &'a Fleet) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x5851_f42d_4c95_7f2d));
        let mut nodes: Vec<usize> = Vec::new();
        while nodes.len() < usize::try_from(MEMBERS).unwrap() {
            let node = usize::try_from(dice.within(0, NODES as u64)).unwrap();
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
        let (moves, failback) = match dice.within(0, 5) {
            0 => (true, false),
            1 => (false, true),
            _ => (false, false),
        };
        let client = |node: &usize| ClientId::new(&format!("n{node}")).unwrap();
        let of = |node: &usize| Node {
            client: client(node),
            rate_ppm: 999_500 + dice.within(0, 1_000),
            timing: Timing::new(&Wishes::default()).unwrap(),
            expected: failback.then(|| client(&nodes[0])),
            failback,
            move_on_failure: moves,
            suspended: false,
            cut_off: false,
        };
        let of_world = nodes.iter().map(of).collect();
        let late = nodes.iter().map(|_| dice.within(0, LATE)).collect();
        let lossy = dice.one_in(3);
        let mut world = World::of(dice, of_world, lossy, false);
        world.healed = true;
        world.jobs_last = Some((10, 180_000, 5));
        let hours = |hours: u64| Duration::from_secs(hours * 3_600);
        world.retention = Some(Retention {
            history: hours(12),
            once: hours(24),
            outputs: OutputLimits {
                retain: hours(6),
                count: 20,
            },
        });
        let (last, served) = (None, 0);
        Self {
            seed,
            fleet,
            world,
            nodes,
            late,
            moves,
            failback,
            last,
            served,
        }
    }

    fn at(&mut self, at: u64, planned: Planned) {
        let ms = at - self.world.now;
        self.world.after(ms, What::Planned(planned));
    }

    /// True if this trouble is one of this node, or of the store.
    fn meets(&self, trouble: &Trouble, member: usize) -> bool {
        let is_its = trouble.node.is_none_or(|it| it == self.nodes[member]);
        is_its && (self.world.lossy || !matches!(trouble.kind, Kind::Forgets(_)))
    }

    /// True if nothing goes wrong with a node of the group or with the store in this time.
    fn is_well(&self, member: usize, time: &Range<u64>) -> bool {
        let mut troubles = self.fleet.troubles.iter();
        !troubles
            .any(|it| it.at.start < time.end && time.start < it.at.end && self.meets(it, member))
    }

    fn is_off(&self, member: usize, at: u64) -> bool {
        let mut troubles = self.fleet.troubles.iter();
        troubles.any(|it| {
            it.kind == Kind::Off && it.at.contains(&at) && it.node == Some(self.nodes[member])
        })
    }

    /// True if the store forgets in this time, perhaps an act of an operator.
    fn forgets(&self, time: &Range<u64>) -> bool {
        let mut troubles = self.fleet.troubles.iter();
        troubles.any(|it| {
            let forgets = matches!(it.kind, Kind::Forgets(_));
            forgets && self.world.lossy && time.contains(&it.at.start)
        })
    }

    /// Plans what goes wrong in this time.
    fn plan(&mut self, time: &Range<u64>) {
        let fleet = self.fleet;
        for trouble in &fleet.troubles {
            if !time.contains(&trouble.at.start) {
                continue;
            }
            for node in 0..self.nodes.len() {
                if self.meets(trouble, node) {
                    self.plan_trouble(trouble, node);
                }
            }
        }
    }

    fn plan_trouble(&mut self, trouble: &Trouble, node: usize) {
        let Range { start, end } = trouble.at;
        match trouble.kind {
            Kind::Off => self.at(start, Planned::PowerOff(node)),
            Kind::Cut | Kind::Away => {
                self.at(start, Planned::Cut { node, cut: true });
                self.at(end, Planned::Cut { node, cut: false });
            }
            Kind::Suspended => {
                let ms = end - start;
                self.at(start, Planned::Suspend { node, ms });
            }
            Kind::Drained => self.at(start, Planned::Drain(node)),
            Kind::Restart(_) | Kind::Forgets(_) if node > 0 => {}
            // The fence of a store that forgets needs its clock.
            Kind::Restart(_) if self.world.lossy => self.at(start, Planned::Restart(0)),
            Kind::Restart(by) => self.at(start, Planned::Restart(by)),
            Kind::Forgets(how) => self.at(start, Planned::Forget(how)),
        }
    }

    /// Lets a slot pass, and checks who ran in it.
    fn slot(&mut self, due: u64) -> Result<(), String> {
        let time = due..due + PERIOD;
        self.plan(&time);
        for node in 0..self.nodes.len() {
            let at = due + self.late[node] + self.world.dice.within(0, CRON);
            if !self.is_off(node, at) {
                let start = Start {
                    wait: Wait::No,
                    locks: self.world.dice.one_in(2),
                    once_key: None,
                };
                self.at(at, Planned::Start { node, start });
            }
        }
        if self.world.dice.one_in(100) {
            self.at(due, Planned::Backup);
        }
        self.world.pass_until(time.end)?;
        let ran = std::mem::take(&mut self.world.ran);
        self.check(due, &ran)?;
        self.last = ran.last().copied().or(self.last);
        self.served += u64::from(!ran.is_empty());
        Ok(())
    }

    fn check(&self, due: u64, ran: &[usize]) -> Result<(), String> {
        let time = due.saturating_sub(ECHO)..due + PERIOD;
        let members = 0..self.nodes.len();
        let well: Vec<usize> = members.filter(|it| self.is_well(*it, &time)).collect();
        let nodes: Vec<usize> = ran
            .iter()
            .map(|it| self.world.processes[*it].node)
            .collect();
        if well.is_empty() {
            return Ok(());
        }
        let Some(node) = nodes.last().copied() else {
            return Err(format!("none ran, and {well:?} were well"));
        };
        let is_drained = self.fleet.troubles.iter().any(|it| {
            it.kind == Kind::Drained
                && it.node == Some(self.nodes[node])
                && it.at.contains(&due.saturating_sub(LATE))
                && !self.forgets(&(it.at.start..due))
        });
        // A failure moves it on, perhaps to the drained node, and a primary takes it back.
        let is_plain = !self.moves && !self.failback;
        let are_others_well = well.len() + 1 == self.nodes.len() && !well.contains(&node);
        if is_drained && is_plain && are_others_well {
            return Err(format!(
                "n{node} ran after its drain, and {well:?} were well"
            ));
        }
        if well.len() < self.nodes.len() {
            return Ok(());
        }
        if nodes.len() > 1 {
            return Err(format!("all were well, and {nodes:?} ran"));
        }
        let Some(last) = self.last else {
            return Ok(());
        };
        let (home, failed) = (self.world.processes[last].node, self.has_failed(last));
        match (self.moves && failed, self.failback) {
            (true, _) if node == home => Err(format!("n{node} ran again after its failure")),
            (false, false) if node != home => Err(format!("n{node} ran, and n{home} was well")),
            (_, true) if node != 0 && home == 0 => Err(format!("n{node} ran, and n0 was well")),
            _ => Ok(()),
        }
    }

    fn has_failed(&self, process: usize) -> bool {
        let ending = self.world.processes[process].run.machine.ending();
        let end = match ending {
            Some(Ending::Ran { end, .. }) => end,
            _ => return false,
        };
        !matches!(end, JobEnd::Itself(Status::Exited(0)))
    }

    fn week(&mut self) -> Result<(), String> {
        for due in (PERIOD..WEEK).step_by(usize::try_from(PERIOD).unwrap()) {
            let passed = self.slot(due);
            passed.map_err(|violation| {
                let Self { seed, nodes, moves, failback, .. } = self;
                format!(
                    "group {seed} on {nodes:?}, moves {moves}, failback {failback}, at {due}: {violation}"
                )
            })?;
        }
        Ok(())
    }
}

/// What the groups of a week have come to.
#[derive(Debug, Default)]
struct Sum {
    grants: u64,
    takeovers: u64,
    served: u64,
    pruned: u64,
    forgotten: u64,
}

impl Sum {
    fn of(seeds: Range<u64>, fleet: &Fleet) -> Result<Self, String> {
        let mut sum = Self::default();
        for seed in seeds {
            let mut group = Group::new(seed, fleet);
            group.week()?;
            let tally = &group.world.tally;
            sum.grants += tally.grants;
            sum.takeovers += tally.takeovers;
            sum.served += group.served;
            sum.pruned += tally.pruned;
            sum.forgotten += tally.forgotten;
        }
        Ok(sum)
    }

    fn and(self, other: &Self) -> Self {
        Self {
            grants: self.grants + other.grants,
            takeovers: self.takeovers + other.takeovers,
            served: self.served + other.served,
            pruned: self.pruned + other.pruned,
            forgotten: self.forgotten + other.forgotten,
        }
    }
}

#[test]
fn each_group_of_a_fleet_runs_once_a_slot_stays_and_moves_for_a_week() {
    let asked = std::env::var("TOKENRUN_GROUPS").ok();
    let groups = asked.map_or(BRIEF, |groups| groups.parse().unwrap());
    let fleet = Fleet::new(1);
    let began = Instant::now();
    let threads = thread::available_parallelism().map_or(1, usize::from) as u64;
    let sums: Vec<Sum> = thread::scope(|scope| {
        let share = |n: u64| n * groups / threads;
        let of = |n| {
            let (seeds, fleet) = (share(n)..share(n + 1), &fleet);
            scope.spawn(move || Sum::of(seeds, fleet))
        };
        let all: Vec<_> = (0..threads).map(of).collect();
        let all = all.into_iter().map(|it| it.join().unwrap().unwrap());
        all.collect()
    });
    let sum = sums.iter().fold(Sum::default(), Sum::and);
    let took = began.elapsed().as_secs_f64();
    let speed = sum.grants as f64 / took;
    println!("{groups} groups, a week: {sum:?} in {took:.1} s: {speed:.0} grants a second");
    // A simulation in which nothing happens proves nothing.
    let slots = groups * (WEEK / PERIOD - 1);
    assert!(sum.served > slots * 97 / 100, "{sum:?} of {slots}");
    assert!(sum.takeovers > groups * 8, "{sum:?}");
    assert!(sum.pruned > groups * 1_000, "{sum:?}");
    assert!(sum.forgotten > groups / 2, "{sum:?}");
}
