//! What a run costs on MariaDB, as a ratio to `mariadb -e 'select 1'` in the same run.
//!
//! `cargo bench --bench mysql` prints a table. Each line is the median of interleaved pairs: what
//! else the machine does slows both sides of a pair. The server is one of the bench's own, on a disk
//! that it waits for. It ends with the bench, however that ends.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod common;
// The fixture for the tests; not all of it is used here.
#[allow(dead_code, unused_imports, clippy::panic)]
#[path = "../src/store/mysql/test_server.rs"]
mod server;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Folder, median, milliseconds};
use server::{Server, program};

/// Pairs per line; the first tenth is not counted.
const PAIRS: usize = 300;

/// A client's thread of the server ends a little after its client.
const PAUSE: Duration = Duration::from_millis(2);

fn main() {
    let folder = Folder::new("mysql");
    // The tests' server does not wait for its disk.
    let server = Server::start(&["innodb_flush_method = fsync"]);
    let database = server.database();
    let url = database.url();
    println!("{}", server.sql("mysql", "SELECT VERSION()"));
    println!("{PAIRS} interleaved pairs; medians in ms; the ratio is to `mariadb -e 'select 1'`\n");
    println!("| | tokenrun | mariadb | ratio | bound | aim |");
    println!("|---|---|---|---|---|---|");
    let run = |group: &str| {
        let mut command = Command::new(folder.tokenrun());
        command.args(["-q", "-s", &url, "-g", group, "--", "true"]);
        command
    };
    let client = || {
        let mut command = Command::new(program("mariadb"));
        // Both read the option files of this machine.
        command.args(["-u", "root", "-e", "select 1"]);
        command.arg(format!("--socket={}", server.socket().display()));
        command
    };
    line(
        "a run of `true`, Unix socket",
        ["0.9", "0.8"],
        0,
        &|| run("g"),
        &client,
    );
    // The job of the holder lasts as long as this process holds its standard input.
    let mut holder = Command::new(folder.tokenrun())
        .args(["-q", "-s", &url, "-g", "held", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("tokenrun starts");
    let held =
        "SELECT COUNT(*) FROM tokenrun_tokens WHERE token_group = 'held' AND state = 'running'";
    while database.sql(held) != "1" {
        std::thread::sleep(PAUSE);
    }
    line(
        "a refused run, Unix socket",
        ["", ""],
        75,
        &|| run("held"),
        &client,
    );
    drop(holder.stdin.take());
    assert!(holder.wait().expect("it ends").success());
}

/// Times both commands in turns, and prints a line of the table. `code`: how tokenrun ends.
fn line(
    what: &str,
    [bound, aim]: [&str; 2],
    code: i32,
    ours: &dyn Fn() -> Command,
    theirs: &dyn Fn() -> Command,
) {
    let mut times = [Vec::new(), Vec::new()];
    for pair in 0..PAIRS + PAIRS / 10 {
        let pair_times = [timed(ours(), code), timed(theirs(), 0)];
        for (times, time) in times.iter_mut().zip(pair_times) {
            if pair >= PAIRS / 10 {
                times.push(time);
            }
        }
    }
    let [ours, theirs] = times.map(median);
    println!(
        "| {what} | {:.2} | {:.2} | {:.2} | {bound} | {aim} |",
        milliseconds(ours),
        milliseconds(theirs),
        ours.as_secs_f64() / theirs.as_secs_f64()
    );
}

fn timed(mut command: Command, code: i32) -> Duration {
    std::thread::sleep(PAUSE);
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", "/nonexistent");
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
    let begun = Instant::now();
    let status = quiet.status().expect("the command starts");
    let took = begun.elapsed();
    assert_eq!(status.code(), Some(code), "{command:?}");
    took
}
