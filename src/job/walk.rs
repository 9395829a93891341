//! A walk through a tree of processes, step by step, because the walking process has a deadline.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::{Member, Tree};
use crate::sys::procfs::{self, Children, Process};
use crate::sys::wait::is_running;

/// A walk that meets every live process, parents before their children, and all children before
/// their own. It may miss a process whose parent ends meanwhile, and one that is just being
/// created: to meet all of them, repeat the walk until none is new.
///
/// First comes the job's own process with all its descendants: there may be thousands of other
/// children that only wait to be reaped, and listing them takes time.
#[derive(Debug)]
pub(super) struct Walk {
    /// Processes that are listed and not met yet, the next one last.
    ahead: Vec<Member>,
    /// Processes that are met and whose children are not listed yet.
    behind: Vec<Member>,
    seen: BTreeSet<i32>,
    own: Own,
}

/// The root's own children.
#[derive(Debug)]
enum Own {
    /// None is listed yet.
    Unlisted,
    /// Some are listed.
    Listed(Children),
    /// All are listed.
    Done,
}

/// The result of a step.
#[derive(Debug)]
pub(super) enum Step {
    /// A process was found.
    Found(Member),
    /// No process was found in this step.
    Nothing,
    /// The walk is done.
    Done,
}

/// The live processes, as far as they are visible and met while `may_go_on`; parents before their
/// children. `None` if /proc is unusable.
pub(super) fn living(tree: &Tree<'_>, may_go_on: impl Fn() -> bool) -> Option<Vec<Process>> {
    let mut living = Vec::new();
    let mut walk = Walk::new(tree)?;
    while may_go_on() {
        match walk.step(tree) {
            Step::Found(member) => {
                let process = procfs::process(member.pid);
                living.extend(process.filter(Process::is_alive));
            }
            Step::Nothing => {}
            Step::Done => break,
        }
    }
    Some(living)
}

impl Walk {
    /// A walk through the tree. `None` if /proc is unusable.
    pub(super) fn new(tree: &Tree<'_>) -> Option<Self> {
        if !procfs::is_ours() {
            return None;
        }
        let (ahead, own) = if procfs::shows_children() {
            (tree.known().into_iter().collect(), Own::Unlisted)
        } else {
            (everyone(tree, procfs::processes().ok()?), Own::Done)
        };
        Some(Self {
            ahead,
            behind: Vec::new(),
            seen: BTreeSet::new(),
            own,
        })
    }

    /// Takes the next step, in the tree in which the walk began.
    pub(super) fn step(&mut self, tree: &Tree<'_>) -> Step {
        if let Some(member) = self.ahead.pop() {
            return self.meet(tree, member);
        }
        match self.behind.pop() {
            // A process that was killed when it was met creates no more.
            Some(member) => self.list_below(member),
            None => return self.list_own(tree),
        }
        Step::Nothing
    }

    fn meet(&mut self, tree: &Tree<'_>, member: Member) -> Step {
        let is_known = tree.known() == Some(member);
        let is_running = match tree.is_own(member) {
            true => is_running(member.pid),
            false => Some(true),
        };
        if is_running == Some(false) || !self.seen.insert(member.pid) {
            return Step::Nothing;
        }
        if is_known {
            // Before the process is met: if it ends then, its children move to the end of the list.
            self.list_below(member);
        } else {
            self.behind.push(member);
        }
        match is_running.is_some() || is_known {
            true => Step::Found(member),
            false => Step::Found(member.in_doubt()),
        }
    }

    fn list_below(&mut self, member: Member) {
        let pids = procfs::child_pids(member.pid).unwrap_or_default();
        let below = pids.into_iter().rev().map(|pid| member.with_child(pid));
        self.ahead.extend(below);
    }

    /// Lists one more of the root's own children.
    fn list_own(&mut self, tree: &Tree<'_>) -> Step {
        if let Own::Unlisted = self.own {
            self.own = tree.own().map_or(Own::Done, Own::Listed);
        }
        let next = match &mut self.own {
            Own::Listed(children) => children.next(),
            Own::Unlisted | Own::Done => None,
        };
        let Some(pid) = next else {
            self.own = Own::Done;
            return Step::Done;
        };
        self.ahead.extend(tree.own_member(pid));
        Step::Nothing
    }
}

/// Every process of the tree, the first one last: for a kernel that shows parents only.
fn everyone(tree: &Tree<'_>, all: Vec<Process>) -> Vec<Member> {
    let found = descendants(tree.root(), all, |child| tree.has(child));
    found.iter().rev().map(Member::of).collect()
}

/// Every process below `root` in a list that is not a snapshot, without those below a child that
/// does not belong.
fn descendants(root: i32, all: Vec<Process>, belongs: impl Fn(&Process) -> bool) -> Vec<Process> {
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found: Vec<Process> = children.remove(&root).unwrap_or_default();
    found.retain(belongs);
    let mut seen: BTreeSet<i32> = found.iter().map(|process| process.pid).collect();
    seen.insert(root);
    let mut next = 0;
    while let Some(process) = found.get(next) {
        // Removed from the map, so that parents in a circle are met once.
        let below = children.remove(&process.pid).unwrap_or_default();
        found.extend(below.into_iter().filter(|child| seen.insert(child.pid)));
        next += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::process;
    use super::*;

    fn pids_below(root: i32, pairs: &[(i32, i32)], belongs: fn(&Process) -> bool) -> Vec<i32> {
        let all = pairs.iter().map(|(pid, parent)| process(*pid, *parent));
        let found = descendants(root, all.collect(), belongs);
        found.iter().map(|process| process.pid).collect()
    }

    #[test]
    fn all_generations_are_found_and_no_stranger() {
        let pairs = [(9, 5), (2, 1), (5, 2), (6, 2), (7, 9), (3, 1), (1, 0)];
        assert_eq!(pids_below(2, &pairs, |_| true), [5, 6, 9, 7]);
        assert_eq!(pids_below(7, &pairs, |_| true), [0; 0]);
    }

    #[test]
    fn a_child_that_does_not_belong_excludes_its_descendants() {
        let pairs = [(5, 2), (6, 2), (7, 5), (8, 6)];
        assert_eq!(pids_below(2, &pairs, |it| it.pid != 5), [6, 8]);
    }

    #[test]
    fn a_list_with_a_circle_in_it_ends() {
        let pairs = [(5, 2), (2, 5), (6, 7), (7, 6), (5, 5)];
        assert_eq!(pids_below(2, &pairs, |_| true), [5]);
    }

    #[test]
    fn those_of_a_kernel_that_shows_parents_only_are_met_in_order() {
        let tree = Tree::new(2, None, false, &|child| child.pid != 6);
        let pairs = [(9, 5), (5, 2), (6, 2), (3, 1)];
        let all = pairs.iter().map(|(pid, parent)| process(*pid, *parent));
        let mut members = everyone(&tree, all.collect());
        let met = std::iter::from_fn(|| members.pop().map(|member| member.pid));
        assert_eq!(met.collect::<Vec<_>>(), [5, 9]);
    }

    #[test]
    fn a_known_child_is_met_once_and_never_in_doubt() {
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        let its = i32::try_from(child.id()).unwrap();
        let root = crate::sys::process::pid();
        let belongs = |child: &Process| child.pid == its;
        let tree = Tree::new(root, Some(its), false, &belongs);
        let mut walk = Walk::new(&tree).unwrap();
        let mut met = Vec::new();
        loop {
            match walk.step(&tree) {
                Step::Found(member) => met.push(member),
                Step::Nothing => {}
                Step::Done => break,
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(met, [tree.known().unwrap()]);
        // Now the system does not know it, and the tree still does.
        let mut walk = Walk::new(&tree).unwrap();
        let Step::Found(member) = walk.step(&tree) else {
            panic!("it is not met");
        };
        assert_eq!(member, tree.known().unwrap());
    }
}
