//! `--wait` where nodes share a server.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::server::{Database, Server};
use crate::site::Site;
use crate::support::{Run, until, until_dead, within};

fn places(database: &Database<'_>) -> Vec<String> {
    let text = database.sql("SELECT document ->> 'client' FROM tokenrun.waiters ORDER BY position");
    text.lines()
        .map(str::to_owned)
        .filter(|line| !line.is_empty())
        .collect()
}

fn waits(site: &Site, database: &Database<'_>, client: &str) -> Run {
    let run = site.run(client).with(&["--wait"]).start();
    until("it is in the queue", || {
        let line = places(database);
        if line.iter().any(|name| name == client) {
            Ok(())
        } else {
            Err(format!("{line:?}, {}", run.stderr()))
        }
    });
    run
}

fn begun(site: &Site) -> Vec<String> {
    let log = site.store.log();
    let begun = log.iter().filter_map(|line| line.strip_prefix("begin "));
    begun
        .map(|rest| rest.split(' ').next().unwrap().to_owned())
        .collect()
}

#[test]
fn waiters_run_in_the_order_of_arrival_and_dead_ones_are_skipped() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    let mut runs = vec![site.run("holder").start()];
    site.store.until_begun("holder");
    for name in ["c", "dead", "a", "b"] {
        runs.push(waits(&site, &database, name));
    }
    assert_eq!(places(&database), ["c", "dead", "a", "b"]);
    let dead = runs.remove(2);
    dead.signal(Signal::SIGKILL);
    until_dead(dead.pid());
    for name in ["holder", "c", "a", "b"] {
        site.store.until_begun(name);
        // A session outside the queue is behind the waiters, in any state.
        site.short("late").end().with_code(75);
        site.store.go(0);
    }
    for run in runs {
        run.end().with_code(0);
    }
    assert_eq!(begun(&site), ["holder", "c", "a", "b"]);
    site.store.assert_no_overlap();
}

#[test]
fn a_release_wakes_a_waiter_at_once() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    let holder = site.run("holder").start();
    site.store.until_begun("holder");
    let run = waits(&site, &database, "b");
    // The server confirms it: a notification reaches a session that listens.
    let listens =
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' OR query LIKE '%waiter%'";
    assert_ne!(database.sql(listens).trim(), "0");
    store_goes(&site, holder);
    site.store.until_begun("b");
    site.store.go(0);
    run.end().with_code(0);
    assert!(places(&database).is_empty());
}

#[test]
fn a_waiter_outlasts_a_transaction_that_holds_the_row() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    site.short("a").end().with_code(0);
    let mut other = postgres::Client::connect(&database.url(), postgres::NoTls).unwrap();
    let mut transaction = other.transaction().unwrap();
    let lock = "SELECT FROM tokenrun.tokens FOR KEY SHARE";
    transaction.batch_execute(lock).unwrap();
    site.short("a")
        .end()
        .with_code(75)
        .says(&["is held by a transaction"]);
    let brief = site.short("a").with(&["--wait=2s"]).start();
    brief.until_says("is held by a transaction");
    brief.end().with_code(75);
    let patient = site.short("a").with(&["--wait"]).start();
    patient.until_says("is held by a transaction");
    transaction.commit().unwrap();
    patient.end().with_code(0);
}

#[test]
fn a_role_with_the_least_rights_may_wait() {
    let server = Server::start(&[]);
    let database = server.database();
    let admin = Site::new(database.url());
    let printed = admin.verb(&["init", "--print-sql"]).end().with_code(0);
    database.sql(&printed.stdout);
    database.sql("CREATE ROLE etl LOGIN IN ROLE tokenrun");
    let site = Site::new(database.url().replace("postgres@", "etl@"));
    let holder = site.run("holder").start();
    site.store.until_begun("holder");
    let first = waits(&site, &database, "first");
    let second = waits(&site, &database, "second");
    let begun = Instant::now();
    site.short("third").with(&["--wait=3s"]).end().with_code(75);
    assert!(begun.elapsed() >= Duration::from_secs(3));
    assert_eq!(places(&database), ["first", "second"]);
    for (run, next) in [(holder, "first"), (first, "second")] {
        store_goes(&site, run);
        site.store.until_begun(next);
    }
    store_goes(&site, second);
    assert!(places(&database).is_empty());
    site.store.assert_no_overlap();
}

fn store_goes(site: &Site, holder: Run) {
    site.store.go(0);
    holder.end().with_code(0);
}

#[test]
fn a_time_to_wait_and_a_signal_end_it_and_the_queue_is_left() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    let holder = site.run("holder").start();
    site.store.until_begun("holder");
    within(Duration::from_millis(3_050), || {
        let begun = Instant::now();
        site.short("b").with(&["--wait=3s"]).end().with_code(75);
        let took = begun.elapsed();
        assert!(took >= Duration::from_secs(3), "{took:?}");
        assert!(places(&database).is_empty());
        took
    });
    let run = waits(&site, &database, "b");
    run.signal(Signal::SIGTERM);
    assert_eq!(run.end().signal, Some(15));
    assert!(places(&database).is_empty());
    store_goes(&site, holder);
}

#[test]
fn a_server_that_is_away_is_waited_for() {
    let server = Server::start(&[]);
    let database = server.database();
    let site = Site::new(database.url());
    let quick = |client: &str| site.short(client).with(&["--store-timeout=300ms"]);
    site.made();
    server.ctl(&["-w", "-m", "fast", "stop"]);
    // It is refused at once, and the call's time is not waited for.
    within(Duration::from_secs(1), || {
        let begun = Instant::now();
        let run = site.short("b").with(&["--store-timeout=1m"]);
        run.end().with_code(69);
        begun.elapsed()
    });
    within(Duration::from_millis(1_550), || {
        let begun = Instant::now();
        quick("b").with(&["--wait=1500ms"]).end().with_code(69);
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(1_500), "{took:?}");
        took
    });
    let run = quick("c").with(&["--wait=1m"]).start();
    run.until_says("waiting for the store too");
    server.ctl(&["-w", "start"]);
    run.end().with_code(0);
}

#[test]
fn a_wait_outlasts_a_restart_of_the_server() {
    let server = Server::start(&[]);
    let database = server.database();
    let site = Site::new(database.url());
    let terms = [
        "--store-timeout=1s",
        "--takeover-after=1m",
        "--heartbeat=1s",
    ];
    let holder = site.run("holder").with(&terms).start();
    site.store.until_begun("holder");
    let run = site.run("b").with(&terms).with(&["--wait"]).start();
    run.until_says("waiting in the queue");
    server.ctl(&["-w", "-m", "fast", "restart"]);
    store_goes(&site, holder);
    site.store.until_begun("b");
    site.store.go(0);
    run.end().with_code(0);
    site.store.assert_no_overlap();
}
