//! Nodes: their clocks, what they start, and what they can prove.

use std::collections::VecDeque;
use std::time::Duration;

use super::dice::Dice;
use super::happening::{Start, What};
use super::processes::Process;
use super::world::World;
use crate::moment::Moment;
use crate::run::machine::{Limits, Wait};
use crate::run::model::{Run, group, row_with_locks};
use crate::token::{About, Claim, ClientId, Evidence, Row, SessionId, Timing, Wishes};

#[derive(Debug)]
pub(super) struct Node {
    pub(super) client: ClientId,
    /// The rate of its clock, in millionths of true time.
    pub(super) rate_ppm: u64,
    pub(super) timing: Timing,
    pub(super) expected: Option<ClientId>,
    pub(super) failback: bool,
    pub(super) move_on_failure: bool,
    pub(super) suspended: bool,
    pub(super) cut_off: bool,
}

impl World {
    pub(super) fn moment(&self, process: usize) -> Moment {
        let p = &self.processes[process];
        let passed_ms = (self.now - p.born) * self.nodes[p.node].rate_ppm / 1_000;
        Moment(Duration::from_micros(passed_ms))
    }

    /// True milliseconds until a moment of a process's own clock; at least one.
    pub(super) fn until(&self, process: usize, at: Moment) -> u64 {
        let left = at.since(self.moment(process)).as_micros();
        let rate = u128::from(self.nodes[self.processes[process].node].rate_ppm);
        u64::try_from(left * 1_000 / rate).unwrap_or(u64::MAX / 4) + 1
    }

    /// A cron slot: a node starts the job's wrapper and plans the next slot.
    pub(super) fn slot(&mut self, node: usize) {
        let next = self.dice.within(2_000, 15_000);
        self.after(next, What::Slot(node));
        let running = self
            .processes
            .iter()
            .filter(|p| p.node == node && p.died_at.is_none())
            .count();
        if self.nodes[node].suspended || running >= 3 {
            return;
        }
        let start = Start {
            locks: !self.dice.one_in(3),
            wait: self.patience(),
            once_key: None,
        };
        self.start(node, start);
    }

    /// A node starts the job's wrapper.
    pub(super) fn start(&mut self, node: usize, start: Start) {
        let timing = self.nodes[node].timing;
        let index = self.processes.len();
        let claim = Claim {
            group: group(),
            client: self.nodes[node].client.clone(),
            session: SessionId::from_random(index as u128),
            expected: self.nodes[node].expected.clone(),
            failback: self.nodes[node].failback,
            nested_in: None,
            timing,
            about: About {
                program: "job".into(),
                once_key: start.once_key,
                move_on_failure: self.nodes[node].move_on_failure,
                ..About::default()
            },
        };
        let limits = Limits {
            locks: start.locks,
            wait: start.wait,
            ..Limits::default()
        };
        self.say(|| format!("p{index} starts on n{node} with {timing:?}"));
        self.processes.push(Process {
            node,
            run: Run::new(claim, limits),
            wait: limits.wait,
            born: self.now,
            fence: None,
            died_at: None,
            stopped: false,
            inbox: VecDeque::new(),
            guard_stopped: false,
            orders: VecDeque::new(),
            call: 0,
            out: None,
        });
        self.wake(index);
    }

    /// A waiting time: a few seconds, a minute, or unlimited.
    fn patience(&mut self) -> Wait {
        match self.dice.within(0, 6) {
            0 => Wait::For(Duration::from_millis(self.dice.within(0, 20_000))),
            1 => Wait::For(Duration::from_secs(60)),
            2 if !self.healed => Wait::Forever,
            _ => Wait::No,
        }
    }

    /// What the process's host can prove about the run in the row.
    pub(super) fn evidence(&self, process: usize, row: Option<&Row>) -> Evidence {
        let node = self.processes[process].node;
        let Some(row) = row_with_locks(row) else {
            return Evidence::None;
        };
        let of_row = |p: &&Process| Some(p.run.session()) == row.session();
        match self.processes.iter().rfind(of_row) {
            Some(p) if p.node == node => Evidence::of_locks(
                p.died_at.is_none(),
                p.run.guard.is_some() || p.run.job_alive(),
                vec!["job".into()],
            ),
            Some(_) | None => Evidence::None,
        }
    }
}

/// Durations that fit each other. At-least goes by the calendar, so only stores whose wall clock
/// does not leap have one.
pub(super) fn timing(dice: &mut Dice, steady: bool, takeover_after: Option<u64>) -> Timing {
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
