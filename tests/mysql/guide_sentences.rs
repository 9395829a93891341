//! What the guide says of MariaDB in sentences, beside the blocks of `guide.rs`.

use std::fs;

use nix::sys::signal::Signal;

use super::guide::{HASTY, with_a_binary_log};
use super::server::Server;
use super::site::Site;
use crate::support::until;

/// `doctor` fails, and a run that goes on warns and reports it.
#[test]
fn two_writable_servers_are_told() {
    let servers = [(); 2].map(|()| Server::start(&[]));
    for server in &servers {
        server.sql("mysql", "CREATE DATABASE jobs");
    }
    let [first, second] = servers.each_ref().map(Server::port);
    let site = Site::new(format!(
        "mysql://root@127.0.0.1:{first},127.0.0.1:{second}/jobs"
    ));
    site.verb(&["init"]).end().with_code(0);
    let checked = site.verb(&["doctor"]).end().with_code(78);
    let found = "several servers accept writes: ";
    assert!(checked.stdout.contains(found), "{checked:?}");
    let report = ["--report=report.json"];
    let run = site.run("a").hasty().with(&report).start();
    site.store.until_begun("a");
    run.until_says("can all be written to");
    site.store.go(0);
    run.end().with_code(0);
    let report = fs::read_to_string(site.file("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let names = [first, second].map(|port| format!("127.0.0.1:{port}"));
    assert_eq!(report["primaries"], serde_json::Value::from(names.to_vec()));
}

/// Each of these can hide a failover or a restore.
#[test]
fn a_restart_with_a_binary_log_and_rebuilt_tables_are_observed() {
    let server = with_a_binary_log(1);
    let database = server.database();
    let site = Site::new(database.url());
    let run = || {
        let mut line = site.short("a");
        for (name, value) in HASTY {
            line = line.env(name, value);
        }
        let ended = line.end().with_code(0);
        ended.stderr.contains("may have forgotten")
    };
    site.verb(&["init"]).end().with_code(0);
    assert!(!run() && !run(), "nothing has happened");
    // Both are told by their second.
    let next_second = || drop(database.sql("SELECT SLEEP(1.1)"));
    next_second();
    server.stop(Signal::SIGTERM);
    server.run();
    assert!(run(), "a restart");
    assert!(!run());
    next_second();
    database.sql("OPTIMIZE TABLE tokenrun_tokens");
    assert!(run(), "rebuilt tables");
    assert!(!run());
}

/// A thousand holders need no thousand connections.
#[test]
fn a_job_for_whose_token_no_run_waits_keeps_no_connection() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    let count = format!(
        "SELECT count(*) FROM information_schema.processlist WHERE db = '{}' AND id <> CONNECTION_ID()",
        database.name
    );
    let wait_for = |expected: &dyn Fn(i64) -> bool| {
        until("the number of connections", || {
            let found: i64 = database.sql(&count).parse().unwrap();
            if expected(found) {
                Ok(())
            } else {
                Err(found.to_string())
            }
        });
    };
    // The first connection is gone long before the first heartbeat.
    let quiet = site.run("q").with(&["--keep=0", "--heartbeat=2m"]).start();
    site.store.until_begun("q");
    wait_for(&|found| found == 0);
    site.store.go(0);
    quiet.end().with_code(0);
    let held = site.run("a").with(&["--heartbeat=3s"]).start();
    site.store.until_begun("a");
    wait_for(&|found| found == 0);
    let waiting = site.run("b").with(&["--wait=60s"]).start();
    wait_for(&|found| found == 3);
    site.store.go(0);
    held.end().with_code(0);
    site.store.until_begun("b");
    wait_for(&|found| found == 0);
    site.store.go(0);
    waiting.end().with_code(0);
}
