//! Hand-overs: the time from the last line of one job to the first line of the next, by the
//! jobs' own clocks.

use std::collections::VecDeque;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::Folder;

/// What the jobs run: the time when it begins, a while in which the next gets into the queue,
/// the time when it ends. In the shell itself, as precisely as bash can.
const JOB: &str = "echo b $EPOCHREALTIME >> \"$0\"; sleep 0.06; echo e $EPOCHREALTIME >> \"$0\"";

/// What hand-overs took, in milliseconds.
pub(crate) struct Handover {
    pub(crate) median: f64,
    pub(crate) p95: f64,
}

/// Three at a time: one runs, and two are in the queue. The first tenth is not counted. The tool
/// waits in the queue, and runs the words that it is given.
pub(crate) fn handover(
    what: &str,
    times: usize,
    folder: &Folder,
    tool: impl Fn(&[&str]) -> Command,
) -> Handover {
    let log = folder.file("log");
    let _ = fs::remove_file(&log);
    let start = || -> Child {
        let mut command = tool(&["bash", "-c", JOB, log.to_str().expect("a path")]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.spawn().expect("it starts")
    };
    let mut running: VecDeque<Child> = (0..3).map(|_| start()).collect();
    for _ in 0..times + times / 10 {
        // They come in the order of their arrival; where they do not, the last may have
        // ended already.
        let mut first = running.pop_front().expect("three run");
        // The next one starts while a job runs: its own start is no part of a hand-over.
        let status = first.wait().expect("it ends");
        std::thread::sleep(Duration::from_millis(25));
        running.push_back(start());
        assert!(status.success(), "{what}");
    }
    for mut child in running {
        child.wait().expect("it ends");
    }
    let text = fs::read_to_string(&log).expect("the jobs wrote");
    let stamps: Vec<(&str, f64)> = text.lines().map(stamp).collect();
    let mut gaps: Vec<f64> = stamps
        .windows(2)
        .filter(|pair| pair[0].0 == "e" && pair[1].0 == "b")
        .map(|pair| (pair[1].1 - pair[0].1) * 1_000.0)
        .skip(times / 10)
        .collect();
    assert!(
        gaps.len() >= times,
        "{what}: jobs overlap: {} gaps",
        gaps.len()
    );
    gaps.sort_by(f64::total_cmp);
    Handover {
        median: gaps[gaps.len() / 2],
        p95: gaps[gaps.len() * 95 / 100],
    }
}

fn stamp(line: &str) -> (&str, f64) {
    let (word, time) = line.split_once(' ').expect("two words");
    (word, time.replace(',', ".").parse().expect("a time"))
}
