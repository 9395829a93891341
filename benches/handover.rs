//! How long a token takes from one job to the next that waits in the queue, next to `flock`
//! and, where it is installed, `etcdctl lock`; and what an idle waiter costs.
//!
//! `cargo bench --bench handover` prints two tables.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod common;
// The fixture for the tests; not all of it is used here.
#[allow(dead_code, unused_imports, clippy::panic)]
#[path = "../src/store/mysql/test_server.rs"]
mod mysql_server;
#[allow(dead_code, unused_imports, clippy::panic)]
#[path = "../src/store/redis/test_server.rs"]
mod redis_server;
#[allow(dead_code, unused_imports, clippy::panic)]
#[path = "../src/store/zookeeper/test_server.rs"]
mod zookeeper_server;
// The same.
#[allow(dead_code, unused_imports, clippy::panic)]
#[path = "../src/store/postgres/test_server.rs"]
mod server;

use std::process::Command;
use std::time::Duration;

use common::etcd::Etcd;
use common::handover::{Handover, handover};
use common::processes::{HOLDING, Holder, children, processor_seconds};
use common::{Folder, init, settle};
use server::Server;

/// Hand-overs per line; the first tenth is not counted.
const TIMES: usize = 200;

/// For how long an idle waiter is watched.
const IDLE: Duration = Duration::from_secs(20);

fn main() {
    let folder = Folder::new("handover");
    let server = Server::start(&[]);
    let database = server.database();
    let sqlite = folder.file("tokens.db").display().to_string();
    let postgres = database.url();
    let mariadb_server = mysql_server::Server::start(&["innodb_flush_method = fsync"]);
    let mariadb = mariadb_server.database().url();
    let redis_server = redis_server::Server::start(&[]);
    let redis = redis_server.url();
    settle(&folder, &redis_server.cli(&["INFO", "server"]), &redis);
    let ensembles = [1, 3].map(zookeeper_server::Cluster::start);
    let zookeepers = ensembles.each_ref().map(zookeeper_server::Cluster::url);
    zookeepers.iter().for_each(|url| init(&folder, url));
    let [zookeeper, three] = &zookeepers;
    let took = |what: &str, tool: &dyn Fn() -> Command| {
        handover(what, TIMES, &folder, |job| {
            let mut command = tool();
            command.args(job);
            command
        })
    };
    println!("{TIMES} hand-overs each, in ms; the ratio is to the median of flock\n");
    println!("| from one job to the next | median | p95 | ratio | bound |");
    println!("|---|---|---|---|---|");
    let lock = folder.file("lock");
    let flock = took("flock", &|| {
        let mut command = Command::new("flock");
        command.arg(&lock);
        command
    });
    let print = |what: &str, took: &Handover, bound: &str| {
        let ratio = took.median / flock.median;
        println!(
            "| {what} | {:.1} | {:.1} | {ratio:.2} | {bound} |",
            took.median, took.p95
        );
    };
    print("flock", &flock, "");
    for (what, store, bound) in [
        ("SQLite", &sqlite, "1.5"),
        ("Redis", &redis, "1.6"),
        ("PostgreSQL", &postgres, "2.5"),
        ("MariaDB", &mariadb, "2.5"),
        ("ZooKeeper", zookeeper, "3"),
        ("ZooKeeper, three servers", three, ""),
    ] {
        print(what, &took(what, &|| tokenrun(&folder, store)), bound);
    }
    if let Some(etcd) = Etcd::start(&folder) {
        let lock = || etcd.client().lock("g", Duration::from_secs(10));
        print("etcdctl lock", &took("etcdctl lock", &lock), "");
    }
    println!("\n| an idle waiter for {IDLE:?} | share of a processor | bound |");
    println!("|---|---|---|");
    for (what, store) in [
        ("SQLite", &sqlite),
        ("Redis", &redis),
        ("PostgreSQL", &postgres),
        ("MariaDB", &mariadb),
        ("ZooKeeper", zookeeper),
    ] {
        idle(what, &|| tokenrun(&folder, store));
    }
}

fn tokenrun(folder: &Folder, store: &str) -> Command {
    let mut command = Command::new(folder.tokenrun());
    command.args(["-q", "-s", store, "-g", "g", "--keep=0", "--wait", "--"]);
    command
}

/// Supervisor and guard together, by the kernel's account of both.
fn idle(what: &str, tool: &dyn Fn() -> Command) {
    let mut holding = tool();
    holding.args(HOLDING);
    let mut holder = Holder::start(holding);
    let mut waiter = tool().arg("true").spawn().expect("it starts");
    std::thread::sleep(Duration::from_secs(3));
    let pids: Vec<u32> = std::iter::once(waiter.id())
        .chain(children(waiter.id()))
        .collect();
    let used = || -> f64 { pids.iter().map(|pid| processor_seconds(*pid)).sum() };
    let before = used();
    std::thread::sleep(IDLE);
    let share = (used() - before) / IDLE.as_secs_f64();
    println!("| {what} | {:.3} % | 0.1 % |", share * 100.0);
    holder.end();
    waiter.wait().expect("it ends");
}
