//! The guide's etcd, as it stands there: the servers that it names are real ones of the test's.

use tokenrun::store::url::StoreUrl;

use super::blocks::{Block, By, blocks};
use super::server::{Cluster, program};
use super::site::Site;
use crate::support::{Line, TOKENRUN, script};

fn the(begin: &str) -> Block {
    let all = blocks(By::Etcd);
    all.into_iter().find(|block| block.is(begin)).unwrap()
}

#[test]
fn every_block_is_in_a_test_below() {
    let begins = [
        "etcdctl role add ",
        "tokenrun init --store etcd://",
        "tokenrun --store etcd://",
        "etcd://e1,",
        "printf 'value(",
    ];
    for block in blocks(By::Etcd) {
        let known = begins.iter().any(|begin| block.is(begin));
        assert!(known, "no test below is about {block:?}");
    }
}

#[test]
fn the_addresses_of_the_guide_are_good() {
    for line in the("etcd://e1,").text().lines() {
        assert!(
            matches!(StoreUrl::parse(line), Ok(StoreUrl::Etcd(_))),
            "{line}"
        );
    }
}

/// A cluster with users, and a folder in which the guide's commands find etcdctl as its administrator, tokenrun and
/// the job.
struct Place {
    cluster: Cluster,
    site: Site,
}

impl Place {
    fn new() -> Self {
        let cluster = Cluster::start(1);
        for words in [
            &["user", "add", "root:root"][..],
            &["user", "grant-role", "root", "root"],
            &["auth", "enable"],
        ] {
            assert!(cluster.etcdctl(words).is_some(), "{words:?}");
        }
        let site = Site::new(format!("etcd://127.0.0.1:{}", cluster.port(0)));
        std::os::unix::fs::symlink(TOKENRUN, site.store.file("tokenrun")).unwrap();
        let place = Self { cluster, site };
        let client = format!(
            "unset ETCDCTL_PASSWORD; exec {} --endpoints=127.0.0.1:{} --command-timeout=30s \
             --user=${{AS:-root:root}} \"$@\"",
            program("etcdctl").display(),
            place.cluster.port(0)
        );
        place.script("etcdctl", &client);
        place.script("run.sh", "echo $TOKENRUN_FENCE");
        place
    }

    fn script(&self, name: &str, text: &str) {
        script(&self.site.store.file(name), &format!("#!/bin/sh\n{text}\n"));
    }

    /// The guide's lines, as a shell script.
    fn shell(&self, begin: &str) -> Line {
        self.lines(the(begin).text())
    }

    /// With the guide's user, and a store that is known to be new. `None` if this release of etcd shows its status to the
    /// role root alone: then no other user can use it, and tokenrun says so.
    fn with_user() -> Option<Self> {
        let place = Self::new();
        place.shell("etcdctl role add ").end().with_code(0);
        let status = place.lines("etcdctl endpoint status");
        let is_shown = status.env("AS", "etl:PASSWORD").end().code == Some(0);
        let init = place.shell("tokenrun init --store etcd://").end();
        if !is_shown {
            let words = ["to the role root alone", "update etcd"];
            init.with_code(77).says(&words);
            return None;
        }
        init.with_code(0);
        Some(place)
    }

    /// Lines as a user types them, with the guide's servers.
    fn lines(&self, lines: &str) -> Line {
        let here = format!("127.0.0.1:{}", self.cluster.port(0));
        let script = lines
            .replace("e1.example.org,e2.example.org,e3.example.org", &here)
            .replace("/opt/etl/run.sh", "./run.sh");
        let own = self.site.store.path().display();
        self.site
            .store
            .bare(&["-ec", &script])
            .program("bash")
            .env("PATH", format!("{own}:/usr/bin:/bin"))
            .env("XDG_STATE_HOME", self.site.store.path())
            .env("ETCDCTL_API", "3")
            .env("ETCDCTL_PASSWORD", "PASSWORD")
    }
}

#[test]
fn the_user_of_the_guide_runs_the_job_and_no_other_user_does() {
    let Some(place) = Place::with_user() else {
        return;
    };
    let run = place.shell("tokenrun --store etcd://").end().with_code(0);
    assert_eq!(run.stderr, "");
    assert!(run.stdout.trim().parse::<i64>().is_ok(), "{}", run.stdout);
    let port = place.cluster.port(0);
    let as_user =
        |user: &str, path: &str| Site::new(format!("etcd://{user}127.0.0.1:{port}{path}"));
    let refused = |site: Site, password: &str, words: &[&str]| {
        let run = site.short("a").env("ETCDCTL_PASSWORD", password);
        run.end().with_code(77).says(words);
    };
    let site = as_user("etl@", "");
    let doctor = site.verb(&["doctor"]);
    let found = doctor
        .env("ETCDCTL_PASSWORD", "PASSWORD")
        .end()
        .with_code(0)
        .stdout;
    for words in [
        "as etl to the keys tokenrun/",
        "reads and writes of the keys tokenrun/",
    ] {
        assert!(found.contains(words), "{found}");
    }
    refused(as_user("", ""), "", &["user name is empty", "ETCDCTL_USER"]);
    refused(
        as_user("etl@", ""),
        "wrong",
        &["invalid user ID or password"],
    );
    refused(
        as_user("etl@", "/others"),
        "PASSWORD",
        &["permission denied", "readwrite"],
    );
}

/// The job's transaction fails as soon as another run was granted the token: also that of a job that was frozen.
#[test]
fn a_zombies_transaction_in_the_same_etcd_writes_nothing() {
    let Some(place) = Place::with_user() else {
        return;
    };
    let user = "etcdctl role add app
        etcdctl role grant-permission app --prefix=true read tokenrun/fence/
        etcdctl role grant-permission app --prefix=true readwrite orders/
        etcdctl user add app:app
        etcdctl user grant-role app app";
    place.lines(user).end().with_code(0);
    let write = |fence: &str, number: &str| {
        let lines = the("printf 'value(").text().replace("4711", number);
        let line = place.lines(&lines).env("TOKENRUN_GROUP", "nightly");
        let line = line.env("TOKENRUN_FENCE", fence).env("AS", "app:app");
        let said = line.end().with_code(0).stdout;
        said.lines().next().unwrap().to_owned()
    };
    let run = || {
        let run = place.shell("tokenrun --store etcd://").end().with_code(0);
        run.stdout.trim().to_owned()
    };
    let first = run();
    assert_eq!(write(&first, "1"), "SUCCESS");
    let second = run();
    assert_eq!(write(&first, "2"), "FAILURE");
    assert_eq!(write(&second, "3"), "SUCCESS");
    let kept = place.lines("etcdctl get orders/last --print-value-only");
    assert_eq!(kept.end().with_code(0).stdout, "3\n");
}
