//! Killing a tree until no process is left.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;

use super::protocol::{Survivor, Unkillable};
use super::tree::Tree;
use super::walk::{Step, Walk};
use crate::moment::Moment;
use crate::sys::pidfd::Delivery;
use crate::sys::procfs::{self, Process};
use crate::sys::signals::SIGKILL;

/// The signal that kill(2) checks a process with, and does not send.
const NO_SIGNAL: i32 = 0;

/// How often one try looks for new processes. More than two rounds are needed only for a tree that
/// grows while it is killed.
const SWEEPS: usize = 16;

/// The first pause between two tries, doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How long a tree that forks faster than it is killed is retried without a pause. A process that
/// only forks and leaves takes some 100 µs for that, a sweep some 20 µs, so mostly the first try
/// wins.
const SPRINT: Duration = Duration::from_secs(2);

/// The pause after that, unless the try took longer: it leaves half of a processor, and mostly much
/// more, to other processes.
const SHORT_PAUSE: Duration = Duration::from_millis(1);

/// The longest time of one try: then the process turns to its other duties before it goes on.
const LONGEST_TRY: Duration = Duration::from_millis(50);

/// How many processes one try kills, however long it takes.
const LEAST_STRUCK: usize = 256;

/// How many steps a rehearsal takes at most.
const REHEARSED: usize = 32;

/// How long a killed process may take to end before it is reported.
const PATIENCE: Duration = Duration::from_secs(1);

/// The least time between two reports of survivors.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// How many survivors are reported.
const MOST_REPORTED: usize = 16;

/// Tries to kill a tree, again and again, until a walk finds it gone.
#[derive(Debug, Default)]
pub(super) struct Killing {
    under_way: Option<UnderWay>,
    /// The processes that the last try found.
    found_before: BTreeSet<i32>,
    /// The survivors of the last report, and its time.
    reported: Vec<Survivor>,
    reported_at: Option<Moment>,
}

#[derive(Debug, Clone, Copy)]
struct UnderWay {
    since: Moment,
    next: Moment,
    pause: Duration,
}

/// What one try does.
#[derive(Debug, Clone, Copy)]
struct Plan {
    signal: i32,
    /// How many processes get the signal, however long it takes.
    least: usize,
    /// False if processes that have not ended yet are reported.
    patient: bool,
}

/// The result of one try.
#[derive(Debug, Default)]
struct Found {
    /// Every process that was met alive.
    pids: BTreeSet<i32>,
    /// True if new processes still appeared while those were killed, or some were not met.
    growing: bool,
    survivors: Vec<Survivor>,
}

impl Killing {
    /// When the next try is due; `None` before the first.
    pub(super) fn next(&self) -> Option<Moment> {
        self.under_way.map(|it| it.next)
    }

    /// Tries, if it is time to. Returns the survivors if they differ from the last report.
    pub(super) fn run(
        &mut self,
        clock: impl Fn() -> Moment,
        tree: &Tree<'_>,
    ) -> Option<Vec<Survivor>> {
        let begun = clock();
        let before = self.under_way;
        if before.is_some_and(|it| begun < it.next) {
            return None;
        }
        let since = before.map_or(begun, |it| it.since);
        let plan = Plan {
            signal: SIGKILL,
            least: LEAST_STRUCK,
            patient: begun.since(since) < PATIENCE,
        };
        let found = strike(tree, plan, || clock().since(begun) < LONGEST_TRY);
        let now = clock();
        let pause = self.pause(&found, begun.since(since), now.since(begun));
        self.under_way = Some(UnderWay {
            since,
            next: now.plus(pause),
            pause: pause.max(FIRST_PAUSE),
        });
        self.news(now, found.survivors)
    }

    /// The pause before the next try.
    fn pause(&mut self, found: &Found, trying_for: Duration, last_took: Duration) -> Duration {
        let before = std::mem::replace(&mut self.found_before, found.pids.clone());
        let has_new = !found.pids.is_subset(&before);
        match self.under_way {
            _ if found.growing && trying_for < SPRINT => Duration::ZERO,
            _ if found.growing => SHORT_PAUSE.max(last_took),
            Some(before) if !has_new => (before.pause * 2).min(LONGEST_PAUSE),
            _ => FIRST_PAUSE,
        }
    }

    /// The survivors to report. A report at each change would be one at every try for a tree that
    /// changes all the time.
    fn news(&mut self, now: Moment, survivors: Vec<Survivor>) -> Option<Vec<Survivor>> {
        let is_soon = |reported: Moment| now.since(reported) < REPORT_EVERY;
        if survivors == self.reported || self.reported_at.is_some_and(is_soon) {
            return None;
        }
        self.reported_at = Some(now);
        self.reported.clone_from(&survivors);
        Some(survivors)
    }
}

/// A try that checks processes and signals none.
const REHEARSAL: Plan = Plan {
    signal: NO_SIGNAL,
    least: 1,
    patient: false,
};

/// Does what a try does, with some of the processes, and sends them no signal: after that the code of a try is in memory.
pub(super) fn rehearse(tree: &Tree<'_>) {
    let steps = Cell::new(0);
    let may_go_on = || steps.replace(steps.get() + 1) < REHEARSED;
    strike(tree, REHEARSAL, may_go_on);
}

/// Sends every process the signal once. Finds those that can't be killed, including those of an earlier try,
/// unless the plan is patient.
fn strike(tree: &Tree<'_>, plan: Plan, may_go_on: impl Fn() -> bool) -> Found {
    let mut found = Found::default();
    let Some(struck) = sweep(tree, &mut found, plan, may_go_on) else {
        tree.signal_known_child(&[plan.signal]);
        found.look_for_unseen(tree, plan.patient);
        return found;
    };
    found.survivors = survivors(&struck, plan.patient, procfs::process);
    if struck.is_empty() {
        found.look_for_unseen(tree, plan.patient);
    }
    found
}

impl Found {
    fn look_for_unseen(&mut self, tree: &Tree<'_>, patient: bool) {
        if !patient && tree.has_living() {
            self.survivors.push(UNSEEN);
        }
    }
}

/// Sends each process the signal as the walk meets it, until none is new, and the least of them in any case. Returns all
/// that were met, and whether the signal arrived; `None` if they are invisible.
///
/// No process is stopped first, although a stopped process starts no other: a fork that is under
/// way when STOP comes is completed, one that KILL hits is not. And the process that does this may
/// be killed at any moment: then stopped processes would never continue, never end, and hold the
/// job's lock for ever.
fn sweep(
    tree: &Tree<'_>,
    found: &mut Found,
    plan: Plan,
    may_go_on: impl Fn() -> bool,
) -> Option<Vec<(i32, Delivery)>> {
    let mut struck = Vec::new();
    for _ in 0..SWEEPS {
        let before = struck.len();
        let mut walk = Walk::new(tree)?;
        loop {
            // Some are killed in any case, however long the walk to them took.
            if struck.len() >= plan.least && !may_go_on() {
                found.growing = true;
                return Some(struck);
            }
            match walk.step(tree) {
                Step::Found(member) if !found.pids.contains(&member.pid) => {
                    let delivery = tree.send(member, &[plan.signal]);
                    struck.push((member.pid, delivery));
                    // A process that is gone may have left another, or only have moved.
                    if delivery != Delivery::Gone {
                        found.pids.insert(member.pid);
                    }
                }
                Step::Found(_) | Step::Nothing => {}
                Step::Done => break,
            }
        }
        if struck.len() == before {
            return Some(struck);
        }
        if !may_go_on() {
            break;
        }
    }
    found.growing = true;
    Some(struck)
}

/// Those of the struck that are alive and to be reported.
fn survivors(
    struck: &[(i32, Delivery)],
    patient: bool,
    look_up: impl Fn(i32) -> Option<Process>,
) -> Vec<Survivor> {
    let is_wanted = |delivery: Delivery| match delivery {
        Delivery::NotPermitted => true,
        Delivery::Sent => !patient,
        Delivery::Gone => false,
    };
    let wanted = struck.iter().filter(|(_, delivery)| is_wanted(*delivery));
    let alive = wanted.filter_map(|(pid, delivery)| {
        let process = look_up(*pid).filter(Process::is_alive)?;
        Some(survivor(&process, *delivery))
    });
    alive.take(MOST_REPORTED).collect()
}

/// Survivors that exist but are not visible.
const UNSEEN: Survivor = Survivor {
    pid: 0,
    name: String::new(),
    why: Unkillable::Unseen,
};

fn survivor(process: &Process, delivery: Delivery) -> Survivor {
    let why = match (delivery, process.state) {
        (Delivery::NotPermitted, _) => Unkillable::NotPermitted,
        (_, 'D') => Unkillable::Uninterruptible,
        _ => Unkillable::NotYetGone,
    };
    Survivor {
        pid: process.pid,
        name: process.name.clone(),
        why,
    }
}

#[cfg(test)]
#[path = "killing_tests.rs"]
mod tests;
