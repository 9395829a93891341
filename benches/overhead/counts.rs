//! Counts of what a command costs, with all processes that it waits for.

use std::fs;
use std::process::{Command, Stdio};

use crate::common::processes::{in_short_paths, run};

/// How often page faults are counted.
const TIMES: usize = 101;

/// How often system calls are counted: strace is slow, and they differ less.
const TRACED: usize = 11;

/// What may not be exceeded.
pub(crate) struct Bounds {
    pub(crate) faults: u64,
    pub(crate) calls: u64,
    pub(crate) maps: u64,
}

/// Medians of a command's counts.
pub(crate) struct Counts {
    faults: u64,
    calls: u64,
    /// The calls of mmap and munmap among them.
    maps: u64,
}

impl Counts {
    pub(crate) fn of(command: impl Fn() -> Command) -> Self {
        // What the first run of a store makes is not counted.
        run(&mut command());
        let faults = (0..TIMES).map(|_| faults_of(&mut command())).collect();
        let traced: Vec<[u64; 2]> = (0..TRACED).map(|_| calls_of(&command())).collect();
        Self {
            faults: median(faults),
            calls: median(traced.iter().map(|counts| counts[0]).collect()),
            maps: median(traced.iter().map(|counts| counts[1]).collect()),
        }
    }

    /// Prints a line of the table. True if a bound is exceeded.
    pub(crate) fn print(&self, what: &str, bounds: &Bounds) -> bool {
        let pairs = [
            (self.faults, bounds.faults),
            (self.calls, bounds.calls),
            (self.maps, bounds.maps),
        ];
        let cells = pairs.map(|(count, bound)| format!("{count} | {bound}"));
        let is_exceeded = pairs.iter().any(|(count, bound)| count > bound);
        let remark = if is_exceeded { " exceeded" } else { "" };
        println!("| {what} | {} |{remark}", cells.join(" | "));
        is_exceeded
    }
}

fn median(mut counts: Vec<u64>) -> u64 {
    counts.sort_unstable();
    counts[counts.len() / 2]
}

/// The minor page faults of a command and of what it has waited for.
fn faults_of(command: &mut Command) -> u64 {
    let waited_for = || {
        let stat = fs::read_to_string("/proc/self/stat").expect("proc(5)");
        let (_, fields) = stat.rsplit_once(") ").expect("a name in parentheses");
        let count = fields.split(' ').nth(8).and_then(|it| it.parse().ok());
        count.unwrap_or(0_u64)
    };
    let before = waited_for();
    run(command);
    waited_for() - before
}

/// The system calls of a command and all its processes, and those of mmap and munmap among them.
fn calls_of(command: &Command) -> [u64; 2] {
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq", "-c", "-U", "calls,name"]);
    traced.arg(command.get_program()).args(command.get_args());
    let traced = in_short_paths(traced.stdout(Stdio::null()));
    let output = traced.output().expect("strace is installed");
    let text = String::from_utf8_lossy(&output.stderr);
    let calls: Vec<(u64, &str)> = text
        .lines()
        .filter_map(|line| line.trim().split_once(char::is_whitespace))
        .filter_map(|(count, name)| Some((count.parse().ok()?, name.trim())))
        .filter(|(_, name)| *name != "total")
        .collect();
    let maps = calls
        .iter()
        .filter(|(_, name)| ["mmap", "munmap"].contains(name));
    let all = calls.iter().map(|(count, _)| count).sum();
    assert!(all > 0, "strace counts nothing: {text}");
    [all, maps.map(|(count, _)| count).sum()]
}
