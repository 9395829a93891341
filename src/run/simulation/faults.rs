//! Faults, and acts of operators.

use super::happening::{Forgetting, Planned, What};
use super::processes::Process;
use super::world::World;
use crate::run::model::group;
use crate::store::model::ModelData;
use crate::token::WallTime;
use crate::token::operator::{Act, Effect, perform};
use crate::token::swap::EPOCH_FENCE_STEP;
use crate::token::{Incarnation, Others, Pause, Row, Version};

use std::time::Duration;

impl World {
    pub(super) fn fault(&mut self) {
        if self.healed {
            return;
        }
        let next = self.dice.within(500, 12_000);
        self.after(next, What::Fault);
        match self.dice.within(0, 12) {
            0 | 1 => self.kill_supervisor(),
            2 => self.kill_guard(),
            3 | 4 => self.stop_one(false),
            5 => self.stop_one(true),
            6 => self.suspend(),
            7 => self.power_off(),
            8 | 9 => self.cut_or_mend(),
            10 => self.new_epoch(),
            _ => self.lose_commits_or_leap(),
        }
    }

    /// Picks a process whose supervisor and guard are both alive and running: hitting both
    /// processes of a run at once is a documented limit, not a bug to be found.
    fn pick(&mut self) -> Option<usize> {
        let sound: Vec<usize> = (0..self.processes.len())
            .filter(|i| {
                let p = &self.processes[*i];
                let guard = p.run.guard.is_some() && !p.guard_stopped;
                p.died_at.is_none() && !p.stopped && guard && !self.nodes[p.node].suspended
            })
            .collect();
        let one = self.dice.next();
        (!sound.is_empty()).then(|| sound[usize::try_from(one % sound.len() as u64).unwrap()])
    }

    fn kill_supervisor(&mut self) {
        if let Some(process) = self.pick() {
            self.say(|| format!("p{process}'s supervisor is killed"));
            self.supervisor_dies(process);
        }
    }

    fn kill_guard(&mut self) {
        if let Some(process) = self.pick() {
            self.say(|| format!("p{process}'s guard is killed"));
            self.guard_dies(process);
        }
    }

    fn stop_one(&mut self, guard: bool) {
        let Some(process) = self.pick() else { return };
        self.say(|| format!("p{process} is stopped (its guard: {guard})"));
        if guard {
            self.processes[process].guard_stopped = true;
        } else {
            self.processes[process].stopped = true;
        }
        let length = self.dice.within(100, 90_000);
        self.after(length, What::Continue { process, guard });
    }

    fn suspend(&mut self) {
        let node = self.any_node();
        // With a stopped guard that would hit both processes of a run.
        let is_unguarded = |it: &Process| it.node == node && it.guard_stopped && it.run.job_alive();
        if self.processes.iter().any(is_unguarded) {
            return;
        }
        let length = self.dice.within(100, 90_000);
        self.suspend_node(node, length);
    }

    fn suspend_node(&mut self, node: usize, ms: u64) {
        if self.nodes[node].suspended {
            return;
        }
        self.say(|| format!("n{node} is suspended"));
        self.nodes[node].suspended = true;
        self.after(ms, What::Thaw(node));
    }

    pub(super) fn thaw(&mut self, node: usize) {
        self.say(|| format!("n{node} wakes up"));
        self.nodes[node].suspended = false;
        for process in 0..self.processes.len() {
            if self.processes[process].node == node {
                self.catch_up(process);
            }
        }
    }

    fn power_off(&mut self) {
        let node = self.any_node();
        self.power_off_node(node);
    }

    /// Carries out a planned event.
    pub(super) fn planned(&mut self, planned: Planned) {
        self.say(|| format!("as planned: {planned:?}"));
        match planned {
            Planned::Start { node, start } => self.start(node, start),
            Planned::Cut { node, cut } => self.nodes[node].cut_off = cut,
            Planned::PowerOff(node) => self.power_off_node(node),
            Planned::Suspend { node, ms } => self.suspend_node(node, ms),
            Planned::Backup => self.backup = Some(self.store.clone()),
            Planned::Forget(how) => self.forget(how),
            Planned::Drain(node) => self.drain(node),
            Planned::Restart(set_by) => {
                self.epoch += 1;
                self.tick_offset = i64::try_from(self.dice.within(0, 20_000_000)).unwrap();
                self.wall_offset += set_by;
            }
        }
    }

    fn power_off_node(&mut self, node: usize) {
        self.say(|| format!("n{node} loses its power"));
        for process in 0..self.processes.len() {
            if self.processes[process].node == node {
                self.vanish(process);
            }
        }
    }

    fn any_node(&mut self) -> usize {
        let count = self.nodes.len() as u64;
        usize::try_from(self.dice.within(0, count)).unwrap()
    }

    fn cut_or_mend(&mut self) {
        let node = self.any_node();
        let cut = !self.nodes[node].cut_off;
        self.say(|| format!("n{node} is cut off from the store: {cut}"));
        self.nodes[node].cut_off = cut;
    }

    /// The store's clock restarts: a restart, a reboot, a failover. The wall clock may be behind.
    fn new_epoch(&mut self) {
        let Some(left) = self.may_be_behind() else {
            return;
        };
        self.epoch += 1;
        self.tick_offset = i64::try_from(self.dice.within(0, 20_000_000)).unwrap();
        let behind = self.dice.within(0, left.min(45_000));
        if self.lossy {
            self.wall_offset -= i64::try_from(behind).unwrap();
            self.behind += behind;
            let furthest = &mut self.tally.furthest_behind;
            *furthest = (*furthest).max(self.behind);
        }
        self.say(|| "the store has another clock".to_owned());
    }

    /// How much further behind the next clock may be, in ms, if the fence is to rise (docs/limits.md):
    /// less than a minute for all failovers without a grant in between, and less than the
    /// time since the first grant after the last failover. `None`: no failover yet.
    fn may_be_behind(&self) -> Option<u64> {
        if !self.lossy {
            return Some(EPOCH_FENCE_STEP.unsigned_abs());
        }
        let passed = self.now - self.last_leap_of_fence;
        let covered = EPOCH_FENCE_STEP.unsigned_abs().min(passed);
        // The grants of one clock epoch may be ahead of the clock by their number.
        covered.checked_sub(self.behind + 100)
    }

    fn lose_commits_or_leap(&mut self) {
        if !self.lossy {
            let day = 86_400_000;
            let leap = if self.dice.one_in(2) { day } else { -day };
            self.say(|| format!("the store's wall clock leaps by {leap} ms"));
            self.wall_offset += leap;
            return;
        }
        let how = match self.dice.within(0, 8) {
            0 | 1 => Forgetting::Wipe,
            2 => Forgetting::Restore,
            3 | 4 if !self.server.durable => Forgetting::Crash,
            _ => Forgetting::Failover,
        };
        self.forget(how);
        if self.dice.one_in(3) {
            self.backup = Some(self.store.clone());
        }
    }

    /// The store loses commits, unless that is more than is promised to be harmless.
    pub(super) fn forget(&mut self, how: Forgetting) {
        let back = usize::try_from(self.dice.within(1, 4)).unwrap();
        let older = self.older.len().checked_sub(back);
        let left = match how {
            Forgetting::Wipe => Some(ModelData::default()),
            Forgetting::Restore => self.backup.clone(),
            Forgetting::Crash | Forgetting::Failover => older.map(|at| self.older[at].clone()),
        };
        let Some(left) = left.filter(|left| self.covers(left)) else {
            return;
        };
        if self.may_be_behind().is_none() {
            return;
        }
        let lost = std::mem::replace(&mut self.store, left);
        self.older.clear();
        self.tally.forgotten += 1;
        self.say(|| format!("the store loses commits: {how:?}, {back} back"));
        match how {
            Forgetting::Crash => {}
            Forgetting::Failover => self.become_another(Some(&lost)),
            Forgetting::Wipe | Forgetting::Restore => self.become_another(None),
        }
        self.new_epoch();
    }

    /// A promotion: to a server that has not been the store yet, or to an earlier one, as long as
    /// the note of the one in between is not lost with its commits.
    fn become_another(&mut self, lost: Option<&ModelData>) {
        let (now, count) = (self.server.incarnation.0.clone(), self.servers);
        let mut next = count;
        if let Some(lost) = lost.filter(|_| count > 1 && self.dice.one_in(3)) {
            next = self.dice.within(0, count);
            self.store.keep_notes(lost);
        }
        if format!("s{next}") == now {
            next = count;
        }
        self.servers = count.max(next + 1);
        self.server.incarnation = Incarnation(format!("s{next}"));
        self.say(|| format!("the store is s{next} now"));
    }

    /// True if no lease in force is longer than every lease that the remaining store, and the runs
    /// that come to it, know of (docs/limits-of-stores.md).
    fn covers(&self, left: &ModelData) -> bool {
        let row = left.rows.get(&group());
        let longest = row.map(|row| row.document.longest_takeover_after);
        let asked = self.nodes.iter().map(|node| node.timing.takeover_after);
        let known = longest.max(asked.min()).unwrap_or_default();
        let mut processes = self
            .processes
            .iter()
            .filter(|process| process.run.job_alive());
        processes.all(|p| p.run.claim().timing.takeover_after <= known)
    }

    pub(super) fn operator(&mut self) {
        if self.healed {
            return;
        }
        let next = self.dice.within(3_000, 40_000);
        self.after(next, What::Operator);
        let until = self
            .dice
            .one_in(2)
            .then(|| self.store_time().stamp.wall.0 + 15_000);
        let some_client = self.any_node();
        let client = self.nodes[some_client].client.clone();
        let act = match self.dice.within(0, 9) {
            0 => Act::Pause(Pause {
                by: "operator".into(),
                reason: "because".into(),
                until: until.map(WallTime),
                other: Others::new(),
            }),
            1 | 2 => Act::Resume(None),
            3 => Act::Handoff(client),
            4 => Act::Expect(Some(client)),
            5 => Act::Revoke,
            6 => Act::Away,
            7 => Act::Release { force: false },
            _ => Act::Release { force: true },
        };
        self.perform(&act);
    }

    /// The group moves away from this node, if it is bound there.
    fn drain(&mut self, node: usize) {
        let row = self.store.rows.get(&group());
        if row.and_then(Row::client_bound) == Some(&self.nodes[node].client) {
            self.perform(&Act::Away);
        }
    }

    fn perform(&mut self, act: &Act) {
        let now = self.store_time();
        let version = Version::from_random(self.dice.next());
        let Some(row) = self.store.rows.get(&group()).cloned() else {
            return;
        };
        let Effect::Swap { swap, old_job_for } =
            perform(act, &row, &now, Duration::from_secs(1), version)
        else {
            return;
        };
        self.say(|| format!("an operator does {act:?}; an old job may run for {old_job_for:?}"));
        let before = self.lossy.then(|| self.store.clone());
        self.committed(before);
        self.store.swap(&swap, &now);
        if let (Act::Release { .. }, Some(session)) = (act, row.session()) {
            let until = self.now + u64::try_from(old_job_for.as_millis()).unwrap();
            self.excused.insert(session.clone(), until);
        }
    }

    pub(super) fn heal(&mut self) {
        self.healed = true;
        if !self.lossy {
            self.wall_offset = 1_790_000_000_000;
        }
        self.say(|| "all faults end".to_owned());
        self.perform(&Act::Resume(None));
        for node in 0..self.nodes.len() {
            self.nodes[node].cut_off = false;
            if self.nodes[node].suspended {
                self.thaw(node);
            }
        }
    }
}
