//! What tokenrun costs, as a ratio to `flock` in the same run, and what its start costs, as a
//! ratio to that of `true`.
//!
//! `cargo bench --bench overhead` prints a table. Each line is the median of
//! interleaved pairs: what else the machine does slows both sides of a pair.

#![allow(clippy::expect_used)]

mod common;

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::processes::{HOLDING, Holder, children, pss_kib, timed};
use common::{Folder, median, milliseconds};

/// Pairs per line; the first tenth is not counted.
const PAIRS: usize = 300;

fn main() {
    let folder = Folder::new("overhead");
    println!("{PAIRS} interleaved pairs each; medians in ms; the ratio is to flock\n");
    println!("| what | tokenrun | flock | ratio | bound | aim |");
    println!("|---|---|---|---|---|---|");
    wrapping_true(&folder);
    being_refused(&folder);
    println!("\n| start | tokenrun | true | ratio | bound |\n|---|---|---|---|---|");
    starting(&folder);
    println!("\n| what | MiB | bound |\n|---|---|---|");
    memory(&folder);
    println!("\n| page faults | tokenrun | flock |\n|---|---|---|");
    page_faults(&folder);
}

/// Token, history, guard and release included.
fn wrapping_true(folder: &Folder) {
    let lock = folder.file("lock");
    let store = folder.file("wrap.db");
    let line = pairs(
        || tokenrun(folder, &store, &["--", "true"]),
        || flock(&lock, &["true"]),
        true,
    );
    line.print("wrapping `true`", "1.85 | 1.6");
}

/// Another holds the token.
fn being_refused(folder: &Folder) {
    let lock = folder.file("held-lock");
    let store = folder.file("held.db");
    let mut ours = tokenrun(folder, &store, &["--client-id", "other", "--"]);
    ours.args(HOLDING);
    let mut holders = [flock(&lock, &HOLDING), ours].map(Holder::start);
    let line = pairs(
        || tokenrun(folder, &store, &["-q", "--", "true"]),
        || flock(&lock, &["true"]),
        false,
    );
    line.print("being refused, recorded before", "1.35 | 1.2");
    // Each client is refused for the first time, and writes that.
    let clients = Cell::new(0_u32);
    let client = || {
        clients.set(clients.get() + 1);
        format!("client-{}", clients.get())
    };
    let line = pairs(
        || {
            tokenrun(
                folder,
                &store,
                &["-q", "--client-id", &client(), "--", "true"],
            )
        },
        || flock(&lock, &["true"]),
        false,
    );
    line.print("being refused, and recorded", "1.6 | 1.4");
    for holder in &mut holders {
        holder.end();
    }
}

/// `--version`, which needs nothing but to be loaded and to read its words.
fn starting(folder: &Folder) {
    let quiet = |program: &Path| {
        let mut command = Command::new(program);
        command.arg("--version").stdout(Stdio::null());
        command
    };
    let ours = folder.tokenrun();
    for other in ["true", "/usr/bin/true"] {
        let line = pairs(|| quiet(&ours), || quiet(Path::new(other)), true);
        line.print(&format!("`--version`, next to {other}"), "1.2");
    }
}

/// Supervisor and guard together, while a job sleeps.
fn memory(folder: &Folder) {
    let store = folder.file("memory.db");
    let mut command = tokenrun(folder, &store, &["--"]);
    command.args(HOLDING);
    let mut holder = Holder::start(command);
    let supervisor = holder.child.id();
    let guard = children(supervisor).first().copied().expect("a guard");
    let sum = pss_kib(supervisor) + pss_kib(guard);
    println!(
        "| PSS of supervisor and guard | {:.1} | 6 |",
        sum as f64 / 1024.0
    );
    holder.end();
}

/// Of all processes of a run of `true`.
fn page_faults(folder: &Folder) {
    let (store, lock) = (folder.file("wrap.db"), folder.file("lock"));
    let ours = faults_of(|| tokenrun(folder, &store, &["--", "true"]));
    let theirs = faults_of(|| flock(&lock, &["true"]));
    println!("| wrapping `true` | {ours} | {theirs} |");
}

/// The median of the minor page faults of a program and what it has waited for.
fn faults_of(command: impl Fn() -> Command) -> u64 {
    let waited_for = || {
        let stat = fs::read_to_string("/proc/self/stat").expect("proc(5)");
        let (_, fields) = stat.rsplit_once(") ").expect("a name in parentheses");
        let count = fields.split(' ').nth(8).and_then(|it| it.parse().ok());
        count.unwrap_or(0_u64)
    };
    let mut counts: Vec<u64> = (0..PAIRS)
        .map(|_| {
            let before = waited_for();
            timed(command(), true);
            waited_for() - before
        })
        .collect();
    counts.sort_unstable();
    counts[PAIRS / 2]
}

fn tokenrun(folder: &Folder, store: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(folder.tokenrun());
    command.arg("-s").arg(store).args(["-g", "g"]).args(words);
    command
}

fn flock(lock: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("flock");
    command.arg("-n").arg(lock).args(words);
    command
}

struct Line {
    ours: Duration,
    theirs: Duration,
}

impl Line {
    fn print(&self, what: &str, bounds: &str) {
        let (ours, theirs) = (milliseconds(self.ours), milliseconds(self.theirs));
        let ratio = ours / theirs;
        println!("| {what} | {ours:.2} | {theirs:.2} | {ratio:.2} | {bounds} |");
    }
}

fn pairs(ours: impl Fn() -> Command, theirs: impl Fn() -> Command, succeed: bool) -> Line {
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS + PAIRS / 10 {
        let times = [timed(ours(), succeed), timed(theirs(), succeed)];
        if pair >= PAIRS / 10 {
            one.push(times[0]);
            other.push(times[1]);
        }
    }
    Line {
        ours: median(one),
        theirs: median(other),
    }
}
