//! What tokenrun costs on Redis, over its Unix socket: a run of `true` and a refusal next to `flock
//! -n` and to `redis-cli ping`; and on a majority of three and of five servers next to one, over TCP.
//!
//! `cargo bench --bench redis` prints a table. Each line is the median of interleaved turns: what else the
//! machine does slows all sides of a turn. The server keeps nothing on a disk.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod common;
// The fixture for the tests; not all of it is used here.
#[allow(dead_code, unused_imports, clippy::panic)]
#[path = "../src/store/redis/test_server.rs"]
mod server;

use std::process::Command;
use std::time::Duration;

use common::processes::{HOLDING, Holder, timed};
use common::{Folder, median, milliseconds, settle};
use server::{Quorum, Server};

/// Turns per line; the first tenth is not counted.
const TURNS: usize = 300;

fn main() {
    let folder = Folder::new("redis");
    let server = Server::start(&[]);
    settle(&folder, &server.cli(&["INFO", "server"]), &server.url());
    println!("{TURNS} interleaved turns each; medians in ms\n");
    println!(
        "| what | tokenrun | flock | ratio | bound | aim | redis-cli ping and `true` | ratio | bound |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    wrapping_true(&folder, &server);
    being_refused(&folder, &server);
    a_majority(&folder, &server);
}

fn tokenrun(folder: &Folder, server: &Server, words: &[&str]) -> Command {
    tokenrun_on(folder, &server.url(), words)
}

fn tokenrun_on(folder: &Folder, url: &str, words: &[&str]) -> Command {
    let mut command = Command::new(folder.tokenrun());
    command.args(["-q", "-s", url, "-g", "g", "--keep=0"]);
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
    line("a run of `true`", turn, "1.6 | 1.4");
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
    line("being refused", turn, "1.35 | 1.2");
    for holder in &mut holders {
        holder.end();
    }
}

/// One server, three and five.
fn a_majority(folder: &Folder, server: &Server) {
    let quorums = [3, 5].map(Quorum::start);
    let [three, five] = quorums.each_ref().map(|it| it.url("bench"));
    for url in [&three, &five] {
        let mut init = Command::new(folder.tokenrun());
        init.args(["init", "-s", url]);
        timed(init, true);
    }
    let urls = [server.tcp_url(), three, five];
    println!("\n| what | one server | of three | ratio | bound | of five | ratio | bound |");
    println!("|---|---|---|---|---|---|---|---|");
    let run = || {
        urls.each_ref()
            .map(|url| timed(tokenrun_on(folder, url, &["--", "true"]), true))
    };
    majority_line("a run of `true`", run);
    let mut words = vec!["--client-id=other", "--"];
    words.extend(HOLDING);
    let mut holders = urls
        .each_ref()
        .map(|url| Holder::start(tokenrun_on(folder, url, &words)));
    let refusal = || {
        urls.each_ref()
            .map(|url| timed(tokenrun_on(folder, url, &["--", "true"]), false))
    };
    majority_line("being refused", refusal);
    for holder in &mut holders {
        holder.end();
    }
}

fn majority_line(what: &str, turn: impl Fn() -> [Duration; 3]) {
    let [one, three, five] = medians(turn);
    println!(
        "| {what} | {one:.2} | {three:.2} | {:.2} | 1.3 | {five:.2} | {:.2} | 1.6 |",
        three / one,
        five / one
    );
}

fn medians(turn: impl Fn() -> [Duration; 3]) -> [f64; 3] {
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for number in 0..TURNS + TURNS / 10 {
        for (times, time) in times.iter_mut().zip(turn()) {
            if number >= TURNS / 10 {
                times.push(time);
            }
        }
    }
    times.map(median).map(milliseconds)
}

fn line(what: &str, turn: impl Fn() -> [Duration; 3], bound: &str) {
    let [ours, flock, ping] = medians(turn);
    println!(
        "| {what} | {ours:.2} | {flock:.2} | {:.2} | {bound} | {ping:.2} | {:.2} | 0.8 |",
        ours / flock,
        ours / ping
    );
}
