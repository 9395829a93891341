//! A master with a replica: only the master answers, and a promoted replica is observed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::server::Server;
use crate::site::Site;
use crate::{field, incarnation, key, settled, until_up_for};

fn both(first: &Server, second: &Server) -> String {
    format!(
        "redis://127.0.0.1:{},127.0.0.1:{}",
        first.port(),
        second.port()
    )
}

#[test]
fn a_replica_does_not_answer_and_the_next_server_of_the_list_does() {
    let master = Server::start(&[]);
    let replica = Server::start(&[]);
    replica.follow(&master);
    let site = settled(&master, &both(&replica, &master));
    site.short("a").end().with_code(0);
    let prefix = site.url.rsplit_once('?').unwrap().1;
    let alone = Site::new(format!("{}?{prefix}", replica.tcp_url()));
    let says = format!("it is a replica of 127.0.0.1:{}", master.port());
    alone.short("a").end().with_code(69).says(&[&says]);
    for verb in [&["once", "list"][..], &["history"], &["status"]] {
        alone.verb(verb).end().with_code(69).says(&["replica"]);
    }
}

/// Carries `work` out while the replica tells its master again and again how far it is. By itself it does so once a
/// second, and if it is late by a moment, a master with a limit of a second refuses writes.
fn acknowledged<R>(master: &Server, work: impl FnOnce() -> R) -> R {
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                // It asks the replica, and waits for its answer, here for 100 ms at most.
                master.cli(&["WAIT", "1", "100"]);
                thread::sleep(Duration::from_millis(50));
            }
        });
        let _over = Over(&is_over);
        work()
    })
}

/// The holder is on the old master, which has lost its replica and refuses writes. The replica is
/// promoted without the grant, and grants nothing until the holder must have ended.
#[test]
fn a_holder_whose_master_refuses_writes_ends_before_the_promoted_replica_grants() {
    let master = Server::start(&["min-replicas-to-write 1", "min-replicas-max-lag 1"]);
    let replica = Server::start(&[]);
    replica.follow(&master);
    let (old, holder) = acknowledged(&master, || {
        master.wait_until("a replica in time", || {
            let info = master.cli(&["INFO", "replication"]);
            info.contains("min_slaves_good_slaves:1")
        });
        let old = settled(&master, &master.tcp_url());
        let holder = old.run("a").less_hasty().start();
        old.store.until_begun("a");
        (old, holder)
    });
    let prefix = old.url.rsplit_once('?').unwrap().1;
    let new = Site::new(format!("{}?{prefix}", replica.tcp_url()));
    replica.promote();
    let next = new.run("b").less_hasty().start();
    next.until_says("may have forgotten a grant");
    assert!(old.store.is_job_alive(), "else this shows nothing");
    new.store.until_begun("b");
    assert!(!old.store.is_job_alive());
    holder.end().with_code(76).tells(&["NOREPLICAS"]);
    new.store.go(0);
    next.end().with_code(0);
}

/// The same with a holder that can't reach its master any more.
#[test]
fn a_holder_that_is_cut_off_ends_before_the_promoted_replica_grants() {
    let master = Server::start(&[]);
    let replica = Server::start(&[]);
    let proxy = crate::proxy::Proxy::to(master.port());
    let old = settled(&master, &format!("redis://127.0.0.1:{}", proxy.port));
    let prefix = old.url.rsplit_once('?').unwrap().1;
    let new = Site::new(format!("{}?{prefix}", replica.tcp_url()));
    // It has nothing of the master's: the grant is lost.
    replica.follow(&Server::start(&[]));
    let holder = old.run("a").less_hasty().start();
    old.store.until_begun("a");
    proxy.hole(true);
    master.kill();
    replica.promote();
    let next = new.run("b").less_hasty().start();
    next.until_says("may have forgotten a grant");
    assert!(old.store.is_job_alive(), "else this shows nothing");
    new.store.until_begun("b");
    assert!(!old.store.is_job_alive());
    holder.end().with_code(76);
    new.store.go(0);
    next.end().with_code(0);
}

/// The grant is on the replica too: the holder goes on there.
#[test]
fn a_run_goes_on_at_the_promoted_replica() {
    let master = Server::start(&[]);
    let replica = Server::start(&[]);
    replica.follow(&master);
    let site = settled(&master, &both(&master, &replica));
    let holder = site.run("a").hasty().start();
    site.store.until_begun("a");
    replica.wait_until("the grant at the replica", || {
        field(&replica, &site, "state") == "running"
    });
    master.kill();
    replica.promote();
    let now = incarnation(&replica);
    crate::until_field(&replica, &site, "clock_epoch", &now);
    site.store.go(0);
    holder.end().with_code(0);
    assert_eq!(field(&replica, &site, "state"), "free");
}

/// A server that forgets soon that it was a replica.
fn forgetful() -> Server {
    Server::start(&["repl-backlog-ttl 1"])
}

/// Redis clears what a server has followed when it has had no replica for `repl-backlog-ttl`.
fn until_history_is_cleared(server: &Server) {
    server.wait_until("a cleared history", || {
        let info = server.cli(&["INFO", "replication"]);
        info.contains(&format!("master_replid2:{}", "0".repeat(40)))
    });
}

/// Without a note its uptime would count, which says nothing about what was granted at the old master.
#[test]
fn a_promoted_replica_that_has_forgotten_its_master_is_observed() {
    let master = Server::start(&[]);
    let replica = forgetful();
    replica.follow(&master);
    // For longer than the lease and the time in which its master may have gone on.
    until_up_for(&replica, 18);
    master.kill();
    replica.promote();
    until_history_is_cleared(&replica);
    let site = Site::new(replica.url());
    let run = site.short("a").hasty().end().with_code(0);
    run.says(&["may have forgotten a grant"]);
}

/// Its note has no history, but tells how much it had received.
#[test]
fn a_server_that_was_a_replica_again_is_observed_although_its_history_is_cleared() {
    let master = Server::start(&[]);
    let server = forgetful();
    server.follow(&master);
    server.promote();
    until_history_is_cleared(&server);
    let site = settled(&server, &server.url());
    site.short("a").hasty().end().with_code(0);
    let dump = key(&site, "incarnation");
    let note = server.cli(&["HGET", &dump, "document"]);
    let version = server.cli(&["HGET", &dump, "version"]);
    server.follow(&master);
    server.promote();
    // Its own note, as if it had never had another's data.
    server.cli(&["HSET", &dump, "document", &note, "version", &version]);
    until_history_is_cleared(&server);
    let run = site.short("a").hasty().end().with_code(0);
    run.says(&["it is not the one that was seen before"]);
}

#[test]
fn a_promoted_replica_is_observed_once() {
    let master = Server::start(&[]);
    let replica = forgetful();
    replica.follow(&master);
    let site = settled(&master, &both(&master, &replica));
    site.short("a").end().with_code(0);
    replica.wait_until("the run at the replica", || {
        field(&replica, &site, "state") == "free"
    });
    master.kill();
    replica.promote();
    let before = incarnation(&replica);
    crate::settle(&replica, &site);
    until_history_is_cleared(&replica);
    assert_ne!(incarnation(&replica), before, "else this shows nothing");
    let run = site.short("a").end().with_code(0);
    assert_eq!(run.messages(), [""; 0]);
    assert_eq!(field(&replica, &site, "clock_epoch"), before);
    // And when the counters say no more that it was a replica.
    replica.cli(&["CONFIG", "RESETSTAT"]);
    let run = site.short("a").end().with_code(0);
    assert_eq!(run.messages(), [""; 0]);
    assert_eq!(field(&replica, &site, "clock_epoch"), before);
}

/// The counters say no more what it has received, but the history that it took over is the same.
#[test]
fn a_promoted_replica_whose_counters_are_reset_is_not_observed_again() {
    let master = Server::start(&[]);
    let replica = Server::start(&[]);
    replica.follow(&master);
    replica.promote();
    let site = settled(&replica, &replica.url());
    site.short("a").hasty().end().with_code(0);
    replica.cli(&["CONFIG", "RESETSTAT"]);
    let run = site.short("a").hasty().end().with_code(0);
    assert_eq!(run.messages(), [""; 0]);
    // A promotion is noticed all the same.
    replica.cli(&["REPLICAOF", "127.0.0.1", "1"]);
    replica.promote();
    let run = site.short("a").hasty().end().with_code(0);
    run.says(&["may have forgotten a grant"]);
}

/// It loads the history from its snapshot, and clears it when no replica has come for a while.
#[test]
fn a_master_that_was_restarted_is_observed_once() {
    let server = Server::start(&["repl-backlog-ttl 1"]);
    let replica = Server::start(&[]);
    replica.follow(&server);
    // Not while it saves for the replica.
    server.wait_until("a snapshot", || server.try_cli(&["SAVE"]) == "OK");
    replica.kill();
    server.restart();
    let before = incarnation(&server);
    assert!(before.contains('-'), "else this shows nothing: {before}");
    let site = settled(&server, &server.url());
    site.short("a").end().with_code(0);
    until_history_is_cleared(&server);
    let run = site.short("a").end().with_code(0);
    assert_eq!(run.messages(), [""; 0]);
    assert_eq!(field(&server, &site, "clock_epoch"), before);
}

/// The old master has no replicas and refuses writes. The new one is named behind it.
#[test]
fn a_master_without_its_replicas_leads_to_the_next_server_that_accepts_writes() {
    let (old, new) = (
        Server::start(&["min-replicas-to-write 1"]),
        Server::start(&[]),
    );
    let alone = settled(&new, &new.tcp_url());
    let query = alone.url.rsplit_once('?').unwrap().1;
    let site = Site::new(format!("{}?{query}", both(&old, &new)));
    let holder = site.run("a").start();
    site.store.until_begun("a");
    assert_eq!(field(&new, &alone, "state"), "running");
    site.store.go(0);
    holder.end().with_code(0);
    assert_eq!(field(&new, &alone, "state"), "free");
    // Without one, the refusal stays.
    new.kill();
    site.short("a").end().with_code(69).tells(&["NOREPLICAS"]);
}

/// The link to the replica is a black hole, and the replica is promoted at once. The old master counts it as
/// near for `min-replicas-max-lag` more, and accepts heartbeats so long.
#[test]
fn the_lag_of_the_old_master_is_waited_for() {
    let master = Server::start(&["min-replicas-to-write 1", "min-replicas-max-lag 5"]);
    let replica = Server::start(&[]);
    let link = crate::proxy::Proxy::to(master.port());
    replica.cli(&["REPLICAOF", "127.0.0.1", &link.port.to_string()]);
    master.until_a_replica_is_near();
    let old = settled(&master, &master.tcp_url());
    let query = old.url.rsplit_once('?').unwrap().1;
    let new = Site::new(format!("{}?{query}", replica.tcp_url()));
    let holder = old.run("a").hasty().start();
    old.store.until_begun("a");
    link.hole(true);
    replica.promote();
    let next = new.run("b").hasty().start();
    next.until_says("may have forgotten a grant");
    new.store.until_begun("b");
    assert!(!old.store.is_job_alive());
    holder.end().with_code(76).tells(&["NOREPLICAS"]);
    new.store.go(0);
    next.end().with_code(0);
}

/// A master that followed another for a while may have missed what happened there.
#[test]
fn a_master_that_was_demoted_and_promoted_again_is_observed() {
    let server = Server::start(&[]);
    let site = settled(&server, &server.url());
    site.short("a").hasty().end().with_code(0);
    let before = incarnation(&server);
    server.cli(&["REPLICAOF", "127.0.0.1", "1"]);
    server.promote();
    assert_ne!(incarnation(&server), before);
    let run = site.short("a").hasty().end().with_code(0);
    run.says(&["may have forgotten a grant"]);
}

/// No client can prevent that: it is said, once.
#[test]
fn a_holder_tells_that_another_server_is_a_master_as_well() {
    let master = Server::start(&[]);
    let replica = Server::start(&[]);
    replica.follow(&master);
    let site = settled(&master, &both(&master, &replica));
    let holder = site.run("a").hasty().start();
    site.store.until_begun("a");
    replica.promote();
    let said = holder.until_says("which can all be written to");
    for server in [&master, &replica] {
        assert!(said.contains(&server.port().to_string()), "{said}");
    }
    site.store.go(0);
    holder.end().with_code(0);
}

/// Each server of the list has its share of a call's time.
#[test]
fn a_hung_master_does_not_hide_a_promoted_replica() {
    let master = Server::start(&[]);
    let replica = Server::start(&[]);
    replica.follow(&master);
    let site = settled(&master, &both(&master, &replica));
    site.short("a").end().with_code(0);
    replica.wait_until("the run at the replica", || {
        field(&replica, &site, "state") == "free"
    });
    master.freeze();
    replica.promote();
    let prefix = site.url.rsplit_once('?').unwrap().1;
    let alone = Site::new(format!("{}?{prefix}", replica.tcp_url()));
    // Nothing was lost.
    crate::settle(&replica, &alone);
    let run = site.short("a").with(&["--store-timeout=4s"]).end();
    run.with_code(0);
    assert_eq!(field(&replica, &site, "state"), "free");
    let history = alone.verb(&["history", "--json"]).end().with_code(0).json();
    let runs = history.as_array().unwrap().iter();
    assert_eq!(runs.filter(|it| it["outcome"] == "succeeded").count(), 2);
}
