//! The clock of a server that leaps while the server runs.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::programs;
use crate::server::Server;
use crate::site::{ELSEWHERE, Site};
use crate::{settle, settled};

/// The library that lets a clock leap; `tests/programs/leap.c` says how.
fn leap() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| programs::build_as("leap", &["-shared", "-fPIC"]))
}

fn server_that_leaps() -> Server {
    Server::start_leaping(&[], leap())
}

/// A limit: its token looks as old as the leap is long, so that another node takes it over.
#[test]
fn a_holder_that_was_taken_over_by_a_leap_ends_at_its_next_heartbeat() {
    let leaping = server_that_leaps();
    let proxy = crate::proxy::Proxy::to(leaping.port());
    let old = settled(&leaping, &format!("redis://127.0.0.1:{}", proxy.port));
    let prefix = old.url.rsplit_once('?').unwrap().1;
    let new = Site::new(format!("{}?{prefix}", leaping.url()));
    let holder = old.run("a").with(&["--heartbeat=1s"]).start();
    old.store.until_begun("a");
    // No heartbeat comes in between.
    proxy.hole(true);
    leaping.leap(3600);
    let taken = new.run("b").env("PATH", "/usr/bin:/bin").under(&ELSEWHERE);
    let taken = taken.start();
    new.store.until_begun("b");
    assert!(old.store.is_job_alive(), "the limit of the guide");
    proxy.hole(false);
    holder.end().with_code(76);
    assert!(new.store.is_job_alive());
    new.store.go(0);
    taken.end().with_code(0);
}

/// Stamps from the future have no known age: no takeover follows from them.
#[test]
fn a_clock_that_is_set_back_lets_the_holder_go_on() {
    let leaping = server_that_leaps();
    let site = settled(&leaping, &leaping.url());
    let holder = site.run("a").hasty().start();
    site.store.until_begun("a");
    leaping.leap(-3600);
    let other = Site::new(site.url.clone());
    let next = other.run("b").hasty().with(&["--wait=4s"]).start();
    next.end().with_code(75);
    site.store.go(0);
    holder.end().with_code(0);
    other
        .short("b")
        .hasty()
        .with(&["--wait"])
        .end()
        .with_code(0);
}

/// The note that began the observation is of the future then, and is written anew.
#[test]
fn a_server_whose_clock_is_set_back_while_it_is_observed_grants_in_time() {
    let leaping = server_that_leaps();
    let site = settled(&leaping, &leaping.url());
    site.short("a").hasty().end().with_code(0);
    site.verb(&["distrust", "--yes"]).end().with_code(0);
    leaping.leap(-3600);
    let run = site.short("a").hasty().with(&["--wait=20s"]).end();
    run.with_code(0).tells(&["may have forgotten a grant"]);
}

/// A limit: it looks as if it had been up for an hour.
#[test]
fn a_new_server_whose_clock_leaps_ahead_is_not_observed() {
    let leaping = server_that_leaps();
    leaping.leap(3600);
    let site = Site::new(leaping.url());
    let run = site.short("a").end().with_code(0);
    assert_eq!(run.messages(), [""; 0]);
    // The note of another user, too.
    let second = server_that_leaps();
    let site = Site::new(second.url());
    settle(&second, &site);
    site.short("a").end().with_code(0);
    site.verb(&["distrust", "--yes"]).end().with_code(0);
    second.leap(3600);
    let run = site.short("a").end().with_code(0);
    assert_eq!(run.messages(), [""; 0]);
}
