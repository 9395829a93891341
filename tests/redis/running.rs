//! Runs: one at a time, on record, taken over from a holder that died.

use nix::sys::signal::Signal;

use crate::server::Server;
use crate::site::Site;
use crate::support::until_dead;
use crate::{field, key, settled};

#[test]
fn a_run_leaves_a_token_and_a_record_that_redis_cli_reads() {
    let server = Server::shared();
    let valkey = server.tcp_url().replace("redis:", "valkey:");
    for url in [server.url(), server.tcp_url(), valkey] {
        let site = settled(server, &url);
        site.short("a").with(&["--keep=5m"]).end().with_code(0);
        assert_eq!(field(server, &site, "state"), "idle");
        assert_eq!(field(server, &site, "client_bound"), "a");
        let fence = field(server, &site, "fence");
        let runs = server.cli(&["ZRANGE", &key(&site, "runs:job"), "0", "-1"]);
        assert!(runs.starts_with(&format!("run:job:{fence}:")), "{runs}");
        let run = server.cli(&["HGET", &key(&site, &runs), "document"]);
        assert!(run.contains("\"outcome\":\"succeeded\""), "{run}");
        let history = site.verb(&["history", "--json"]).end().with_code(0).json();
        assert_eq!(history[0]["fence"].to_string(), fence);
        site.verb(&["status"]).end().with_code(0);
        assert_eq!(field(server, &site, "state"), "idle");
    }
}

#[test]
fn a_database_of_another_number_is_another_store() {
    let server = Server::shared();
    let site = settled(server, &format!("{}/3", server.tcp_url()));
    let held = site.run("a").start();
    site.store.until_begun("a");
    let token = key(&site, "token:job");
    assert_eq!(server.cli(&["-n", "3", "HGET", &token, "state"]), "running");
    assert_eq!(server.cli(&["EXISTS", &token]), "0");
    site.store.go(0);
    held.end().with_code(0);
}

#[test]
fn a_second_client_is_refused_while_the_first_runs() {
    let server = Server::shared();
    let site = settled(server, &server.url());
    let held = site.run("a").start();
    site.store.until_begun("a");
    site.short("b").end().with_code(75).says(&["a"]);
    let refusals = site.verb(&["history", "--refusals", "--json"]).end();
    let first = &refusals.json()[0];
    assert_eq!(first["client"], "b");
    assert_eq!(first["refused"], "held");
    site.store.go(0);
    held.end().with_code(0);
    site.short("b").end().with_code(0);
    site.store.assert_no_overlap();
}

/// It is cut off from the server, and its job ends in time.
#[test]
fn a_holder_that_is_cut_off_is_taken_over_once_its_lease_is_over() {
    let server = Server::shared();
    let proxy = crate::proxy::Proxy::to(server.port());
    let site = settled(server, &format!("redis://127.0.0.1:{}", proxy.port));
    let prefix = site.url.rsplit_once('?').unwrap().1;
    let other = Site::new(format!("{}?{prefix}", server.url()));
    let held = site.run("a").hasty().start();
    site.store.until_begun("a");
    proxy.hole(true);
    let taken = other.run("b").hasty().with(&["--wait"]).start();
    other.store.until_begun("b");
    assert!(!site.store.is_job_alive());
    held.end().with_code(76);
    other.store.go(0);
    taken.end().with_code(0);
    let history = other.verb(&["history", "--json"]).end().json();
    assert_eq!(history[0]["client"], "b");
    assert_eq!(history[0]["grant"], "takeover");
}

/// On one host the locks prove it, so that its lease need not be over.
#[test]
fn a_holder_that_was_killed_here_is_taken_over_at_once() {
    let server = Server::shared();
    let site = settled(server, &server.url());
    let held = site.run("a").start();
    site.store.until_begun("a");
    let guard = held.guard();
    held.signal(Signal::SIGKILL);
    // It holds the job's lock until it has ended the job.
    until_dead(guard);
    site.short("b")
        .end()
        .with_code(0)
        .tells(&["whose holder is dead"]);
    let history = site.verb(&["history", "--json"]).end().json();
    assert_eq!(history[1]["outcome"], "unknown");
}

#[test]
fn a_key_that_is_done_is_not_run_again() {
    let server = Server::shared();
    let site = settled(server, &server.url());
    let once = ["--once=night"];
    site.short("a").with(&once).end().with_code(0);
    let again = site.short("b").with(&once).end().with_code(0);
    again.says(&["is done already"]);
    let listed = site.verb(&["once", "list"]).end().with_code(0);
    assert!(listed.stdout.contains("night"), "{listed:?}");
}
