//! A thousand holders at once on a MariaDB server that allows 150 connections.
//!
//! `cargo bench --bench mysql_holders` starts a thousand tokenruns, one after another, each with a
//! job that does nothing; then watches them for a minute: how old a heartbeat becomes (by the rows
//! and the server's clock), how many connections there are, what the server takes of the processors.
//! Then every job ends, and every run must have succeeded. Another number of holders and of seconds
//! may be given: `cargo bench --bench mysql_holders -- 100 30`.
//!
//! Nothing outlives it, however it ends: the jobs end with a pipe of this process's, and the kernel
//! ends the supervisors with it.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod common;
// The fixture for the tests; not all of it is used here.
#[allow(dead_code, unused_imports, clippy::panic)]
#[path = "../src/store/mysql/test_server.rs"]
mod server;

use std::io::pipe;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::Folder;
use common::processes::processor_seconds;
use server::{Database, Server};

/// How long a holder may be silent: tokenrun's default.
const HEARTBEAT: f64 = 10.0;

/// How late a heartbeat may be, in seconds.
const LATE: f64 = 2.0;

/// How often the rows are looked at. A heartbeat may have been later than was seen, by this.
const LOOK: Duration = Duration::from_millis(200);

/// They do not start all at once, as nodes do not.
const BETWEEN_STARTS: Duration = Duration::from_millis(25);

/// How long all holders may take to get, or to release, a token.
const PATIENCE: Duration = Duration::from_secs(120);

fn main() {
    let numbers = std::env::args().filter_map(|word| word.parse().ok());
    let numbers: Vec<usize> = numbers.collect();
    let count = numbers.first().copied().unwrap_or(1_000);
    let watched = Duration::from_secs(numbers.get(1).map_or(60, |&seconds| seconds as u64));
    let folder = Folder::new("mysql-holders");
    // The tests' server does not wait for its disk.
    let server = Server::start(&["innodb_flush_method = fsync"]);
    let database = server.database();
    let run = |group: &str, stdin: Stdio| -> Child {
        // Should this process be killed, so is the supervisor; then its guard ends the job.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(folder.tokenrun());
        command.args(["-s", &database.url(), "-g", group, "--", "cat"]);
        command.stdin(stdin).stdout(Stdio::null());
        command.spawn().expect("setpriv starts (util-linux)")
    };
    // The first one makes the tables.
    let first = run("first", Stdio::null()).wait();
    assert!(first.expect("it ends").success());
    let (reader, writer) = pipe().expect("a pipe");
    let mut holders = Vec::new();
    for number in 0..count {
        let stdin = reader.try_clone().expect("a descriptor");
        holders.push(run(&format!("g{number}"), stdin.into()));
        std::thread::sleep(BETWEEN_STARTS);
    }
    drop(reader);
    let begun = Instant::now();
    while look(&database).held < count {
        assert!(begun.elapsed() < PATIENCE, "not every run got its token");
        std::thread::sleep(LOOK);
    }
    let seen = watch(&server, &database, count, watched);
    drop(writer);
    let ended = holders.into_iter().map(|mut holder| holder.wait());
    let well = ended.filter(|end| end.as_ref().is_ok_and(|status| status.success()));
    report(&database, count, &seen, well.count());
}

/// One look at the rows and at the server.
struct Look {
    held: usize,
    /// The age of the oldest heartbeat, in seconds.
    age: f64,
    /// Without the one of this look.
    connections: usize,
}

fn look(database: &Database<'_>) -> Look {
    let text = database.sql(
        "SET time_zone = '+00:00'; SELECT COUNT(*), \
         COALESCE(MAX(TIMESTAMPDIFF(MICROSECOND, stamped_at, SYSDATE(6))), 0) / 1e6, \
         (SELECT COUNT(*) - 1 FROM information_schema.processlist WHERE user = 'root') \
         FROM tokenrun_tokens WHERE state = 'running'",
    );
    let mut words = text.split_whitespace();
    let mut number = || -> f64 {
        let word = words.next().expect("three numbers");
        word.parse().expect("a number")
    };
    Look {
        held: number() as usize,
        age: number(),
        connections: number() as usize,
    }
}

/// The measurements while all holders held.
struct Seen {
    oldest: f64,
    held: usize,
    connections: usize,
    /// Of one processor.
    server: f64,
}

fn watch(server: &Server, database: &Database<'_>, count: usize, watched: Duration) -> Seen {
    let pid = server.pid().as_raw().cast_unsigned();
    let mut seen = Seen {
        oldest: 0.0,
        held: count,
        connections: 0,
        server: processor_seconds(pid),
    };
    let begun = Instant::now();
    while begun.elapsed() < watched {
        let look = look(database);
        seen.oldest = seen.oldest.max(look.age);
        seen.held = seen.held.min(look.held);
        seen.connections = seen.connections.max(look.connections);
        std::thread::sleep(LOOK);
    }
    seen.server = (processor_seconds(pid) - seen.server) / begun.elapsed().as_secs_f64();
    seen
}

fn report(database: &Database<'_>, count: usize, seen: &Seen, well: usize) {
    let number = |text: &str| -> usize { database.sql(text).parse().expect("a number") };
    let succeeded = number(
        "SELECT COUNT(*) FROM tokenrun_runs WHERE outcome = 'succeeded' AND token_group <> 'first'",
    );
    let gone =
        number("SELECT SUM(COALESCE(losses, 0) + COALESCE(takeovers, 0)) FROM tokenrun_status");
    let late = seen.oldest + LOOK.as_secs_f64() - HEARTBEAT;
    println!("| {count} holders | | bound |\n|---|---|---|");
    println!("| that held, at least | {} | {count} |", seen.held);
    println!(
        "| runs that ended with 0; that the store says succeeded | {well}; {succeeded} | {count} |"
    );
    println!("| lost tokens and takeovers | {gone} | 0 |");
    println!("| the latest heartbeat, at most | {late:.2} s late | {LATE} s |");
    println!(
        "| connections at once, at most | {} | 150 |",
        seen.connections
    );
    println!(
        "| the server, of one processor | {:.1} % | |",
        100.0 * seen.server
    );
    let all_well = [well, succeeded, seen.held].iter().all(|n| *n == count);
    assert!(all_well && gone == 0 && late <= LATE, "a bound is missed");
}
