//! `--wait`: the queue, and the release that wakes it.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::server::Server;
use crate::site::Site;
use crate::support::{Run, children, until, until_dead, within};
use crate::{key, settled};

fn waits(site: &Site, server: &Server, client: &str) -> Run {
    let run = site.run(client).with(&["--wait"]).start();
    let list = key(site, "waiters:job");
    until("it is in the queue", || {
        let waiters = server.cli(&["ZRANGE", &list, "0", "-1"]);
        let names: Vec<String> = waiters
            .lines()
            .map(|waiter| server.cli(&["HGET", &key(site, waiter), "document"]))
            .collect();
        let is_there = |name: &String| name.contains(&format!("\"client\":\"{client}\""));
        match names.iter().any(is_there) {
            true => Ok(()),
            false => Err(format!("{names:?}, {}", run.stderr())),
        }
    });
    run
}

#[test]
fn waiters_run_in_the_order_of_arrival_and_dead_ones_are_skipped() {
    let server = Server::shared();
    let site = settled(server, &server.url());
    let mut runs = vec![site.run("holder").start()];
    site.store.until_begun("holder");
    for name in ["c", "dead", "a", "b"] {
        runs.push(waits(&site, server, name));
    }
    let dead = runs.remove(2);
    dead.signal(Signal::SIGKILL);
    until_dead(dead.pid());
    for name in ["holder", "c", "a", "b"] {
        site.store.until_begun(name);
        site.short("late").end().with_code(75);
        site.store.go(0);
    }
    for run in runs {
        run.end().with_code(0);
    }
    site.store.assert_no_overlap();
    let left = server.cli(&["ZCARD", &key(&site, "waiters:job")]);
    assert!(["0", "1"].contains(&left.as_str()), "{left}");
}

/// Much sooner than by the next regular look, which comes after 0.8 s.
#[test]
fn a_release_wakes_a_waiter_at_once() {
    let server = Server::shared();
    within(Duration::from_millis(200), || {
        let site = settled(server, &server.url());
        let holder = site.run("holder").start();
        site.store.until_begun("holder");
        let run = waits(&site, server, "b");
        let channel = key(&site, "released:job");
        until("it has subscribed", || {
            let said = server.cli(&["PUBSUB", "NUMSUB", &channel]);
            if said.ends_with('1') {
                Ok(())
            } else {
                Err(said)
            }
        });
        let begun = Instant::now();
        site.store.go(0);
        site.store.until_begun("b");
        let took = begun.elapsed();
        site.store.go(0);
        holder.end().with_code(0);
        run.end().with_code(0);
        took
    });
}

/// How many scripts this server is given in a second.
fn scripts_in_a_second(server: &Server) -> u32 {
    server.cli(&["CONFIG", "RESETSTAT"]);
    std::thread::sleep(Duration::from_secs(1));
    let statistics = server.cli(&["INFO", "commandstats"]);
    let calls = statistics
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_eval:calls="))
        .and_then(|line| line.split(',').next());
    calls.map_or(0, |calls| calls.parse().unwrap())
}

/// In a second a waiter renews its place once or twice, and a holder its lease.
const REGULAR: u32 = 10;

#[test]
fn waiters_that_others_are_quicker_than_go_on_without_more_looks() {
    let server = Server::start(&[]);
    let site = settled(&server, &server.url());
    let holder = site.run("holder").start();
    site.store.until_begun("holder");
    let waiters = ["b", "c"].map(|name| waits(&site, &server, name));
    site.store.go(0);
    site.store.until_begun("b");
    let scripts = scripts_in_a_second(&server);
    assert!((1..=REGULAR).contains(&scripts), "{scripts}");
    site.store.go(0);
    site.store.until_begun("c");
    site.store.go(0);
    for run in waiters.into_iter().chain([holder]) {
        run.end().with_code(0);
    }
}

/// The subscription is lost with the server's end of it; regular looks go on, and no others.
#[test]
fn a_waiter_whose_subscription_was_cut_waits_all_the_same() {
    let server = Server::start(&[]);
    let site = settled(&server, &server.url());
    let holder = site.run("holder").start();
    site.store.until_begun("holder");
    let run = waits(&site, &server, "b");
    for _ in 0..3 {
        server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        let scripts = scripts_in_a_second(&server);
        assert!((1..=REGULAR).contains(&scripts), "{scripts}");
    }
    site.store.go(0);
    site.store.until_begun("b");
    site.store.go(0);
    holder.end().with_code(0);
    run.end().with_code(0);
}

/// The clerk: a process that may outlive its supervisor where a file system hangs.
fn clerk(run: &Run) -> Option<i32> {
    let is_clerk =
        |pid: &i32| fs::read_to_string(of(*pid, "comm")).is_ok_and(|name| name == "lease-clerk\n");
    children(run.pid()).into_iter().find(is_clerk)
}

fn until_clerk(run: &Run) -> i32 {
    until("there is one", || {
        clerk(run).ok_or_else(|| "none".to_owned())
    })
}

fn of(pid: i32, file: &str) -> String {
    format!("/proc/{pid}/{file}")
}

/// It does not tell others than root: its supervisor may hold a password.
#[test]
fn needs_root_the_process_for_locks_has_its_socket_alone() {
    let server = Server::shared();
    let site = settled(server, &server.url());
    let holder = site.run("holder").start();
    site.store.until_begun("holder");
    let run = waits(&site, server, "b");
    let fds = fs::read_dir(of(until_clerk(&run), "fd")).unwrap();
    let targets = fds.map(|entry| fs::read_link(entry.unwrap().path()).unwrap());
    let mut targets: Vec<_> = targets.map(|it| it.display().to_string()).collect();
    targets.sort();
    let [input, output, errors, socket] = &targets[..] else {
        panic!("{targets:?}");
    };
    assert_eq!([input, output, errors], ["/dev/null"; 3]);
    assert!(socket.starts_with("socket:"), "{socket}");
    run.signal(Signal::SIGTERM);
    assert_eq!(run.end().signal, Some(15));
    site.store.go(0);
    holder.end().with_code(0);
}

#[test]
fn the_process_for_locks_ends_before_the_job() {
    let server = Server::shared();
    let site = settled(server, &server.url());
    let holder = site.run("holder").start();
    site.store.until_begun("holder");
    let run = waits(&site, server, "b");
    let first = until_clerk(&run);
    site.store.go(0);
    holder.end().with_code(0);
    site.store.until_begun("b");
    until_dead(first);
    assert_eq!(clerk(&run), None);
    site.store.go(0);
    run.end().with_code(0);
}
