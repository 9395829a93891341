//! Many holders at once on each store, and many nodes that ask for one token in the same second.
//!
//! `cargo bench --bench holders` starts a thousand tokenruns on each store, each with a job that does
//! nothing, and watches them: how old a heartbeat becomes by the store's clock, and what the server takes
//! of the processors. Then every job ends, and every run must have succeeded. A thousand tokenruns then ask
//! for one token at once, on a server that allows 100 connections: one runs, the others are refused.
//! At last ten thousand holders with a heartbeat every 30 seconds hold through PgBouncer. Their supervisors do
//! not fit into memory, so these are simulated: a few processes open a store for each of them, as a
//! supervisor does, and send its grant and its heartbeats with the program's own code.
//!
//! `-- sqlite`, `-- postgres`, `-- mariadb`, `-- redis`, `-- etcd`, `-- zookeeper` or `-- simulated` asks for one of them. Nothing outlives it,
//! however it ends: the jobs end with a pipe of this process's, and the kernel ends the supervisors with it.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod common;
#[path = "holders/simulated.rs"]
mod simulated;
#[path = "holders/sites.rs"]
mod sites;
#[path = "holders/watch.rs"]
mod watch;

use std::io::pipe;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::Folder;
use common::processes::{children, pss_kib};
use sites::{Site, with_each_site};
use watch::Watch;

/// Real holders of each store.
const HOLDERS: usize = 1_000;

/// For how long they are watched.
const WATCHED: Duration = Duration::from_secs(60);

/// Nodes that ask for one token at once.
const NODES: usize = 1_000;

/// They do not start all at once, as nodes do not.
const BETWEEN_STARTS: Duration = Duration::from_millis(20);

/// What a supervisor with its guard may take among the others, in MiB.
const MEMORY: f64 = 8.0;

/// Of how many runs the memory is looked at.
const LOOKED_AT: usize = 50;

/// How late a heartbeat may be.
const LATE: Duration = Duration::from_secs(2);

fn main() {
    if simulated::is_part() {
        return simulated::part();
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let asked: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| asked.is_empty() || asked.iter().any(|word| *word == name);
    let folder = Folder::new("holders");
    let mut is_missed = false;
    with_each_site(&folder, wanted, |site| {
        println!("\n| {} | | bound |\n|---|---|---|", site.name);
        is_missed |= match site.simulated {
            Some(count) => simulated::hold(site, count),
            None => hold(&folder, site) | burst(&folder, site),
        };
    });
    assert!(!is_missed, "a bound is missed");
}

/// A line of the table. True if the bound is missed.
fn line<N: PartialOrd + std::fmt::Display>(what: &str, seen: N, most: N) -> bool {
    println!("| {what} | {seen} | {most} |");
    seen > most
}

/// A thousand real holders. True if a bound is missed.
fn hold(folder: &Folder, site: &Site<'_>) -> bool {
    // The first one makes the tables.
    let first = start(folder, &site.url, "first", Stdio::null()).wait();
    assert!(first.expect("it ends").success());
    let (reader, writer) = pipe().expect("a pipe");
    let mut holders = Vec::new();
    for number in 0..HOLDERS {
        let stdin = reader.try_clone().expect("a descriptor");
        holders.push(start(
            folder,
            &site.url,
            &format!("g{number}"),
            stdin.into(),
        ));
        std::thread::sleep(BETWEEN_STARTS);
    }
    drop(reader);
    let mut watch = Watch::new(site);
    watch.until_held(HOLDERS);
    let seen = watch.watch(HOLDERS, WATCHED);
    let memory = memory(&holders);
    drop(writer);
    let failed = holders
        .into_iter()
        .map(|mut holder| holder.wait().expect("it ends"))
        .filter(|status| !status.success())
        .count();
    let lost = watch.lost();
    seen.print(site);
    let missed = [
        line(
            "tokens that were not held at some time",
            HOLDERS - seen.fewest,
            0,
        ),
        line("runs that failed", failed, 0),
        line(
            "runs that succeeded, but not by the store",
            HOLDERS - watch.succeeded(),
            0,
        ),
        line(
            "PSS of a supervisor with its guard, the most, in MiB",
            memory,
            MEMORY,
        ),
        line("lost tokens and takeovers", lost, 0),
        line(
            "the latest heartbeat, ms late",
            seen.late().as_millis(),
            LATE.as_millis(),
        ),
    ];
    missed.contains(&true)
}

/// The most that one of the first ones takes, in MiB.
fn memory(holders: &[Child]) -> f64 {
    let of_both = |holder: &Child| {
        let guard = children(holder.id()).first().copied().expect("a guard");
        (pss_kib(holder.id()) + pss_kib(guard)) as f64 / 1024.0
    };
    let sums = holders.iter().take(LOOKED_AT).map(of_both);
    (sums.fold(0.0, f64::max) * 10.0).round() / 10.0
}

/// A job that lasts as long as its standard input.
fn start(folder: &Folder, url: &str, group: &str, stdin: Stdio) -> Child {
    // Should this process be killed, so is the supervisor; then its guard ends the job.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(folder.tokenrun());
    command.args(["-q", "-s", url, "-g", group, "--", "cat"]);
    command.stdin(stdin).stdout(Stdio::null());
    command.spawn().expect("setpriv starts (util-linux)")
}

/// A thousand nodes ask for one token at once, without a pooler. True if not exactly one runs, or if one fails.
fn burst(folder: &Folder, site: &Site<'_>) -> bool {
    let (reader, writer) = pipe().expect("a pipe");
    let begun = Instant::now();
    let mut nodes: Vec<Child> = (0..NODES)
        .map(|_| {
            start(
                folder,
                &site.direct,
                "burst",
                reader.try_clone().unwrap().into(),
            )
        })
        .collect();
    let took = begun.elapsed();
    drop(reader);
    let mut codes = Vec::new();
    while nodes.len() > 1 {
        assert!(
            begun.elapsed() < Duration::from_secs(300),
            "{} go on",
            nodes.len()
        );
        nodes.retain_mut(|node| match node.try_wait().expect("a child") {
            Some(status) => {
                codes.push(status.code());
                false
            }
            None => true,
        });
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(writer);
    codes.extend(
        nodes
            .iter_mut()
            .map(|node| node.wait().expect("it ends").code()),
    );
    let of = |code| codes.iter().filter(|it| **it == Some(code)).count();
    println!("| started within | {:.1} s | |", took.as_secs_f64());
    println!("| {NODES} nodes at once: those that ran | {} | 1 |", of(0));
    let failed = NODES - of(0) - of(75);
    println!(
        "| the same: refused with 75; failed | {}; {failed} | {}; 0 |",
        of(75),
        NODES - 1
    );
    of(0) != 1 || failed != 0
}
