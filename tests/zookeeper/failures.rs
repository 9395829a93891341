//! What each failure costs: the rows of the guide's table that are ZooKeeper's own.

use crate::server::Cluster;
use crate::site::{ELSEWHERE, Site};
use crate::{new_store, programs};

/// The two servers without data form an ensemble, and the third takes their data in place of its own.
#[test]
fn after_the_loss_of_two_disks_of_three_the_ensemble_is_observed() {
    let cluster = Cluster::start(3);
    let site = new_store(&cluster);
    site.patient("a").job(&["true"]).end().with_code(0);
    (0..3).for_each(|index| cluster.kill(index));
    for index in [0, 1] {
        std::fs::remove_dir_all(cluster.data(index)).unwrap();
        cluster.launch(index);
    }
    cluster.until_led();
    cluster.launch(2);
    let next = site.patient("b").job(&["true"]).start();
    next.until_says("may have forgotten a grant");
    next.end().with_code(0);
}

/// An ensemble that was restored looks like one that has elected a leader. An operator says that it was, before any job
/// runs.
#[test]
fn after_distrust_a_restored_ensemble_grants_nothing_until_every_holder_has_ended() {
    let cluster = Cluster::start(1);
    let site = new_store(&cluster);
    site.patient("a").job(&["true"]).end().with_code(0);
    cluster.kill(0);
    let backup = cluster.folder().join("backup");
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        let mut copy = std::process::Command::new("cp");
        assert!(copy.arg("-a").arg(from).arg(to).status().unwrap().success());
    };
    copy(&cluster.data(0), &backup);
    cluster.launch(0);
    cluster.until_led();
    let holder = site
        .patient("a")
        .script("echo yes > begun; sleep 60")
        .start();
    site.store.until_line("begun");
    cluster.kill(0);
    cluster.forget();
    copy(&backup, &cluster.data(0));
    cluster.launch(0);
    cluster.until_led();
    site.verb(&["distrust", "--yes"]).end().with_code(0);
    let next = site.patient("b").script("echo ran").start();
    next.until_says("may have forgotten a grant");
    holder.end().with_code(76);
    assert_eq!(next.end().with_code(0).stdout, "ran\n");
}

/// The clock of the store is the leader's. Set forward by more than a lease, it makes a live holder look dead: another
/// takes over, and the first job ends with its next heartbeat.
#[test]
fn a_leader_whose_clock_is_set_forward_ends_the_job_of_a_live_holder() {
    let library = programs::build_as("leap", &["-shared", "-fPIC"]);
    let cluster = Cluster::start_leaping(&library);
    let site = new_store(&cluster);
    // The other comes between two heartbeats.
    let holder = site
        .run("a")
        .with(&["--takeover-after=40s", "--heartbeat=8s"]);
    let holder = holder.script("echo yes > begun; sleep 60").start();
    site.store.until_line("begun");
    cluster.leap(3_600);
    let other = Site::new(site.url.clone());
    let next = other
        .run("b")
        .env("PATH", "/usr/bin:/bin")
        .under(&ELSEWHERE);
    let next = next.script("echo ran").end().with_code(0);
    assert_eq!(next.stdout, "ran\n");
    holder.end().with_code(76);
    let history = site.verb(&["history", "--json"]).end().with_code(0).json();
    let outcomes = history
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["outcome"].as_str());
    assert_eq!(
        outcomes.collect::<Vec<_>>(),
        [Some("succeeded"), Some("lost")]
    );
}
