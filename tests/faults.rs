//! Nodes contend on one store while wrappers, guards and jobs are killed, stopped,
//! continued and asked to end at random, and the store is hindered. Afterwards the
//! jobs' own evidence is held against what is promised.
//!
//! `cargo test --test faults -- --minutes 30` plays it for longer, `--seed N` the same
//! faults again; `--nodes`, `--groups`, `--store` and `--program` as they say.
//!
//! This program is also the job, its grandchildren and a writer that is in the way,
//! so it has its own main; and it is one process with one thread, which sees every
//! process that is left behind.

// clippy.toml allows these in tests, and knows a test by an attribute that these lack.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "faults/call.rs"]
mod call;
#[path = "faults/check.rs"]
mod check;
#[path = "faults/database.rs"]
mod database;
#[path = "faults/evidence.rs"]
mod evidence;
#[path = "faults/faults.rs"]
mod faults;
#[path = "faults/job.rs"]
mod job;
#[path = "faults/log.rs"]
mod log;
#[path = "faults/options.rs"]
mod options;
#[path = "faults/random.rs"]
mod random;
#[path = "faults/stamps.rs"]
mod stamps;
#[path = "faults/suite.rs"]
mod suite;
#[path = "faults/watch.rs"]
mod watch;
#[path = "faults/world.rs"]
mod world;

use std::process::exit;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    job::live_as_told(&words);
    database::write_as_told(&words);
    let options = options::Options::parse(&words);
    let name = format!("faults_on_{}", options.store);
    if options.list {
        println!("{name}: test");
        return;
    }
    if !options.wants(&name) {
        println!("\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 1 filtered out\n");
        return;
    }
    println!("\nrunning 1 test");
    let passed = suite::play(&options);
    let word = if passed { "ok" } else { "FAILED" };
    println!("test {name} ... {word}");
    println!(
        "\ntest result: {word}. {} passed; {} failed\n",
        u8::from(passed),
        u8::from(!passed)
    );
    exit(if passed { 0 } else { 101 });
}
