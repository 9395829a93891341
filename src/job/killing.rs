//! Killing a tree until nobody is left.

use std::collections::HashSet;
use std::time::Duration;

use nix::libc;

use super::messages::{Survivor, Unkillable};
use super::tree::Tree;
use crate::sys::pidfd::Delivery;
use crate::sys::procfs::Process;
use crate::token::Moment;

/// How often new processes are looked for in one try. Only a tree that somebody adds to
/// while it is killed needs more than two.
const SWEEPS: usize = 8;

/// The first pause between two tries, doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How long a killed process may take to go before anybody is told.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many survivors are told of.
const MOST_TOLD: usize = 16;

/// Tries to kill a tree, at growing distances, until somebody finds it gone.
#[derive(Debug, Default)]
pub(super) struct Killing {
    under_way: Option<UnderWay>,
    /// The survivors that were told of.
    told: Vec<Survivor>,
}

#[derive(Debug, Clone, Copy)]
struct UnderWay {
    since: Moment,
    next: Moment,
    pause: Duration,
}

impl Killing {
    /// When the next try is due. `None` before the first.
    pub(super) fn next(&self) -> Option<Moment> {
        self.under_way.map(|it| it.next)
    }

    /// Tries, if it is time to. Gives the survivors if they are others than those
    /// given last: for saying so once per change.
    pub(super) fn run(&mut self, now: Moment, tree: &Tree<'_>) -> Option<Vec<Survivor>> {
        let before = self.under_way;
        if before.is_some_and(|it| now < it.next) {
            return None;
        }
        let pause = before.map_or(FIRST_PAUSE, |it| (it.pause * 2).min(LONGEST_PAUSE));
        let since = before.map_or(now, |it| it.since);
        self.under_way = Some(UnderWay {
            since,
            next: now.plus(pause),
            pause,
        });
        let patient = now.since(since) < PATIENCE;
        self.news(survivors(tree, patient))
    }

    fn news(&mut self, mut survivors: Vec<Survivor>) -> Option<Vec<Survivor>> {
        survivors.truncate(MOST_TOLD);
        if survivors == self.told {
            return None;
        }
        self.told.clone_from(&survivors);
        Some(survivors)
    }
}

/// Kills everyone once. Gives those who can't be killed; those who were killed in
/// an earlier try too, unless their end is waited for with patience.
fn survivors(tree: &Tree<'_>, patient: bool) -> Vec<Survivor> {
    let Some(met) = sweep(tree) else {
        tree.signal_known_child(&[libc::SIGKILL]);
        return unseen(tree, patient);
    };
    let mut survivors = Vec::new();
    for process in &met {
        match tree.signal_one(process, &[libc::SIGKILL]) {
            Delivery::NotPermitted => survivors.push(survivor(process, Unkillable::NotPermitted)),
            Delivery::Sent if !patient => survivors.push(survivor(process, why(process))),
            Delivery::Sent | Delivery::Gone => {}
        }
    }
    if met.is_empty() {
        survivors = unseen(tree, patient);
    }
    survivors
}

/// Kills everyone at sight, until nobody new appears. Gives all who were met; `None` if
/// they can't be seen.
///
/// Nobody is stopped first, although who is stopped starts nobody else: whoever does this
/// may be killed at any moment, and would leave processes that never go on, never end, and
/// hold the job's lock for ever.
fn sweep(tree: &Tree<'_>) -> Option<Vec<Process>> {
    let mut known = HashSet::new();
    let mut met = Vec::new();
    for _ in 0..SWEEPS {
        let before = met.len();
        for process in tree.living()? {
            if known.insert((process.pid, process.started)) {
                tree.signal_one(&process, &[libc::SIGKILL]);
                met.push(process);
            }
        }
        if met.len() == before {
            break;
        }
    }
    Some(met)
}

fn unseen(tree: &Tree<'_>, patient: bool) -> Vec<Survivor> {
    if patient || !tree.has_members() {
        return Vec::new();
    }
    vec![Survivor {
        pid: 0,
        name: String::new(),
        why: Unkillable::Unseen,
    }]
}

fn survivor(process: &Process, why: Unkillable) -> Survivor {
    Survivor {
        pid: process.pid,
        name: process.name.clone(),
        why,
    }
}

fn why(process: &Process) -> Unkillable {
    if process.state == 'D' {
        Unkillable::Uninterruptible
    } else {
        Unkillable::NotYetGone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment(Duration::from_millis(millis))
    }

    fn no_tree<R>(body: impl FnOnce(&Tree<'_>) -> R) -> R {
        // Nobody is the child of a process that does not exist.
        body(&Tree::new(i32::MAX, None, false, &|_| true))
    }

    #[test]
    fn tries_come_at_growing_distances() {
        no_tree(|tree| {
            let mut killing = Killing::default();
            assert_eq!(killing.next(), None);
            let mut now = at(0);
            let mut pauses = Vec::new();
            for _ in 0..10 {
                killing.run(now, tree);
                let next = killing.next().unwrap();
                pauses.push(next.since(now).as_millis());
                now = next;
            }
            assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000]);
        });
    }

    #[test]
    fn a_try_before_its_time_does_nothing() {
        no_tree(|tree| {
            let mut killing = Killing::default();
            killing.run(at(0), tree);
            killing.run(at(9), tree);
            assert_eq!(killing.next(), Some(at(10)));
        });
    }

    #[test]
    fn survivors_are_told_once_per_change() {
        let mut killing = Killing::default();
        let one = vec![Survivor {
            pid: 1,
            name: "sudo".to_owned(),
            why: Unkillable::NotPermitted,
        }];
        assert_eq!(killing.news(Vec::new()), None);
        assert_eq!(killing.news(one.clone()), Some(one.clone()));
        assert_eq!(killing.news(one), None);
        assert_eq!(killing.news(Vec::new()), Some(Vec::new()));
    }
}
