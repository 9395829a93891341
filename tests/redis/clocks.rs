//! The clock of a server that leaps while the server runs.

use std::fs;
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

/// A server whose clock the test sets. Its monotonic clock goes on.
struct Leaping {
    server: Server,
    file: PathBuf,
}

impl Leaping {
    fn start() -> Self {
        let server = Server::prepare(&[]);
        let file = server.folder().join("clock");
        fs::write(&file, "0").unwrap();
        // Where the server's user can read it.
        let library = server.folder().join("leap.so");
        fs::copy(leap(), &library).unwrap();
        let variables = [
            format!("LD_PRELOAD={}", library.display()),
            format!("LEAP={}", file.display()),
        ];
        let mut under = vec!["env"];
        under.extend(variables.iter().map(String::as_str));
        server.launch_under(&under);
        Self { server, file }
    }

    /// Sets the clock by so many seconds, and waits until the server has noticed.
    fn leap(&self, seconds: i64) {
        let before = self.time();
        // Never read half-written.
        let new = self.file.with_extension("new");
        fs::write(&new, seconds.to_string()).unwrap();
        fs::rename(new, &self.file).unwrap();
        let from = before + seconds - 60;
        self.server
            .wait_until("the leap", || (from..from + 3600).contains(&self.time()));
    }

    /// The time of its own that the server has read last.
    fn time(&self) -> i64 {
        let info = self.server.cli(&["INFO", "server"]);
        let micros = info
            .lines()
            .find_map(|line| line.strip_prefix("server_time_usec:"));
        micros.unwrap().trim().parse::<i64>().unwrap() / 1_000_000
    }
}

/// A limit: its token looks as old as the leap is long, so that another node takes it over.
#[test]
fn a_holder_that_was_taken_over_by_a_leap_ends_at_its_next_heartbeat() {
    let leaping = Leaping::start();
    let proxy = crate::proxy::Proxy::to(leaping.server.port());
    let old = settled(
        &leaping.server,
        &format!("redis://127.0.0.1:{}", proxy.port),
    );
    let prefix = old.url.rsplit_once('?').unwrap().1;
    let new = Site::new(format!("{}?{prefix}", leaping.server.url()));
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
    let leaping = Leaping::start();
    let site = settled(&leaping.server, &leaping.server.url());
    let holder = site.run("a").hasty().start();
    site.store.until_begun("a");
    leaping.leap(-3600);
    let other = Site::new(site.url.clone());
    let next = other.run("b").hasty().with(&["--wait=1s"]).start();
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
    let leaping = Leaping::start();
    let site = settled(&leaping.server, &leaping.server.url());
    site.short("a").hasty().end().with_code(0);
    site.verb(&["distrust", "--yes"]).end().with_code(0);
    leaping.leap(-3600);
    let run = site.short("a").hasty().with(&["--wait=20s"]).end();
    run.with_code(0).tells(&["may have forgotten a grant"]);
}

/// A limit: it looks as if it had been up for an hour.
#[test]
fn a_new_server_whose_clock_leaps_ahead_is_not_observed() {
    let leaping = Leaping::start();
    leaping.leap(3600);
    let site = Site::new(leaping.server.url());
    let run = site.short("a").end().with_code(0);
    assert_eq!(run.messages(), [""; 0]);
    // The note of another user, too.
    let second = Leaping::start();
    let site = Site::new(second.server.url());
    settle(&second.server, &site);
    site.short("a").end().with_code(0);
    site.verb(&["distrust", "--yes"]).end().with_code(0);
    second.leap(3600);
    let run = site.short("a").end().with_code(0);
    assert_eq!(run.messages(), [""; 0]);
}
