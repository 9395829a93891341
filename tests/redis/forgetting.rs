//! A server that may have forgotten a grant: nothing is granted until every earlier lease is over.

use crate::server::Server;
use crate::site::Site;
use crate::{field, incarnation, key, settle, settled, until_field, until_up_for};

/// The holder reaches no server until its lease is over, and the new one knows nothing of it.
#[test]
fn a_server_without_persistence_that_was_killed_grants_nothing_while_the_old_lease_lasts() {
    let server = Server::start(&[]);
    let proxy = crate::proxy::Proxy::to(server.port());
    let old = settled(&server, &format!("redis://127.0.0.1:{}", proxy.port));
    let prefix = old.url.rsplit_once('?').unwrap().1;
    let new = Site::new(format!("{}?{prefix}", server.tcp_url()));
    let holder = old.run("a").less_hasty().start();
    old.store.until_begun("a");
    proxy.hole(true);
    server.restart();
    assert_eq!(server.cli(&["DBSIZE"]), "0", "it has forgotten everything");
    let next = new.run("b").less_hasty().start();
    next.until_says("may have forgotten a grant");
    assert!(old.store.is_job_alive(), "else this shows nothing");
    new.store.until_begun("b");
    assert!(!old.store.is_job_alive());
    holder.end().with_code(76);
    new.store.go(0);
    next.end().with_code(0);
}

/// A holder that reaches the server finds that its grant is forgotten, and ends.
#[test]
fn a_holder_whose_grant_is_forgotten_ends_at_its_next_heartbeat() {
    let server = Server::start(&[]);
    let site = settled(&server, &server.url());
    let holder = site.run("a").hasty().start();
    site.store.until_begun("a");
    server.restart();
    holder.end().with_code(76);
    site.store.until_job_gone();
    let history = site.verb(&["history", "--json"]).end().json();
    assert_eq!(history[0]["outcome"], "lost");
}

/// What is on the disk, or with the kernel, is read again, and the holder goes on. Others are kept out
/// by the row, and by the doubt whether it is the last.
fn goes_on_after_a_restart(fsync: &str) {
    let fsync = format!("appendfsync {fsync}");
    let server = Server::start(&["appendonly yes", &fsync]);
    let site = settled(&server, &server.url());
    let holder = site.run("a").hasty().start();
    site.store.until_begun("a");
    server.restart();
    let now = incarnation(&server);
    until_field(&server, &site, "clock_epoch", &now);
    let other = Site::new(site.url.clone());
    let next = other.run("b").hasty().with(&["--wait=4s"]).start();
    next.end().with_code(75);
    site.store.go(0);
    holder.end().with_code(0);
    assert_eq!(field(&server, &site, "state"), "free");
}

#[test]
fn a_holder_goes_on_after_a_restart_with_a_log_that_is_synced_each_time() {
    goes_on_after_a_restart("always");
}

#[test]
fn a_holder_goes_on_after_a_kill_with_a_log_that_is_synced_each_second() {
    goes_on_after_a_restart("everysec");
}

/// Redis's own default: the last snapshot is older than the grant.
#[test]
fn a_holder_whose_grant_came_after_the_last_snapshot_ends_at_its_next_heartbeat() {
    let server = Server::start(&["save 3600 1"]);
    let site = settled(&server, &server.url());
    site.short("before").hasty().end().with_code(0);
    server.cli(&["SAVE"]);
    let holder = site.run("a").hasty().start();
    site.store.until_begun("a");
    server.restart();
    assert_eq!(field(&server, &site, "state"), "free", "an old row");
    let other = Site::new(site.url.clone());
    let next = other.run("b").hasty().start();
    next.until_says("may have forgotten a grant");
    holder.end().with_code(76);
    other.store.until_begun("b");
    assert!(!site.store.is_job_alive());
    other.store.go(0);
    next.end().with_code(0);
}

/// The time that it has been up before its first user counts.
#[test]
fn a_server_that_has_been_up_for_a_while_is_observed_for_the_rest() {
    let server = Server::start(&[]);
    until_up_for(&server, 3);
    let site = Site::new(server.url());
    let run = site.short("a").hasty().end().with_code(0);
    run.says(&["may have forgotten a grant"]);
    assert!(!run.message().contains("is granted for 5s"), "{run:?}");
}

#[test]
fn a_server_that_was_started_just_now_is_observed_and_an_older_one_is_not() {
    let server = Server::start(&[]);
    let first = Site::new(format!("{}?prefix=first", server.url()));
    let run = first.short("a").hasty().end().with_code(0);
    run.says(&["may have forgotten a grant"]);
    until_up_for(&server, 6);
    let second = Site::new(format!("{}?prefix=second", server.url()));
    let run = second.short("a").hasty().end().with_code(0);
    assert_eq!(run.messages(), [""; 0], "a new user waits for nothing");
}

/// Its fence rises, as it follows the clock; and a new note is not trusted.
#[test]
fn the_fence_rises_through_flushall_and_what_was_flushed_is_observed() {
    let server = Server::start(&[]);
    let site = settled(&server, &server.url());
    site.short("a").hasty().end().with_code(0);
    let before: i64 = field(&server, &site, "fence").parse().unwrap();
    // However long it has been up.
    until_up_for(&server, 6);
    server.cli(&["FLUSHALL"]);
    let run = site.short("b").hasty().end().with_code(0);
    run.says(&["may have forgotten a grant"]);
    let after: i64 = field(&server, &site, "fence").parse().unwrap();
    assert!(after > before, "{after} > {before}");
}

/// The server says no more that it was emptied, but that its counters were reset.
#[test]
fn what_was_flushed_is_observed_after_config_resetstat_too() {
    let server = Server::start(&[]);
    let site = settled(&server, &server.url());
    site.short("a").hasty().end().with_code(0);
    until_up_for(&server, 6);
    server.cli(&["FLUSHALL"]);
    server.cli(&["CONFIG", "RESETSTAT"]);
    let run = site.short("b").hasty().end().with_code(0);
    run.says(&["may have forgotten a grant"]);
}

/// A server on which something was done that may have taken a grant away, and the note with it, is
/// observed, however long it has been up.
fn is_observed_after(act: impl FnOnce(&Server, &Site)) {
    let server = Server::start(&[]);
    let site = settled(&server, &server.url());
    site.short("a").hasty().end().with_code(0);
    until_up_for(&server, 6);
    act(&server, &site);
    let run = site.short("b").hasty().end().with_code(0);
    run.says(&["may have forgotten a grant"]);
}

#[test]
fn a_database_that_was_flushed_is_observed() {
    is_observed_after(|server, _| drop(server.cli(&["FLUSHDB"])));
}

#[test]
fn a_database_that_was_exchanged_is_observed() {
    is_observed_after(|server, _| drop(server.cli(&["SWAPDB", "0", "1"])));
}

#[test]
fn a_server_whose_keys_were_moved_away_is_observed() {
    let other = Server::start(&[]);
    is_observed_after(|server, site| {
        let (port, note) = (other.port().to_string(), key(site, "incarnation"));
        let words = [
            "MIGRATE",
            "127.0.0.1",
            &port,
            "",
            "0",
            "5000",
            "KEYS",
            &note,
        ];
        assert_eq!(server.cli(&words), "OK");
    });
}

fn restored(server: &Server, site: &Site, how: &str) {
    let script = "local dump = redis.call('DUMP', KEYS[1])
        redis.call('DEL', KEYS[1], KEYS[2])
        return redis.call(ARGV[1], KEYS[1], 0, dump)";
    let (token, note) = (key(site, "token:job"), key(site, "incarnation"));
    assert_eq!(server.cli(&["EVAL", script, "2", &token, &note, how]), "OK");
}

#[test]
fn a_server_whose_keys_were_restored_is_observed() {
    is_observed_after(|server, site| restored(server, site, "RESTORE"));
}

/// As another node of a cluster does it.
#[test]
fn a_server_whose_keys_came_from_elsewhere_is_observed() {
    is_observed_after(|server, site| restored(server, site, "RESTORE-ASKING"));
}

/// Each database has its own note, which names it.
#[test]
fn two_stores_that_were_exchanged_are_observed() {
    let server = Server::start(&[]);
    let here = settled(&server, &server.tcp_url());
    let (url, query) = here.url.split_once('?').unwrap();
    let there = Site::new(format!("{url}/3?{query}"));
    settle(&server, &there);
    there.short("a").hasty().end().with_code(0);
    let holder = here.run("a").hasty().start();
    here.store.until_begun("a");
    server.cli(&["SWAPDB", "0", "3"]);
    let other = Site::new(here.url.clone());
    let next = other.run("b").hasty().start();
    next.until_says("may have forgotten a grant");
    holder.end().with_code(76);
    other.store.until_begun("b");
    assert!(!here.store.is_job_alive());
    other.store.go(0);
    next.end().with_code(0);
}

/// While it runs, a holder finds its token gone at its next heartbeat.
#[test]
fn a_holder_whose_token_was_flushed_ends_at_its_next_heartbeat() {
    let server = Server::start(&[]);
    let site = settled(&server, &server.url());
    let holder = site.run("a").hasty().start();
    site.store.until_begun("a");
    server.cli(&["FLUSHALL"]);
    holder.end().with_code(76);
    site.store.until_job_gone();
}

#[test]
fn an_operator_who_knows_that_nothing_was_lost_settles_it() {
    let server = Server::start(&[]);
    let site = Site::new(server.url());
    settle(&server, &site);
    // With five minutes as takeover-after.
    site.short("a").end().with_code(0);
    assert_eq!(server.cli(&["EXISTS", &key(&site, "incarnation")]), "1");
    site.verb(&["distrust", "--yes"]).end().with_code(0);
    let run = site.short("a").with(&["--wait=0s"]).start();
    run.until_says("may have forgotten a grant");
}
