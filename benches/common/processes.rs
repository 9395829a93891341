//! Processes: how long they take, what they use, and one that holds something.

use std::fs;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a command takes. Whether it succeeds must be as is said.
pub(crate) fn timed(mut command: Command, succeeds: bool) -> Duration {
    let begun = Instant::now();
    let status = run(&mut command);
    let took = begun.elapsed();
    assert_eq!(status.success(), succeeds, "{command:?}: {status}");
    took
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> ExitStatus {
    let status = in_short_paths(command).status();
    status.expect("the command starts (is util-linux installed?)")
}

/// Programs and libraries are found at once: the search in a long PATH would be measured too. Cargo has a path of
/// libraries, in which every dynamic program but no static one would look.
pub(crate) fn in_short_paths(command: &mut Command) -> &mut Command {
    command.env("PATH", "/usr/bin:/bin");
    command.env_remove("LD_LIBRARY_PATH")
}

/// A process that holds something until its standard input ends.
pub(crate) struct Holder {
    pub(crate) child: Child,
}

/// A job that says when it has begun, and ends with its standard input.
pub(crate) const HOLDING: [&str; 3] = ["sh", "-c", "echo; read line"];

impl Holder {
    /// Waits until it holds: it prints a line then.
    pub(crate) fn start(mut command: Command) -> Self {
        use std::io::Read as _;
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().expect("the command starts");
        let out = child.stdout.as_mut().expect("a pipe");
        out.read_exact(&mut [0]).expect("it holds");
        Self { child }
    }

    pub(crate) fn end(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().expect("it ends");
    }
}

/// Those that any of its threads has started.
pub(crate) fn children(of: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{of}/task"))
        .into_iter()
        .flatten();
    let texts = threads
        .flatten()
        .map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    texts
        .flat_map(|text| {
            let words = text.split_whitespace();
            words
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect()
}

/// The memory of a process, what it shares with others counted in parts.
pub(crate) fn pss_kib(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("/proc shows memory");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Pss:"))
        .expect("a line");
    line.trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number")
}

/// All threads' time, to the nanosecond: /proc/PID/stat counts in hundredths of a second.
pub(crate) fn processor_seconds(pid: u32) -> f64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("/proc shows threads");
    let nanos = tasks.map(|task| {
        let path = task.expect("a thread").path().join("schedstat");
        let text = fs::read_to_string(path).unwrap_or_default();
        text.split(' ')
            .next()
            .and_then(|n| n.parse::<f64>().ok())
            .unwrap_or(0.0)
    });
    nanos.sum::<f64>() / 1e9
}
