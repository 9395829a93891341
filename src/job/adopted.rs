//! Which of the supervisor's children belong to the job, after their parent, the guard, was killed.

use std::io;

use crate::sys::process::pid;
use crate::sys::procfs::{self, Process};
use crate::sys::wait::{has_children, is_running};

/// Separates the job's processes from other children of the supervisor: a container's orphans, or
/// processes that the program that executed tokenrun had started before.
///
/// As long as the guard lives, the job's orphans become its children, not the supervisor's. So a
/// child of the supervisor at that time is a stranger. A process that becomes its child when the
/// guard is gone counts as the job's: an unseen job that lives on is worse than the end of a
/// stranger that lost its parent in that second.
#[derive(Debug)]
pub(super) struct Adopted {
    /// Known strangers: pid and start time.
    strangers: Vec<(i32, u64)>,
    /// True if there may be strangers.
    mixed: bool,
}

impl Adopted {
    /// Records this process's children, before it forks a guard.
    pub(super) fn look() -> io::Result<Self> {
        let has_children = has_children()?;
        Ok(Self {
            strangers: has_children.then(children).flatten().unwrap_or_default(),
            // PID 1 gets every orphan; a process that has children already may get theirs.
            mixed: has_children || pid() == 1,
        })
    }

    /// Records new children, while the guard lives.
    pub(super) fn look_again(&mut self, guard: i32) {
        if !self.mixed {
            return;
        }
        let Some(mut children) = children() else {
            return;
        };
        children.retain(|(pid, _)| *pid != guard);
        // Checked afterwards: if the guard had ended before, the job's processes might be among
        // them.
        if is_running(guard) == Some(true) {
            self.strangers = children;
        }
    }

    /// Records a child of this process that was forked after the guard and is not the job's.
    pub(super) fn disown(&mut self, pid: i32) {
        if let Some(child) = procfs::process(pid) {
            self.strangers.push((child.pid, child.started));
            self.mixed = true;
        }
    }

    /// True if a child of this process belongs to the job.
    pub(super) fn belongs(&self, child: &Process) -> bool {
        !self.strangers.contains(&(child.pid, child.started))
    }

    /// True if every child of this process belongs.
    pub(super) const fn is_everyone(&self) -> bool {
        !self.mixed
    }
}

fn children() -> Option<Vec<(i32, u64)>> {
    if !procfs::is_ours() {
        return None;
    }
    let children = procfs::children().ok()?;
    Some(children.iter().map(|it| (it.pid, it.started)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(pid: i32) -> Process {
        Process {
            pid,
            name: String::new(),
            state: 'S',
            parent: 1,
            threads: 1,
            started: 7,
        }
    }

    #[test]
    fn a_child_that_is_no_stranger_belongs_to_the_job() {
        let adopted = Adopted {
            strangers: vec![(5, 7), (6, 8)],
            mixed: true,
        };
        assert!(adopted.belongs(&child(10)));
        assert!(!adopted.belongs(&child(5)));
        // Another process that has got the pid since.
        assert!(adopted.belongs(&child(6)));
    }

    #[test]
    fn children_of_before_may_leave_strangers() {
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        assert!(Adopted::look().unwrap().mixed);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_child_that_exists_while_the_guard_lives_is_a_stranger() {
        let start = || {
            let mut sleep = std::process::Command::new("sleep");
            sleep.arg("600").spawn().unwrap()
        };
        let number = |child: &std::process::Child| i32::try_from(child.id()).unwrap();
        let (mut guard, mut other) = (start(), start());
        let mut adopted = Adopted {
            strangers: Vec::new(),
            mixed: true,
        };
        let seen = |pid| procfs::process(pid).unwrap();
        let (guard_seen, other_seen) = (seen(number(&guard)), seen(number(&other)));
        adopted.look_again(number(&guard));
        assert!(adopted.belongs(&guard_seen));
        assert!(!adopted.belongs(&other_seen));

        adopted.strangers.clear();
        guard.kill().unwrap();
        guard.wait().unwrap();
        adopted.look_again(guard_seen.pid);
        assert!(adopted.belongs(&other_seen));
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
