//! What the log of a pod of `examples/kubernetes/nightly.yaml` has for each end, and the pod's exit
//! status.

use std::net::TcpListener;

use crate::container::{Site, with, with_job};
use crate::kubernetes::{Container, nightly};
use crate::mails::without_time;
use crate::server::Server;

/// An operator's word is heard soon, and a job is killed soon.
const HASTY: [&str; 2] = ["--heartbeat=1s", "--kill-grace=300ms"];

/// Both calls of a pod that waits for no time fall into its first look, which has a second.
const AT_ONCE: [&str; 2] = ["--wait=0", "--store-timeout=500ms"];

/// The pod of a cluster with a shell in its image, and this job.
fn pod(options: &[&str], job: &str) -> Container {
    let pod = with(with(nightly("east"), &HASTY), options);
    with_job(pod, &["/bin/sh", "-c", job])
}

/// Runs it: the exit status, and the log.
fn logged(site: &Site, url: &str, container: &Container) -> (i32, String) {
    let ended = site.run("east", url, container).end();
    let said: Vec<&str> = ended.messages();
    let said = said.join("\n");
    let said = said.split_inclusive([' ', '\n']).map(without_time);
    (ended.code.unwrap(), said.collect())
}

#[test]
fn needs_root_the_log_has_the_reason_of_each_end() {
    let site = Site::new();
    site.add_shell("/opt/none", "");
    let server = Server::start(&[]);
    let database = server.database();
    let url = crate::url_from_elsewhere(&database);
    let shown = url.split_once('?').unwrap().0;

    let job = "echo no space left >&2; exit 3";
    assert_eq!(
        logged(&site, &url, &pod(&["--once=1"], job)),
        (
            3,
            "no space left\ntokenrun: \"nightly\" failed: sh exited with 3 after N on east".into()
        )
    );
    assert_eq!(
        logged(
            &site,
            &url,
            &pod(&["--once=2", "--timeout=1s"], "while :; do :; done")
        ),
        (
            124,
            "tokenrun: \"nightly\" timed out: sh ran longer than N (--timeout) on east; it is \
             ended, and killed in N"
                .into()
        )
    );
    let waiting = pod(&["--once=3"], "echo begun >&2; while :; do :; done");
    let run = site.run("east", &url, &waiting).start();
    run.until_says("begun");
    let revoke = ["revoke", "-s", &url, "-g", "nightly", "-qq"];
    site.store().bare(&revoke).end().with_code(0);
    let ended = run.end().with_code(76);
    let said = ended.messages()[1].split_inclusive(' ').map(without_time);
    assert_eq!(
        said.collect::<String>(),
        format!(
            "tokenrun: an operator revoked the token of \"nightly\" in {shown}; sh is ended, and \
             killed in N"
        )
    );

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = "Connection refused (os error 111), while connecting";
    let late = "no answer within 500ms while logging in";
    for (port, how) in [(1, closed), (silent.local_addr().unwrap().port(), late)] {
        let url = format!("postgres://etl:wrong@127.0.0.1:{port}/postgres?sslmode=disable");
        let error = format!(
            "tokenrun: the store postgres://etl@127.0.0.1:{port}/postgres can't be used: server \
             127.0.0.1:{port}: {how}"
        );
        // It waits for a store that may come back, here for no time at all.
        let line = format!(
            "{error}; waiting for the store too\n\
             {error}; sh was not started; tokenrun doctor examines the store"
        );
        assert_eq!(
            logged(
                &site,
                &url,
                &pod(&[&AT_ONCE[..], &["--once=4"]].concat(), "exit 0")
            ),
            (69, line)
        );
    }
}

#[test]
fn needs_root_the_log_has_a_wrong_password() {
    let site = Site::new();
    let server = Server::start(&[]);
    server.sql("postgres", "CREATE ROLE etl LOGIN PASSWORD 'right'");
    let hba = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    std::fs::write(server.data().join("pg_hba.conf"), hba).unwrap();
    server.ctl(&["reload"]);
    let port = server.port();
    let url = format!("postgres://etl:wrong@127.0.0.1:{port}/postgres?sslmode=disable");
    let line = format!(
        "tokenrun: the store postgres://etl@127.0.0.1:{port}/postgres can't be used: server \
         127.0.0.1:{port}: password authentication failed for user \"etl\" (SQLSTATE 28P01); \
         run.sh was not started"
    );
    assert_eq!(logged(&site, &url, &nightly("east")), (77, line));
}
