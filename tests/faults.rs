//! Nodes contend on one store while wrappers, guards and jobs are killed, stopped,
//! continued and asked to end at random, and the store is hindered: a SQLite file by
//! writers; a PostgreSQL, a MariaDB and a Redis server, and three servers of Redis, of etcd
//! and of ZooKeeper, by crashes, freezes and their networks.
//! Afterwards the jobs' own evidence is held against what is promised.
//!
//! `cargo test --test faults -- --minutes 30` plays it for longer, `--store postgres`, `--store mysql`,
//! `--store redis`, `--store quorum`, `--store etcd`, `--store zookeeper` or `--store sqlite` on that one alone, `--seed N` the same faults
//! again; `--nodes`, `--groups` and `--program` as they say.
//!
//! This program is also the job, its grandchildren, a writer that is in the way, and
//! what crashes the server, so it has its own main; and the suite is one process with
//! one thread, which sees every process that is left behind.

// clippy.toml allows these in tests, and knows a test by an attribute that these lack.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "faults/call.rs"]
mod call;
#[path = "faults/check.rs"]
mod check;
#[path = "faults/database.rs"]
mod database;
#[path = "../src/store/etcd/test_server.rs"]
#[allow(dead_code)]
mod etcd_server;
#[path = "faults/evidence.rs"]
mod evidence;
#[path = "faults/faults.rs"]
mod faults;
#[path = "faults/job.rs"]
mod job;
#[path = "faults/keeping.rs"]
mod keeping;
#[path = "faults/log.rs"]
mod log;
#[path = "faults/mysql.rs"]
mod mysql;
#[path = "../src/store/mysql/test_server.rs"]
#[allow(dead_code)]
mod mysql_server;
#[path = "faults/options.rs"]
mod options;
#[path = "faults/postgres.rs"]
mod postgres;
#[path = "support/program.rs"]
mod program;
#[path = "support/programs.rs"]
#[allow(dead_code)]
mod programs;
#[path = "postgres/proxy.rs"]
#[allow(dead_code)]
mod proxy;
#[path = "faults/quorum.rs"]
mod quorum;
#[path = "faults/random.rs"]
mod random;
#[path = "faults/redis.rs"]
mod redis;
#[path = "../src/store/redis/test_server.rs"]
#[allow(dead_code)]
mod redis_server;
#[path = "../src/store/postgres/test_server.rs"]
#[allow(dead_code)]
mod server;
#[path = "faults/stamps.rs"]
mod stamps;
#[path = "faults/suite.rs"]
mod suite;
#[path = "faults/troubles.rs"]
mod troubles;
#[path = "faults/watch.rs"]
mod watch;
#[path = "faults/world.rs"]
mod world;
#[path = "../src/store/zookeeper/test_server.rs"]
#[allow(dead_code)]
mod zookeeper_server;

use std::process::exit;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    job::run_as_job(&words);
    database::run_as_writer(&words);
    troubles::cause_faults(&words);
    mysql::cause_faults(&words);
    redis::cause_faults(&words);
    quorum::cause_faults(&words);
    // Before a store gives this program mounts of its own.
    job::myself();
    let mut options = options::Options::parse(&words);
    let mut failed = 0;
    let mut passed = 0;
    let stores = options.stores.clone();
    for (store, locks) in stores.iter().flat_map(|it| [(it, true), (it, false)]) {
        options.locks = locks;
        let name = options.name(store);
        if !options.wants(&name) {
            continue;
        }
        if options.list {
            println!("{name}: test");
            continue;
        }
        let word = if suite::play(&options, store) {
            passed += 1;
            "ok"
        } else {
            failed += 1;
            "FAILED"
        };
        println!("test {name} ... {word}\n");
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {word}. {passed} passed; {failed} failed\n");
    exit(if failed == 0 { 0 } else { 101 });
}
