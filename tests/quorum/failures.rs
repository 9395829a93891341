//! What the failures of some of several servers cost: rows of the tables in the guide that several stores have.

use crate::new_store;
use crate::server::Cluster;
use crate::site::Site;

/// Durations with which a holder outlives an election: one took longer than 12 s on a busy machine.
const TERMS: [&str; 4] = [
    "--takeover-after=50s",
    "--heartbeat=500ms",
    "--store-timeout=2s",
    "--kill-grace=500ms",
];

/// Another node is refused as soon as the servers answer: those that follow a new leader may still be joining it.
fn until_refused(cluster: &Cluster, site: &Site) {
    cluster.wait_until("a refusal of another node", || {
        let ended = site.run("b").with(&TERMS).job(&["true"]).end();
        assert!(matches!(ended.code, Some(69 | 75)), "{ended:?}");
        ended.code == Some(75)
    });
}

#[test]
fn a_leader_that_is_killed_or_frozen_ends_no_job() {
    let cluster = Cluster::start(3);
    let site = new_store(&cluster);
    let run = site
        .run("a")
        .with(&TERMS)
        .script("echo yes > begun; until [ -e over ]; do sleep 0.1; done")
        .start();
    site.store.until_line("begun");
    let first = cluster.leader().unwrap();
    cluster.kill(first);
    cluster.until_led();
    until_refused(&cluster, &site);
    cluster.launch(first);
    cluster.until_led();
    let second = cluster.leader().unwrap();
    cluster.freeze(second);
    cluster.wait_until("another leader", || {
        cluster.leader().is_some_and(|it| it != second)
    });
    until_refused(&cluster, &site);
    cluster.thaw(second);
    std::fs::write(site.store.file("over"), "").unwrap();
    run.end().with_code(0);
    let history = site.verb(&["history", "--json"]).end().with_code(0).json();
    assert_eq!(history[0]["outcome"], "succeeded");
}

#[test]
fn without_a_majority_nothing_is_granted_and_the_holder_ends_its_job() {
    let cluster = Cluster::start(3);
    let site = new_store(&cluster);
    let run = site
        .run("a")
        .hasty()
        .script("echo yes > begun; sleep 60")
        .start();
    site.store.until_line("begun");
    cluster.kill(0);
    cluster.kill(1);
    site.short("b").end().with_code(69);
    let ended = run.end().with_code(76);
    assert!(
        ended.stderr.contains("could not be renewed"),
        "{}",
        ended.stderr
    );
    cluster.launch(0);
    cluster.launch(1);
    cluster.until_led();
    site.patient("a").job(&["true"]).end().with_code(0);
}

#[test]
fn a_cluster_without_its_data_is_observed_and_so_is_one_that_no_operator_has_called_new() {
    let cluster = Cluster::start(1);
    let site = new_store(&cluster);
    site.patient("a").job(&["true"]).end().with_code(0);
    cluster.kill(0);
    cluster.forget();
    cluster.launch(0);
    cluster.until_led();
    let next = site.patient("b").job(&["true"]).start();
    next.until_says("may have forgotten a grant");
    next.end().with_code(0);
}
