//! Killed processes: they execute nothing any more, and end when they get a processor.

use std::fs;

use tokenrun::sys::procfs::{self, Process};

/// SIGKILL in a signal set of /proc.
const KILL_BIT: u64 = 1 << 8;

/// The flag of a process that is ending, in /proc/PID/stat (PF_EXITING).
const EXITING: u64 = 4;

/// The processes below `root` that have not ended, and among them those that are not killed. While processes fork, the
/// list has some of them.
pub(crate) fn left_below(root: i32) -> (usize, Vec<Process>) {
    let all = procfs::processes().unwrap();
    let is_left = |it: &&Process| it.is_alive() && is_below(&all, it, root);
    let left: Vec<Process> = all.iter().filter(is_left).cloned().collect();
    let count = left.len();
    let living = left.into_iter().filter(|it| !is_killed(it.pid));
    (count, living.collect())
}

fn is_below(all: &[Process], process: &Process, root: i32) -> bool {
    let mut parent = process.parent;
    while parent != root {
        let Some(next) = all.iter().find(|it| it.pid == parent) else {
            return false;
        };
        parent = next.parent;
    }
    true
}

/// True also of a process that has ended.
fn is_killed(pid: i32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else {
        return true;
    };
    let has_kill = |name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let set = u64::from_str_radix(line.unwrap().trim(), 16).unwrap();
        set & KILL_BIT != 0
    };
    has_kill("SigPnd:") || has_kill("ShdPnd:") || is_ending(pid)
}

fn is_ending(pid: i32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return true;
    };
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let flags: u64 = fields.split(' ').nth(6).unwrap().parse().unwrap();
    flags & EXITING != 0
}
