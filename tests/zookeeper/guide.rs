//! The guide's ZooKeeper, as it stands there: the servers that it names are real ones of the test's.

use tokenrun::store::url::StoreUrl;

use super::blocks::{Block, By, blocks};
use super::server::Cluster;
use super::site::Site;
use crate::support::{TOKENRUN, script};

fn the(begin: &str) -> Block {
    let all = blocks(By::Zookeeper);
    all.into_iter().find(|block| block.is(begin)).unwrap()
}

#[test]
fn every_block_is_in_a_test_below() {
    for block in blocks(By::Zookeeper) {
        let known = block.is("export TOKENRUN_STORE=zk://") || block.is("zk://");
        assert!(known, "no test below is about {block:?}");
    }
}

#[test]
fn the_addresses_of_the_guide_are_good() {
    for line in the("zk://").text().lines() {
        let read = StoreUrl::parse(line);
        assert!(matches!(read, Ok(StoreUrl::Zookeeper(_))), "{line}");
    }
}

#[test]
fn the_user_of_the_guide_runs_the_job_and_no_other_client_does() {
    let cluster = Cluster::start(1);
    let servers = cluster.servers();
    let place = |user: &str| Site::new(format!("zk://{user}{servers}"));
    let own = place("etl:PASSWORD@");
    std::os::unix::fs::symlink(TOKENRUN, own.store.file("tokenrun")).unwrap();
    let job = "#!/bin/sh\necho $TOKENRUN_FENCE\n";
    script(&own.store.file("run.sh"), job);
    let script = the("export TOKENRUN_STORE=zk://")
        .text()
        .replace("z1.example.org,z2.example.org,z3.example.org", &servers)
        .replace("/opt/etl/run.sh", "./run.sh");
    let run = own
        .store
        .bare(&["-ec", &script])
        .program("bash")
        .env(
            "PATH",
            format!("{}:/usr/bin:/bin", own.store.path().display()),
        )
        .env("XDG_STATE_HOME", own.store.path())
        .end()
        .with_code(0);
    assert_eq!(run.stderr, "");
    let fence = run.stdout.lines().last().unwrap();
    assert!(fence.parse::<i64>().is_ok(), "{}", run.stdout);
    own.short("a").end().with_code(0);
    let doctor = own.verb(&["doctor"]).end().with_code(0).stdout;
    for words in [
        "as etl to the nodes under /tokenrun",
        "the nodes under /tokenrun are this user's own",
        "ZooKeeper 3.",
        "standalone",
    ] {
        assert!(doctor.contains(words), "{doctor}");
    }
    for user in ["", "etl:wrong@", "other:PASSWORD@"] {
        let refused = place(user).short("a").end().with_code(77).stderr;
        for words in ["may not do that at /tokenrun", "log in as the user"] {
            assert!(refused.contains(words), "{refused}");
        }
    }
    // Another path is another store, and open to all without a user.
    let others = Site::new(format!("zk://{servers}/others"));
    others.verb(&["init"]).end().with_code(0);
    others.short("a").end().with_code(0);
    let doctor = others.verb(&["doctor"]).end().with_code(0).stdout;
    assert!(doctor.contains("any client that reaches"), "{doctor}");
}
