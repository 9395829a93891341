//! What tokenrun costs on Redis, over its Unix socket: a run of `true` and a refusal next to `flock
//! -n` and to `redis-cli ping`, and the time from one job to the next in the queue.
//!
//! `cargo bench --bench redis` prints two tables. Each line of the first is the median of interleaved
//! turns: what else the machine does slows all sides of a turn. The server keeps nothing on a disk.
//! Then a thousand runs hold a token each for two minutes (`-- holders 100 30`: this alone, with a
//! hundred, for 30 seconds).

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod common;
#[path = "redis/holders.rs"]
mod holders;
// The fixture for the tests; not all of it is used here.
#[allow(dead_code, unused_imports, clippy::panic)]
#[path = "../src/store/redis/test_server.rs"]
mod server;

use std::process::{Command, Stdio};
use std::time::Duration;

use common::etcd::Etcd;
use common::handover::handover;
use common::processes::{HOLDING, Holder, timed};
use common::{Folder, median, milliseconds};
use server::Server;

/// Turns per line; the first tenth is not counted.
const TURNS: usize = 300;

/// Hand-overs per line; the first tenth is not counted.
const TIMES: usize = 200;

fn main() {
    let folder = Folder::new("redis");
    let server = Server::start(&[]);
    settle(&folder, &server);
    if !std::env::args().any(|word| word == "holders") {
        measure_one(&folder, &server);
    }
    holders::hold(&folder, &server);
}

/// A run, a refusal and a hand-over.
fn measure_one(folder: &Folder, server: &Server) {
    println!("{TURNS} interleaved turns each; medians in ms\n");
    println!(
        "| what | tokenrun | flock | ratio | bound | aim | redis-cli ping and `true` | ratio | bound |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    wrapping_true(folder, server);
    being_refused(folder, server);
    println!("\n{TIMES} hand-overs each, in ms\n");
    println!("| from one job to the next | median | p95 | bound |");
    println!("|---|---|---|---|");
    handing_over(folder, server);
}

/// An operator says that nothing was lost: the server has been up for a moment only.
fn settle(folder: &Folder, server: &Server) {
    let info = server.cli(&["INFO", "server"]);
    let run = info.lines().find_map(|line| line.strip_prefix("run_id:"));
    let mut settle = Command::new(folder.tokenrun());
    settle.args(["settle", &run.expect("a run id")[..16], "-s", &server.url()]);
    assert!(settle.stderr(Stdio::null()).status().unwrap().success());
}

fn tokenrun(folder: &Folder, server: &Server, words: &[&str]) -> Command {
    let mut command = Command::new(folder.tokenrun());
    command.args(["-q", "-s", &server.url(), "-g", "g", "--keep=0"]);
    command.args(words);
    command
}

fn flock(folder: &Folder, words: &[&str]) -> Command {
    let mut command = Command::new("flock");
    command.arg("-n").arg(folder.file("lock")).args(words);
    command
}

/// What a shell does without a lock: it asks the server, and starts `true`.
fn ping(server: &Server) -> Command {
    let mut command = Command::new("sh");
    let script = "redis-cli -s \"$0\" ping > /dev/null; /bin/true; :";
    command.args(["-c", script]).arg(server.socket());
    command
}

fn wrapping_true(folder: &Folder, server: &Server) {
    let turn = || {
        [
            timed(tokenrun(folder, server, &["--", "true"]), true),
            timed(flock(folder, &["true"]), true),
            timed(ping(server), true),
        ]
    };
    line("a run of `true`", turn, "2.2 | 1.8");
}

fn being_refused(folder: &Folder, server: &Server) {
    let mut ours = tokenrun(folder, server, &["--client-id=other", "--"]);
    ours.args(HOLDING);
    let mut holders = [ours, flock(folder, &HOLDING)].map(Holder::start);
    let turn = || {
        [
            timed(tokenrun(folder, server, &["--", "true"]), false),
            timed(flock(folder, &["true"]), false),
            timed(ping(server), true),
        ]
    };
    line("being refused", turn, "1.6 |");
    for holder in &mut holders {
        holder.end();
    }
}

fn line(what: &str, turn: impl Fn() -> [Duration; 3], bound: &str) {
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for number in 0..TURNS + TURNS / 10 {
        for (times, time) in times.iter_mut().zip(turn()) {
            if number >= TURNS / 10 {
                times.push(time);
            }
        }
    }
    let [ours, flock, ping] = times.map(median).map(milliseconds);
    println!(
        "| {what} | {ours:.2} | {flock:.2} | {:.2} | {bound} | {ping:.2} | {:.2} | 0.8 |",
        ours / flock,
        ours / ping
    );
}

fn handing_over(folder: &Folder, server: &Server) {
    let line = |what: &str, bound: &str, tool: &dyn Fn() -> Command| {
        let took = handover(what, TIMES, folder, |job| {
            let mut command = tool();
            command.args(job);
            command
        });
        println!(
            "| {what} | {:.1} | {:.1} | {bound} |",
            took.median, took.p95
        );
    };
    line("tokenrun, Redis", "4", &|| {
        tokenrun(folder, server, &["--wait", "--"])
    });
    line("flock", "", &|| {
        let mut command = Command::new("flock");
        command.arg(folder.file("line"));
        command
    });
    if let Some(etcd) = Etcd::start(folder) {
        line("etcdctl lock", "", &|| {
            etcd.client().lock("g", Duration::from_secs(10))
        });
    }
}
