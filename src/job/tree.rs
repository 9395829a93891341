//! The descendants of a process, and signals to all of them.

use std::collections::{HashMap, HashSet};

use nix::libc;

use crate::sys::pidfd::{Delivery, Target};
use crate::sys::process::signal_child;
use crate::sys::procfs::{self, Process};
use crate::sys::wait::has_children;

/// How often the ancestry of a process is looked up anew, when one of its ancestors
/// ended in between.
const LOOKS: usize = 4;

/// A chain of parents that is longer than this is none.
const MOST_ANCESTORS: usize = 10_000;

/// Somebody in a tree, as a walk meets them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    pub(super) pid: i32,
    parent: i32,
}

/// The descendants of this process that belong to the job.
pub(super) struct Tree<'a> {
    root: i32,
    /// Which of the root's own children belong to the job, with all below them.
    belongs: &'a dyn Fn(&Process) -> bool,
    /// A child of this process that was not waited for, so that its pid is its own.
    /// All that can be signalled where /proc can't be used.
    known_child: Option<i32>,
    /// Whether every child of this process belongs.
    all_belong: bool,
}

impl<'a> Tree<'a> {
    /// Everything below this process, whose pid is `root`.
    pub(super) fn below_this_process(root: i32, known_child: Option<i32>) -> Self {
        Self::new(root, known_child, true, &|_| true)
    }

    /// What is below this process, whose pid is `root`: those of its children that
    /// belong, with all below them.
    pub(super) fn new(
        root: i32,
        known_child: Option<i32>,
        all_belong: bool,
        belongs: &'a dyn Fn(&Process) -> bool,
    ) -> Self {
        Self {
            root,
            belongs,
            known_child,
            all_belong,
        }
    }

    /// Those who live, as far as they can be seen; parents before their children.
    /// `None` if /proc can't be used.
    pub(super) fn living(&self) -> Option<Vec<Process>> {
        let mut living = Vec::new();
        self.walk(|member| {
            let process = procfs::process(member.pid);
            living.extend(process.filter(Process::is_alive));
        })?;
        Some(living)
    }

    /// Whether it has no member, not even one that has ended and was not reaped yet:
    /// whoever forks and leaves can't hide behind that. `None` if that can't be seen.
    pub(super) fn is_empty(&self) -> Option<bool> {
        let mut is_empty = true;
        self.walk(|_| is_empty = false)?;
        Some(is_empty)
    }

    /// Visits everyone, parents before their children. Whose parent ends meanwhile
    /// may be missed, as may whoever is just being made: who must meet all walks
    /// again until nobody is new. `None` if /proc can't be used.
    pub(super) fn walk(&self, mut visit: impl FnMut(Member)) -> Option<()> {
        if !procfs::is_ours() {
            return None;
        }
        let Some(mut pids) = procfs::child_pids(self.root) else {
            // This kernel shows parents only: everybody has to be looked at.
            let all = procfs::processes().ok()?;
            for process in descendants(self.root, all, self.belongs) {
                visit(Member {
                    pid: process.pid,
                    parent: process.parent,
                });
            }
            return Some(());
        };
        if !self.all_belong {
            let belongs = |pid: &i32| procfs::process(*pid).is_some_and(|it| (self.belongs)(&it));
            pids.retain(belongs);
        }
        let mut seen: HashSet<i32> = pids.iter().copied().collect();
        let parent = self.root;
        let mut members: Vec<Member> = pids.iter().map(|&pid| Member { pid, parent }).collect();
        let mut next = 0;
        while let Some(&member) = members.get(next) {
            next += 1;
            visit(member);
            // Only now: whoever the visit has killed makes no more.
            let parent = member.pid;
            let below = procfs::child_pids(parent).unwrap_or_default();
            let new = below.into_iter().filter(|pid| seen.insert(*pid));
            members.extend(new.map(|pid| Member { pid, parent }));
        }
        Some(())
    }

    /// Sends signals, one after the other, to everyone who lives.
    pub(super) fn signal(&self, signals: &[i32]) {
        match self.living() {
            Some(living) => {
                for process in &living {
                    self.signal_one(process, signals);
                }
            }
            None => self.signal_known_child(signals),
        }
    }

    /// Sends one process signals, if it is still the one that was seen. Says
    /// whether the last of them arrived.
    pub(super) fn signal_one(&self, process: &Process, signals: &[i32]) -> Delivery {
        // First hold it, then look at who it is, then signal: its pid may have gone
        // to another since it was seen, but not since it was held.
        match Target::open(process.pid) {
            Some(target) if self.contains(process.pid, Some(process.started)) => {
                send(&target, signals)
            }
            _ => Delivery::Gone,
        }
    }

    /// Sends a signal to somebody who was just met. Of an own child, which nobody has
    /// waited for since, nothing is asked before: its pid can't be another's, and with
    /// one that forks and leaves every microsecond counts.
    pub(super) fn strike(&self, member: Member, signal: i32) -> Delivery {
        if member.parent == self.root {
            return match signal_child(member.pid, signal) {
                Ok(()) => Delivery::Sent,
                Err(_) => Delivery::NotPermitted,
            };
        }
        let Some(target) = Target::open(member.pid) else {
            return Delivery::Gone;
        };
        // Held first, then looked at. Mostly it is still where it was met.
        let is_there = |it: Process| it.parent == member.parent || it.parent == self.root;
        if procfs::process(member.pid).is_some_and(is_there) || self.contains(member.pid, None) {
            send(&target, &[signal])
        } else {
            Delivery::Gone
        }
    }

    /// Sends signals to the one child that is known without /proc.
    pub(super) fn signal_known_child(&self, signals: &[i32]) {
        if let Some(pid) = self.known_child {
            for signal in signals {
                // It may be another user's by now; there is nothing else to try.
                let _ = signal_child(pid, *signal);
            }
        }
    }

    /// Whether there is anybody in it, seen or not, as far as that can be told.
    pub(super) fn has_members(&self) -> bool {
        self.all_belong && has_children().unwrap_or(true)
    }

    /// Whether the process that has this pid now, and started then, is in the tree.
    fn contains(&self, pid: i32, started: Option<u64>) -> bool {
        let is_same = |it: Process| started.is_none_or(|started| it.started == started);
        (0..LOOKS).any(|_| {
            procfs::process(pid).is_some_and(is_same)
                && self.descends(pid, procfs::process) == Some(true)
        })
    }

    /// Whether the process is in the tree. `None` if an ancestor ended meanwhile.
    fn descends(&self, pid: i32, look_up: impl Fn(i32) -> Option<Process>) -> Option<bool> {
        let mut process = look_up(pid)?;
        for _ in 0..MOST_ANCESTORS {
            if process.parent == self.root {
                return Some((self.belongs)(&process));
            }
            if process.parent <= 1 {
                return Some(false);
            }
            process = look_up(process.parent)?;
        }
        Some(false)
    }
}

fn send(target: &Target, signals: &[i32]) -> Delivery {
    let mut last = Delivery::Sent;
    for signal in signals {
        last = target.signal(*signal).unwrap_or(Delivery::Gone);
    }
    last
}

/// Everyone below `root` in a list that was not made in one instant, without those
/// below a child of it that does not belong.
fn descendants(root: i32, all: Vec<Process>, belongs: impl Fn(&Process) -> bool) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found: Vec<Process> = children.remove(&root).unwrap_or_default();
    found.retain(belongs);
    let mut seen: HashSet<i32> = found.iter().map(|process| process.pid).collect();
    seen.insert(root);
    let mut next = 0;
    while let Some(process) = found.get(next) {
        // Taken out, so that parents in a circle are met once.
        let below = children.remove(&process.pid).unwrap_or_default();
        found.extend(below.into_iter().filter(|child| seen.insert(child.pid)));
        next += 1;
    }
    found
}

/// The signals that ask a process to end: stopped, it gets TERM only once it goes on.
pub(super) const ASK: [i32; 2] = [libc::SIGTERM, libc::SIGCONT];

/// Names for people: the first `most`, in the order of the tree.
pub(super) fn names(processes: &[Process], most: usize) -> Vec<String> {
    let names = processes.iter().map(|process| process.name.clone());
    names.take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32) -> Process {
        Process {
            pid,
            name: format!("p{pid}"),
            state: 'S',
            parent,
            threads: 1,
            started: 0,
        }
    }

    fn pids_below(root: i32, pairs: &[(i32, i32)], belongs: fn(&Process) -> bool) -> Vec<i32> {
        let all = pairs.iter().map(|(pid, parent)| process(*pid, *parent));
        let found = descendants(root, all.collect(), belongs);
        found.iter().map(|process| process.pid).collect()
    }

    #[test]
    fn all_generations_are_found_and_nobody_else() {
        let pairs = [(9, 5), (2, 1), (5, 2), (6, 2), (7, 9), (3, 1), (1, 0)];
        assert_eq!(pids_below(2, &pairs, |_| true), [5, 6, 9, 7]);
        assert_eq!(pids_below(7, &pairs, |_| true), [0; 0]);
    }

    #[test]
    fn a_child_that_does_not_belong_takes_its_own_along() {
        let pairs = [(5, 2), (6, 2), (7, 5), (8, 6)];
        assert_eq!(pids_below(2, &pairs, |it| it.pid != 5), [6, 8]);
    }

    #[test]
    fn a_list_with_a_circle_in_it_ends() {
        let pairs = [(5, 2), (2, 5), (6, 7), (7, 6), (5, 5)];
        assert_eq!(pids_below(2, &pairs, |_| true), [5]);
    }

    #[test]
    fn ancestry_is_checked_up_to_the_root() {
        let belongs = |process: &Process| process.pid != 6;
        let tree = Tree::new(2, None, false, &belongs);
        let pairs = [(5, 2), (7, 5), (6, 2), (8, 6), (9, 1), (11, 10), (1, 0)];
        let look_up = |pid| {
            let pair = pairs.iter().find(|pair| pair.0 == pid)?;
            Some(process(pair.0, pair.1))
        };
        assert_eq!(tree.descends(7, look_up), Some(true));
        assert_eq!(tree.descends(8, look_up), Some(false));
        assert_eq!(tree.descends(9, look_up), Some(false));
        assert_eq!(tree.descends(2, look_up), None);
        assert_eq!(tree.descends(11, look_up), None);
        let circle = |pid| Some(process(pid, pid));
        assert_eq!(tree.descends(7, circle), Some(false));
    }
}
