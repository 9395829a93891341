//! Which of the supervisor's children belong to the job, after the guard that was
//! their parent was killed.

use std::io;

use crate::sys::process::pid;
use crate::sys::procfs::{self, Process};
use crate::sys::wait::has_children;

/// What tells the job's processes from others that became children of the
/// supervisor: a container's orphans, or what the program that executed tokenrun
/// had started before.
#[derive(Debug)]
pub(super) struct Adopted {
    /// Who was there before the guard: pid and start.
    earlier: Vec<(i32, u64)>,
    /// Whether a child that nothing is known of may be anybody's.
    mixed: bool,
    /// Whether a child that nothing is known of may be a stranger's: as PID 1.
    strangers: bool,
    /// What the job was started with.
    env: Vec<(String, String)>,
    /// The guard and the job's main process.
    known: Vec<i32>,
}

impl Adopted {
    /// Looks at this process's children, before it forks a guard.
    ///
    /// # Errors
    /// What waitid(2) says; it has no reason to.
    pub(super) fn look() -> io::Result<Self> {
        let has_children = has_children()?;
        let earlier = has_children.then(earlier_children).flatten();
        Ok(Self {
            earlier: earlier.unwrap_or_default(),
            // PID 1 is given everybody's orphans; so are those that others came from.
            mixed: has_children || pid() == 1,
            strangers: pid() == 1,
            env: Vec::new(),
            known: Vec::new(),
        })
    }

    /// The job is started with these variables.
    pub(super) fn mark(&mut self, env: &[(String, String)]) {
        self.env = env.to_vec();
    }

    /// A child that belongs: the guard, or the job's main process.
    pub(super) fn know(&mut self, pid: i32) {
        self.known.push(pid);
    }

    /// A child was reaped: its pid may become another's.
    pub(super) fn forget(&mut self, pid: i32) {
        self.known.retain(|known| *known != pid);
        self.earlier.retain(|(earlier, _)| *earlier != pid);
    }

    /// Whether a child of this process belongs to the job: every one that was not
    /// there before, for a job that lives on unseen is worse than the end of what an
    /// earlier child left behind. Only as PID 1, which is given everybody's orphans,
    /// it is judged by its environment: one that cleared it is not recognised.
    pub(super) fn belongs(&self, child: &Process) -> bool {
        let is_earlier = self.earlier.contains(&(child.pid, child.started));
        self.known.contains(&child.pid)
            || !is_earlier && (!self.strangers || self.is_marked(child.pid))
    }

    /// Whether every child of this process belongs.
    pub(super) const fn is_everyone(&self) -> bool {
        !self.mixed
    }

    fn is_marked(&self, pid: i32) -> bool {
        !self.env.is_empty() && procfs::was_started_with(pid, &self.env)
    }
}

fn earlier_children() -> Option<Vec<(i32, u64)>> {
    let own = pid();
    if !procfs::is_ours() {
        return None;
    }
    let all = procfs::processes().ok()?;
    let children = all.into_iter().filter(|process| process.parent == own);
    Some(children.map(|it| (it.pid, it.started)).collect())
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

    fn adopted(mixed: bool) -> Adopted {
        Adopted {
            earlier: vec![(5, 7), (6, 8)],
            mixed,
            strangers: mixed,
            env: vec![("TOKENRUN_NEVER_SET".to_owned(), "1".to_owned())],
            known: vec![9],
        }
    }

    #[test]
    fn alone_every_new_child_belongs() {
        let adopted = adopted(false);
        assert!(adopted.belongs(&child(9)));
        assert!(adopted.belongs(&child(10)));
        assert!(!adopted.belongs(&child(5)));
        // Another that got the pid since.
        assert!(adopted.belongs(&child(6)));
    }

    #[test]
    fn among_others_a_child_must_be_known_or_marked() {
        let mut adopted = adopted(true);
        assert!(adopted.belongs(&child(9)));
        assert!(!adopted.belongs(&child(i32::MAX)));
        adopted.forget(9);
        assert!(!adopted.belongs(&child(9)));
    }

    #[test]
    fn an_empty_mark_marks_nobody() {
        let mut adopted = adopted(true);
        adopted.mark(&[]);
        assert!(!adopted.belongs(&child(pid())));
    }
}
