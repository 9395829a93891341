//! What tokenrun costs on etcd, with one server and with three: a run of `true`, and hand-overs, next to `etcdctl
//! lock` on the same servers.
//!
//! `cargo bench --bench etcd` prints a table. Each line is of interleaved turns: what else the machine does slows both
//! sides of a turn.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod common;
// The fixture for the tests; not all of it is used here.
#[allow(dead_code, unused_imports, clippy::panic)]
#[path = "../src/store/etcd/test_server.rs"]
mod server;

use std::process::Command;

use common::handover::handover;
use common::processes::timed;
use common::{Folder, init, median, milliseconds};
use server::{Cluster, program};

/// Turns per line; the first tenth is not counted.
const TURNS: usize = 150;

fn main() {
    let folder = Folder::new("etcd");
    println!("{TURNS} interleaved turns each; medians in ms\n");
    println!("| what | tokenrun | etcdctl lock | ratio | bound |");
    println!("|---|---|---|---|---|");
    for servers in [1, 3] {
        let cluster = Cluster::start(servers);
        let url = cluster.url();
        init(&folder, &url);
        let ours = |waits: bool, job: &[&str]| {
            let mut command = Command::new(folder.tokenrun());
            command.args(["-q", "-s", &url, "-g", "g", "--keep=0"]);
            command.args(waits.then_some("--wait"));
            command.arg("--").args(job);
            command
        };
        let theirs = |job: &[&str]| {
            let mut command = Command::new(program("etcdctl"));
            command.env("ETCDCTL_API", "3");
            command.arg(format!("--endpoints={}", cluster.endpoints()));
            command.args(["lock", "l", "--"]).args(job);
            command
        };
        let mut times = [Vec::new(), Vec::new()];
        for number in 0..TURNS + TURNS / 10 {
            let turn = [ours(false, &["true"]), theirs(&["true"])];
            for (times, command) in times.iter_mut().zip(turn) {
                let time = timed(command, true);
                if number >= TURNS / 10 {
                    times.push(time);
                }
            }
        }
        let [run, lock] = times.map(median).map(milliseconds);
        line(
            &format!("a run of `true`, servers: {servers}"),
            run,
            lock,
            "0.35",
        );
        let run = handover("tokenrun", TURNS, &folder, |job| ours(true, job));
        let lock = handover("etcdctl lock", TURNS, &folder, theirs);
        let what = format!("from one job to the next, servers: {servers}");
        line(&what, run.median, lock.median, "1");
    }
}

fn line(what: &str, ours: f64, theirs: f64, bound: &str) {
    println!(
        "| {what} | {ours:.2} | {theirs:.2} | {:.2} | {bound} |",
        ours / theirs
    );
}
