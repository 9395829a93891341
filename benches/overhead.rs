//! What tokenrun costs: counts of page faults and system calls, times as ratios to `flock` in the same
//! run, and memory, with both C libraries.
//!
//! `cargo bench --bench overhead` builds both programs, prints tables, and fails if a count exceeds its
//! bound: counts are the same on every machine, times are not. Each time is the median of interleaved
//! pairs: what else the machine does slows both sides of a pair. `strace` and `flock` must be installed.

#![allow(clippy::expect_used)]

mod common;
#[path = "overhead/counts.rs"]
mod counts;

use std::cell::Cell;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use common::processes::{HOLDING, Holder, children, pss_kib, timed};
use common::{Folder, median, milliseconds};
use counts::{Bounds, Counts};

/// Pairs per line; the first tenth is not counted.
const PAIRS: usize = 300;

/// The C libraries that tokenrun is linked with. The first is the released program's.
const LIBCS: [&str; 2] = ["musl", "gnu"];

/// What a run of `true` may cost.
const RUN: Bounds = Bounds {
    faults: 300,
    calls: 290,
    maps: 20,
};

/// What a refusal may cost.
const REFUSAL: Bounds = Bounds {
    faults: 130,
    calls: 120,
    maps: 20,
};

fn main() -> ExitCode {
    let programs = LIBCS.map(|libc| {
        let folder = Folder::of_libc("overhead", libc);
        (libc, folder)
    });
    println!("| counts | page faults | bound | system calls | bound | mmap and munmap | bound |");
    println!("|---|---|---|---|---|---|---|");
    let mut is_exceeded = false;
    for (libc, folder) in &programs {
        is_exceeded |= counted(libc, folder);
    }
    println!("\n{PAIRS} interleaved pairs each; medians in ms; the ratio is to flock\n");
    println!("| what | tokenrun | flock | ratio | bound | aim |");
    println!("|---|---|---|---|---|---|");
    for (libc, folder) in &programs {
        wrapping_true(libc, folder);
        being_refused(libc, folder);
    }
    println!("\n| start | tokenrun | true | ratio | bound |\n|---|---|---|---|---|");
    for (libc, folder) in &programs {
        starting(libc, folder);
    }
    println!("\n| what | MiB | bound | aim |\n|---|---|---|---|");
    for (libc, folder) in &programs {
        memory(libc, folder);
    }
    ExitCode::from(u8::from(is_exceeded))
}

/// Prints the counts of a run and of a refusal. True if one exceeds its bound.
fn counted(libc: &str, folder: &Folder) -> bool {
    let (free, held) = (folder.file("counted.db"), folder.file("counted-held.db"));
    let mut ours = tokenrun(folder, &held, &["--client-id", "other", "--"]);
    ours.args(HOLDING);
    let mut holder = Holder::start(ours);
    let lines = [
        ("wrapping `true`", &free, &RUN),
        ("being refused, recorded before", &held, &REFUSAL),
    ];
    let exceeded = lines.map(|(what, store, bounds)| {
        let counts = Counts::of(|| tokenrun(folder, store, &["-q", "--", "true"]));
        counts.print(&format!("{what}, {}", libc), bounds)
    });
    holder.end();
    exceeded.contains(&true)
}

/// Token, history, guard and release included.
fn wrapping_true(libc: &str, folder: &Folder) {
    let lock = folder.file("lock");
    let store = folder.file("wrap.db");
    let line = pairs(
        || tokenrun(folder, &store, &["--", "true"]),
        || flock(&lock, &["true"]),
        true,
    );
    line.print(&format!("wrapping `true`, {}", libc), "1.85 | 1.6");
}

/// Another holds the token.
fn being_refused(libc: &str, folder: &Folder) {
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
    let what = format!("being refused, recorded before, {}", libc);
    line.print(&what, "1.35 | 1.2");
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
    let what = format!("being refused, and recorded, {}", libc);
    line.print(&what, "1.6 | 1.4");
    for holder in &mut holders {
        holder.end();
    }
}

/// `--version`, which needs nothing but to be loaded and to read its words.
fn starting(libc: &str, folder: &Folder) {
    let quiet = |program: &Path| {
        let mut command = Command::new(program);
        command.arg("--version").stdout(Stdio::null());
        command
    };
    let ours = folder.tokenrun();
    for other in ["true", "/usr/bin/true"] {
        let line = pairs(|| quiet(&ours), || quiet(Path::new(other)), true);
        let what = format!("`--version`, {}, next to {other}", libc);
        line.print(&what, "1.2");
    }
}

/// Supervisor and guard together, while a job sleeps.
fn memory(libc: &str, folder: &Folder) {
    let store = folder.file("memory.db");
    let mut command = tokenrun(folder, &store, &["--"]);
    command.args(HOLDING);
    let mut holder = Holder::start(command);
    let supervisor = holder.child.id();
    let guard = children(supervisor).first().copied().expect("a guard");
    let sum = pss_kib(supervisor) + pss_kib(guard);
    println!(
        "| PSS of supervisor and guard, {} | {:.1} | 6 | 4 |",
        libc,
        sum as f64 / 1024.0
    );
    holder.end();
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
