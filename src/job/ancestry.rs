//! Proof that this process runs under a certain session's guard.

use super::GUARD_NAME;
use super::tree::MOST_ANCESTORS;
use crate::sys::process::pid;
use crate::sys::procfs::{self, Process};

/// True if one of this process's ancestors is a guard whose parent is the supervisor with this pid.
/// False if /proc is missing or belongs to another pid namespace: then nothing is proven.
pub fn is_inside(session_supervisor_pid: i32) -> bool {
    procfs::is_ours() && is_below_guard_of(session_supervisor_pid, pid(), procfs::process)
}

fn is_below_guard_of(supervisor: i32, pid: i32, look_up: impl Fn(i32) -> Option<Process>) -> bool {
    let own = look_up(pid);
    let ancestors = std::iter::successors(own, |process| look_up(process.parent));
    ancestors
        .skip(1)
        .take(MOST_ANCESTORS)
        .any(|ancestor| is_guard(&ancestor) && ancestor.parent == supervisor)
}

fn is_guard(process: &Process) -> bool {
    process.name.as_bytes() == GUARD_NAME.to_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &'static [(i32, &'static str, i32)]) -> impl Fn(i32) -> Option<Process> {
        move |wanted| {
            let (pid, name, parent) = *rows.iter().find(|row| row.0 == wanted)?;
            Some(Process {
                pid,
                name: name.to_owned(),
                state: 'S',
                parent,
                threads: 1,
                started: 0,
            })
        }
    }

    #[test]
    fn only_the_guard_of_that_very_supervisor_counts() {
        let look_up = table(&[
            (9, "tokenrun", 8),
            (8, "sh", 7),
            (7, "lease-guard", 6),
            (6, "tokenrun", 1),
            (1, "init", 0),
        ]);
        assert!(is_below_guard_of(6, 9, &look_up));
        assert!(!is_below_guard_of(7, 9, &look_up));
        assert!(!is_below_guard_of(1, 9, &look_up));
        // The guard itself, and the processes above it, are not inside.
        assert!(!is_below_guard_of(6, 7, &look_up));
        assert!(!is_below_guard_of(6, 6, &look_up));
    }

    #[test]
    fn a_chain_that_never_ends_proves_nothing() {
        let look_up = table(&[(2, "a", 3), (3, "b", 2)]);
        assert!(!is_below_guard_of(1, 2, look_up));
    }

    #[test]
    fn this_test_is_not_inside_anything() {
        assert!(!is_inside(crate::sys::process::parent_pid()));
    }
}
