//! A majority of independent servers as the store: what each failure costs. Rows of the table in the guide.

use crate::programs;
use crate::server::{Quorum, Server};
use crate::site::Site;
use crate::support::until;

/// A store of a test's own, which an operator has called new.
fn new_store(quorum: &Quorum) -> (Site, String) {
    let prefix = Server::prefix();
    let site = Site::new(quorum.url(&prefix));
    site.verb(&["init"]).end().with_code(0);
    (site, prefix)
}

/// Waits until `status` says that so many of the servers answer.
fn until_answering(site: &Site, count: usize) {
    let words = format!("{count} of 3 servers answer");
    until(&words, || {
        let shown = site.verb(&["status"]).end();
        match shown.stdout.contains(&words) {
            true => Ok(()),
            false => Err(format!("{shown:?}")),
        }
    });
}

/// Empties servers at once: none joins again while another one still has what it had.
fn start_anew(servers: &[Server]) {
    servers.iter().for_each(Server::kill);
    servers.iter().for_each(Server::launch);
}

/// The token is held: another node is refused.
fn is_refused(site: &Site) {
    site.short("b").hasty().end().with_code(75);
}

#[test]
fn a_server_that_is_killed_emptied_or_frozen_ends_no_job() {
    let quorum = Quorum::start(3);
    let (site, prefix) = new_store(&quorum);
    let holder = site.run("a").hasty().start();
    site.store.until_begun("a");
    // Without persistence a server that starts anew is empty.
    for server in &quorum.0[..2] {
        server.kill();
        until_answering(&site, 2);
        is_refused(&site);
        server.launch();
        // By the holder's heartbeats.
        server.wait_until("a server that joins again", || quorum.joined(&prefix) == 3);
    }
    quorum.0[2].freeze();
    until_answering(&site, 2);
    is_refused(&site);
    quorum.0[2].thaw();
    until_answering(&site, 3);
    site.store.go(0);
    holder.end().with_code(0);
    let history = site.verb(&["history", "--json"]).end().with_code(0).json();
    assert_eq!(history[0]["outcome"], "succeeded");
}

#[test]
fn without_a_majority_nothing_is_granted_and_the_holder_ends_its_job() {
    let quorum = Quorum::start(3);
    let (site, _) = new_store(&quorum);
    let holder = site.run("a").hasty().start();
    site.store.until_begun("a");
    quorum.0[0].freeze();
    quorum.0[1].freeze();
    let refused = site.short("b").hasty().end().with_code(69);
    refused.says(&["fewer than 2 of its 3 servers answer"]);
    holder.end().with_code(76);
    site.store.until_job_gone();
    quorum.0[0].thaw();
    quorum.0[1].thaw();
    site.short("a").hasty().end().with_code(0);
}

#[test]
fn a_majority_that_starts_anew_at_once_is_observed_and_the_holder_goes_on_with_what_the_third_has()
{
    let quorum = Quorum::start(3);
    let (site, _) = new_store(&quorum);
    let holder = site.run("a").hasty().start();
    site.store.until_begun("a");
    start_anew(&quorum.0[..2]);
    let other = Site::new(site.url.clone());
    let idle = other.in_group("idle", "b").hasty().job(&["true"]).start();
    idle.until_says("may have forgotten a grant");
    let next = other.run("b").hasty().with(&["--wait=4s"]).end();
    next.with_code(75);
    idle.end().with_code(0);
    assert!(site.store.is_job_alive());
    site.store.go(0);
    holder.end().with_code(0);
}

#[test]
fn servers_that_are_all_emptied_are_observed_and_the_holder_ends_its_job() {
    let quorum = Quorum::start(3);
    let (site, _) = new_store(&quorum);
    let holder = site.run("a").hasty().start();
    site.store.until_begun("a");
    start_anew(&quorum.0);
    let other = Site::new(site.url.clone());
    let next = other.run("b").hasty().start();
    next.until_says("may have forgotten a grant");
    holder.end().with_code(76);
    other.store.until_begun("b");
    assert!(!site.store.is_job_alive());
    other.store.go(0);
    next.end().with_code(0);
}

#[test]
fn the_clock_of_one_server_changes_nothing() {
    let library = programs::build_as("leap", &["-shared", "-fPIC"]);
    let server = |_| Server::start_leaping(&[], &library);
    let quorum = Quorum((0..3).map(server).collect());
    let (site, _) = new_store(&quorum);
    let holder = site.run("a").hasty().start();
    site.store.until_begun("a");
    for seconds in [3_600, -3_600] {
        quorum.0[1].leap(seconds);
        is_refused(&site);
        // Its renewals go on past the next lease.
        let wait = ["--wait=6s"];
        let next = site.short("b").hasty().with(&wait).end();
        next.with_code(75);
    }
    site.store.go(0);
    holder.end().with_code(0);
}

#[test]
fn a_waiter_is_told_of_a_release() {
    let quorum = Quorum::start(3);
    let (site, _) = new_store(&quorum);
    quorum.0[0].kill();
    let holder = site.run("a").start();
    site.store.until_begun("a");
    let next = site.run("b").with(&["--wait"]).start();
    let channels = || quorum.0[1].cli(&["PUBSUB", "CHANNELS"]);
    quorum.0[1].wait_until("the waiter", || channels().contains("released"));
    site.store.go(0);
    site.store.until_begun("b");
    site.store.go(0);
    holder.end().with_code(0);
    next.end().with_code(0);
}

/// Nodes with the one address exclude none with the other.
#[test]
fn servers_that_are_used_alone_are_no_majority_and_the_other_way_round() {
    let quorum = Quorum::start(3);
    let prefix = Server::prefix();
    let of_all = Site::new(quorum.url(&prefix));
    let alone = Site::new(format!("{}?prefix={prefix}", quorum.0[1].tcp_url()));
    crate::settle(&quorum.0[1], &alone);
    alone.short("a").end().with_code(0);
    let refused = of_all.short("b").hasty().end().with_code(78);
    refused.says(&["keeps tokens of an address without ?quorum"]);
    quorum.0[1].cli(&["FLUSHALL"]);
    let (site, prefix) = new_store(&quorum);
    site.short("a").end().with_code(0);
    let alone = Site::new(format!("{}?prefix={prefix}", quorum.0[2].tcp_url()));
    let refused = alone.short("b").end().with_code(78);
    refused.says(&["a store whose address has ?quorum"]);
}

/// The ballot of each register that this server holds.
fn held(server: &Server, prefix: &str) -> String {
    let script = "local all = {} \
                  for _, key in ipairs(redis.call('KEYS', ARGV[1])) do \
                    all[#all + 1] = key .. '=' .. (redis.call('HGET', key, 'accepted') or '') \
                  end table.sort(all) return table.concat(all, ' ')";
    let keys = format!("{{{prefix}}}:register:*");
    server.cli(&["EVAL", script, "0", &keys])
}

/// A store in which the job has run, and of which all servers hold the same. One that is late is left out of some writes,
/// also of those of `init`, which are made once: such a store is given up.
fn alike_store(quorum: &Quorum) -> (Site, String) {
    until("all servers hold the same", || {
        let (site, prefix) = new_store(quorum);
        site.short("a").end().with_code(0);
        let all: Vec<String> = quorum.0.iter().map(|it| held(it, &prefix)).collect();
        match all.iter().all(|it| *it == all[0] && !it.is_empty()) {
            true => Ok((site, prefix)),
            false => Err(format!("{all:#?}")),
        }
    })
}

#[test]
fn doctor_says_what_lets_servers_join_that_it_can_not_do_without() {
    let quorum = Quorum::start(3);
    let (site, prefix) = alike_store(&quorum);
    // What the last server missed, the second has forgotten.
    let script = "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end";
    let keys = format!("{{{prefix}}}:register*");
    quorum.0[2].cli(&["EVAL", script, "0", &keys]);
    quorum.0[1].restart();
    let doctor = site.verb(&["doctor", "-g", "job"]).end().with_code(69);
    for words in ["have not joined the others", "a run lets them join"] {
        assert!(doctor.stdout.contains(words), "{words}: {doctor:?}");
    }
    site.verb(&["status"]).end().with_code(0);
    site.verb(&["doctor", "-g", "job"]).end().with_code(0);
}

#[test]
fn doctor_examines_each_server() {
    let quorum = Quorum::start(3);
    let (site, _) = alike_store(&quorum);
    site.verb(&["doctor"]).end().with_code(0);
    quorum.0[1].restart();
    // It changes nothing: the second time the server has not joined either.
    for _ in 0..2 {
        let doctor = site.verb(&["doctor", "-g", "job"]).end().with_code(0);
        for words in ["has not joined", "ok    group"] {
            assert!(doctor.stdout.contains(words), "{words}: {doctor:?}");
        }
    }
    quorum.0[1].kill();
    quorum.0[2].kill();
    let doctor = site.verb(&["doctor"]).end().with_code(69);
    assert!(
        doctor.stdout.contains("fewer than 2 grant nothing"),
        "{doctor:?}"
    );
}
