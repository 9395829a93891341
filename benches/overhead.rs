//! What tokenrun costs, as a ratio to `flock` in the same run.
//!
//! `cargo bench --bench overhead` prints a table. Each line is the median of
//! interleaved pairs: what else the machine does slows both sides of a pair.

#![allow(clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Pairs per line; the first tenth is not counted.
const PAIRS: usize = 300;

/// The name of the copy of tokenrun that is measured.
const INSTALLED: &str = "tokenrun";

fn main() {
    let folder = Folder::new();
    println!("{PAIRS} interleaved pairs each; medians in ms; the ratio is to flock\n");
    println!("| what | tokenrun | flock | ratio | bound | aim |");
    println!("|---|---|---|---|---|---|");
    wrapping_true(&folder);
    being_refused(&folder);
    println!("\n| what | MiB | bound |\n|---|---|---|");
    memory(&folder);
}

/// Token, history, guard and release included.
fn wrapping_true(folder: &Folder) {
    let lock = folder.file("lock");
    let store = folder.file("wrap.db");
    let line = pairs(
        || {
            tokenrun(&store, "g")
                .args(["--", "true"])
                .to_owned_command()
        },
        || flock(&lock).arg("true").to_owned_command(),
        0,
    );
    line.print("wrapping `true`", "1.9", "1.5");
}

/// Another holds the token.
fn being_refused(folder: &Folder) {
    let lock = folder.file("held-lock");
    let store = folder.file("held.db");
    let mut holders = [
        Holder::start(
            flock(&lock)
                .args(["sh", "-c", "echo; read line"])
                .to_owned_command(),
        ),
        Holder::start(
            tokenrun(&store, "g")
                .args(["--client-id", "other", "--", "sh", "-c", "echo; read line"])
                .to_owned_command(),
        ),
    ];
    let line = pairs(
        || {
            tokenrun(&store, "g")
                .args(["-q", "--", "true"])
                .to_owned_command()
        },
        || flock(&lock).arg("true").to_owned_command(),
        1,
    );
    line.print("being refused", "2.0", "1.5");
    for holder in &mut holders {
        holder.end();
    }
}

/// Supervisor and guard together, while a job sleeps.
fn memory(folder: &Folder) {
    let store = folder.file("memory.db");
    let mut holder = Holder::start(
        tokenrun(&store, "g")
            .args(["--", "sh", "-c", "echo; read line"])
            .to_owned_command(),
    );
    let supervisor = holder.child.id();
    let guard = children(supervisor).first().copied().expect("a guard");
    let sum = pss_kib(supervisor) + pss_kib(guard);
    println!(
        "| PSS of supervisor and guard | {:.1} | 8 |",
        sum as f64 / 1024.0
    );
    holder.end();
}

/// On a copy, as whoever installs tokenrun has one: what a linker has written lies in the
/// page cache in the smallest pieces, and its page faults take an eighth longer.
fn tokenrun(store: &Path, group: &str) -> Command {
    let mut command = Command::new(store.with_file_name(INSTALLED));
    command.arg("-s").arg(store).args(["-g", group]);
    command
}

fn flock(lock: &Path) -> Command {
    let mut command = Command::new("flock");
    command.arg("-n").arg(lock);
    command
}

trait ToOwnedCommand {
    fn to_owned_command(&mut self) -> Command;
}

impl ToOwnedCommand for Command {
    fn to_owned_command(&mut self) -> Command {
        std::mem::replace(self, Command::new("true"))
    }
}

struct Line {
    ours: Duration,
    theirs: Duration,
}

impl Line {
    fn print(&self, what: &str, bound: &str, aim: &str) {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        let ratio = ms(self.ours) / ms(self.theirs);
        let (ours, theirs) = (ms(self.ours), ms(self.theirs));
        println!("| {what} | {ours:.2} | {theirs:.2} | {ratio:.2} | {bound} | {aim} |");
    }
}

fn pairs(ours: impl Fn() -> Command, theirs: impl Fn() -> Command, code_is_error: i32) -> Line {
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS + PAIRS / 10 {
        let times = [timed(ours(), code_is_error), timed(theirs(), code_is_error)];
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

fn timed(mut command: Command, fails: i32) -> Duration {
    let begun = Instant::now();
    let status = command
        .status()
        .expect("the command starts (is util-linux installed?)");
    let took = begun.elapsed();
    assert_eq!(status.success(), fails == 0, "{command:?}: {status}");
    took
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// A process that holds something until its standard input ends.
struct Holder {
    child: Child,
}

impl Holder {
    /// Waits until it holds: it prints a line then.
    fn start(mut command: Command) -> Self {
        use std::io::Read;
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut line = [0];
        let out = child.stdout.as_mut().expect("a pipe");
        out.read_exact(&mut line).expect("it holds");
        Self { child }
    }

    fn end(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().expect("it ends");
    }
}

fn children(of: u32) -> Vec<u32> {
    let path = format!("/proc/{of}/task/{of}/children");
    let text = fs::read_to_string(path).expect("/proc shows children");
    text.split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

fn pss_kib(pid: u32) -> u64 {
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

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("tokenrun-bench-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary directory");
        let built = env!("CARGO_BIN_EXE_tokenrun");
        fs::copy(built, path.join(INSTALLED)).expect("a copy of tokenrun");
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
