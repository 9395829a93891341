//! The descendants of a process, and signals to all of them.

use crate::sys::pidfd::{Delivery, Target};
use crate::sys::process::signal_child;
use crate::sys::procfs::{self, Children, Process};
use crate::sys::wait::has_only_living_children;

/// How often the ancestry of a process is looked up again after an ancestor ended meanwhile.
const LOOKS: usize = 4;

/// A longer chain of parents does not count.
pub(super) const MOST_ANCESTORS: usize = 10_000;

/// A process of a tree, as a walk meets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) pid: i32,
    parent: i32,
}

impl Member {
    pub(super) const fn of(process: &Process) -> Self {
        Self {
            pid: process.pid,
            parent: process.parent,
        }
    }

    /// This process, after its parent may have reaped it and another process may have its pid.
    pub(super) const fn in_doubt(self) -> Self {
        Self { parent: 0, ..self }
    }

    /// The child of this process with this pid.
    pub(super) const fn with_child(self, pid: i32) -> Self {
        Self {
            pid,
            parent: self.pid,
        }
    }
}

/// The descendants of this process that belong to the job.
pub(super) struct Tree<'a> {
    root: i32,
    /// Which of the root's own children belong to the job, with all their descendants.
    belongs: &'a dyn Fn(&Process) -> bool,
    /// An unreaped child of this process, so that its pid is certainly its own. The only process
    /// that can be signalled where /proc is unusable.
    known_child: Option<i32>,
    /// True if every child of this process belongs.
    all_belong: bool,
}

impl<'a> Tree<'a> {
    /// All descendants of this process, whose pid is `root`.
    pub(super) fn below_this_process(root: i32, known_child: Option<i32>) -> Self {
        Self::new(root, known_child, true, &|_| true)
    }

    /// The job's descendants of this process, whose pid is `root`: those of its children that
    /// belong, with all their descendants.
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

    pub(super) const fn root(&self) -> i32 {
        self.root
    }

    /// The only member that is known without /proc.
    pub(super) fn known(&self) -> Option<Member> {
        self.known_child.map(|pid| self.child(pid))
    }

    /// The root's own children, including strangers. `None` if they are invisible.
    pub(super) fn own(&self) -> Option<Children> {
        Children::of(self.root)
    }

    /// A child of the root's as a member, if it belongs.
    pub(super) fn own_member(&self, pid: i32) -> Option<Member> {
        let belongs = || procfs::process(pid).is_some_and(|process| (self.belongs)(&process));
        (self.all_belong || belongs()).then(|| self.child(pid))
    }

    const fn child(&self, pid: i32) -> Member {
        Member {
            pid,
            parent: self.root,
        }
    }

    /// True if this child of the root's belongs.
    pub(super) fn has(&self, child: &Process) -> bool {
        (self.belongs)(child)
    }

    /// True if it is the root's own child, as far as is known.
    pub(super) const fn is_own(&self, member: Member) -> bool {
        member.parent == self.root
    }

    /// True if the tree has no member, not even one that has ended and is not reaped yet: a process
    /// that forks and leaves can't hide behind that. `None` if unknown.
    pub(super) fn is_empty(&self) -> Option<bool> {
        if !procfs::is_ours() {
            return None;
        }
        let own = match self.own() {
            Some(pids) => pids.filter_map(procfs::process).collect(),
            None => procfs::children().ok()?,
        };
        Some(!own.iter().any(self.belongs))
    }

    /// Sends signals to a process that the walk has just met. Returns true if the last of them
    /// arrived. An own child that is not reaped is signalled without a check: its pid is certainly
    /// its own, and with a process that forks and leaves every microsecond counts.
    pub(super) fn send(&self, member: Member, signals: &[i32]) -> Delivery {
        let mut last = Delivery::Gone;
        if member.parent == self.root {
            for signal in signals {
                let sent = signal_child(member.pid, *signal);
                last = sent.map_or(Delivery::NotPermitted, |()| Delivery::Sent);
            }
        } else if let Some(target) = self.hold(member) {
            for signal in signals {
                last = target.signal(*signal).unwrap_or(Delivery::Gone);
            }
        }
        last
    }

    /// Opens a handle of a process that was just met. `None` if another process has that pid now.
    fn hold(&self, member: Member) -> Option<Target> {
        // First opened, then checked: another process may have got the pid since the meeting, but
        // not since the opening. Mostly the process is still where it was met.
        let target = Target::open(member.pid)?;
        let is_there = |parent| parent == member.parent || parent == self.root;
        let is_it = target.parent().is_some_and(is_there) || self.contains(member.pid);
        is_it.then_some(target)
    }

    /// Sends signals to the only child that is known without /proc.
    pub(super) fn signal_known_child(&self, signals: &[i32]) {
        if let Some(pid) = self.known_child {
            for signal in signals {
                // The process may belong to another user by now; there is nothing else to try.
                let _ = signal_child(pid, *signal);
            }
        }
    }

    /// True if a member is alive, visible or not, as far as is known: unknown while others wait to
    /// be reaped.
    pub(super) fn has_living(&self) -> bool {
        self.all_belong && has_only_living_children()
    }

    /// True if the process that has this pid now is in the tree.
    fn contains(&self, pid: i32) -> bool {
        (0..LOOKS).any(|_| self.descends(pid, procfs::process) == Some(true))
    }

    /// True if the process is in the tree. `None` if an ancestor ended meanwhile.
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

/// Names for people: the first `most`, in the order of the tree.
pub(super) fn names(processes: &[Process], most: usize) -> Vec<String> {
    let names = processes.iter().map(|process| process.name.clone());
    names.take(most).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::sys::process::pid;
    use crate::sys::signals::{SIGKILL, SIGTERM};

    pub(in crate::job) fn process(pid: i32, parent: i32) -> Process {
        Process {
            pid,
            name: format!("p{pid}"),
            state: 'S',
            parent,
            threads: 1,
            started: 0,
        }
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

    /// A child of this process, and its pid.
    fn child(script: &str) -> (Child, i32) {
        let child = Command::new("sh")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let its = i32::try_from(child.id()).unwrap();
        (child, its)
    }

    /// Ends a child that this test has not signalled.
    fn is_untouched(mut child: Child) -> bool {
        child.kill().unwrap();
        child.wait().unwrap().signal() == Some(SIGKILL)
    }

    const ALL: &dyn Fn(&Process) -> bool = &|_| true;
    const NONE: &dyn Fn(&Process) -> bool = &|_| false;

    #[test]
    fn what_is_known_of_it_without_proc_is_a_child() {
        let tree = Tree::new(2, Some(7), false, NONE);
        let known = tree.known().unwrap();
        assert_eq!((known.pid, known.parent), (7, 2));
        assert!(tree.is_own(known) && !tree.is_own(known.in_doubt()));
        assert_eq!(Tree::new(2, None, false, ALL).known(), None);
        assert!(!tree.has(&process(5, 2)) && Tree::new(2, None, false, ALL).has(&process(5, 2)));
        // Of this process there are only those of other tests, which do not belong.
        let none = Tree::new(pid(), None, false, NONE);
        assert_eq!(none.is_empty(), Some(true));
        assert!(!none.has_living());
    }

    #[test]
    fn a_process_gets_signals_where_it_was_met_or_below_the_root() {
        let met = |of: i32, parent| Member { pid: of, parent };
        let elsewhere = i32::MAX;
        for (root, parent) in [(pid(), pid()), (elsewhere, pid()), (pid(), elsewhere)] {
            let (mut child, its) = child("exec sleep 600");
            let tree = Tree::new(root, None, false, ALL);
            assert_eq!(tree.is_empty(), Some(false));
            let sent = tree.send(met(its, parent), &[SIGTERM]);
            assert_eq!(sent, Delivery::Sent, "{root} {parent}");
            assert_eq!(child.wait().unwrap().signal(), Some(SIGTERM));
        }
    }

    #[test]
    fn a_process_that_another_has_become_gets_none() {
        let (child, its) = child("exec sleep 600");
        let tree = Tree::new(i32::MAX, None, false, ALL);
        let met = Member {
            pid: its,
            parent: i32::MAX - 1,
        };
        assert_eq!(tree.send(met, &[SIGTERM]), Delivery::Gone);
        assert!(is_untouched(child));
    }

    #[test]
    fn one_that_has_moved_in_the_tree_gets_signals_and_one_that_does_not_belong_gets_none() {
        for (belongs, sent) in [(ALL, Delivery::Sent), (NONE, Delivery::Gone)] {
            // The grandchild says its pid, and holds the output open.
            let (mut shell, _) = child("sleep 600 & echo $!; wait");
            let mut said = String::new();
            let mut output = BufReader::new(shell.stdout.take().unwrap());
            output.read_line(&mut said).unwrap();
            let met = Member {
                pid: said.trim().parse().unwrap(),
                parent: i32::MAX,
            };
            let tree = Tree::new(pid(), None, false, belongs);
            assert_eq!(tree.send(met, &[SIGTERM]), sent);
            if sent == Delivery::Gone {
                signal_child(met.pid, SIGKILL).unwrap();
            }
            // The shell ends when its child has.
            assert!(shell.wait().unwrap().success());
        }
    }
}
