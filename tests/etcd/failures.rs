//! What each failure costs: the rows of the guide's table that are etcd's own.

use crate::new_store;
use crate::server::Cluster;
use crate::site::Site;

/// What the other servers have accepted may be missing on the one that goes on.
#[test]
fn a_server_that_is_made_to_go_on_alone_is_observed() {
    let cluster = Cluster::start(3);
    let site = new_store(&cluster);
    site.patient("a").job(&["true"]).end().with_code(0);
    (0..3).for_each(|index| cluster.kill(index));
    cluster.launch_alone(0);
    cluster.until_led();
    let next = site.patient("b").script("echo ran").start();
    next.until_says("may have forgotten a grant");
    assert_eq!(next.end().with_code(0).stdout, "ran\n");
}

/// Two disks of three are lost, and the third is emptied before it joins, as the guide says. With its data it would
/// answer for a past that the others do not have.
#[test]
fn after_the_loss_of_two_disks_of_three_the_emptied_cluster_is_observed() {
    let cluster = Cluster::start(3);
    let site = new_store(&cluster);
    site.patient("a").job(&["true"]).end().with_code(0);
    (0..3).for_each(|index| cluster.kill(index));
    cluster.forget();
    (0..3).for_each(|index| cluster.launch(index));
    cluster.until_led();
    let next = site.patient("b").job(&["true"]).start();
    next.until_says("may have forgotten a grant");
    next.end().with_code(0);
}

/// The holder's grant is lost with what came after the snapshot. The restored cluster counts its terms, its log and
/// its clock anew.
#[test]
fn a_restored_cluster_grants_nothing_until_every_holder_has_ended() {
    let cluster = Cluster::start(1);
    let site = new_store(&cluster);
    site.patient("a").job(&["true"]).end().with_code(0);
    // More than the restored cluster has when it is looked at first.
    for number in 0..30 {
        cluster
            .etcdctl(&["put", "other", &number.to_string()])
            .unwrap();
    }
    let snapshot = site.store.file("snapshot");
    cluster
        .etcdctl(&["snapshot", "save", snapshot.to_str().unwrap()])
        .unwrap();
    let holder = site
        .patient("a")
        .script("echo yes > begun; sleep 60")
        .start();
    site.store.until_line("begun");
    cluster.kill(0);
    cluster.restore(&snapshot);
    cluster.launch(0);
    cluster.until_led();
    let next: Site = Site::new(site.url.clone());
    let next = next.patient("b").script("echo ran").start();
    next.until_says("may have forgotten a grant");
    holder.end().with_code(76);
    assert_eq!(next.end().with_code(0).stdout, "ran\n");
}

/// A full database refuses every write: nothing is granted, and a holder ends its job and says why.
#[test]
fn a_full_database_loses_no_job_silently() {
    let cluster = Cluster::start_as(&["--quota-backend-bytes=8000000"]);
    let site = new_store(&cluster);
    let run = site
        .patient("a")
        .script("echo yes > begun; sleep 60")
        .start();
    site.store.until_line("begun");
    let filler = "x".repeat(100_000);
    for number in 0..200 {
        if cluster
            .etcdctl(&["put", &format!("filler-{number}"), &filler])
            .is_none()
        {
            break;
        }
    }
    assert!(
        cluster.etcdctl(&["put", "filler", &filler]).is_none(),
        "it is not full"
    );
    let refused = site
        .in_group("other", "b")
        .job(&["true"])
        .end()
        .with_code(69);
    refused.says(&["database space exceeded", "alarm disarm"]);
    let ended = run.end().with_code(76);
    assert!(
        ended.stderr.contains("database space exceeded"),
        "{}",
        ended.stderr
    );
    let doctor = site.verb(&["doctor"]).end().with_code(69).stdout;
    assert!(doctor.contains("alarm NOSPACE"), "{doctor}");
    let group = site.verb(&["status"]).end().with_code(0).stdout;
    assert!(group.contains("job"), "what is stored can be read: {group}");
}
