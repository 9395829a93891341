//! Random bytes, which a login by password needs: they come from the kernel, whatever files there
//! are, and where it has none the run ends at once.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::connecting::Secured;
use super::programs;
use super::server::Server;
use super::site::Site;
use crate::support::TOKENRUN;

/// Executes a program for which the kernel has no seed: a library that needs one panics.
fn no_seed() -> &'static str {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT
        .get_or_init(|| programs::build("no_seed"))
        .to_str()
        .unwrap()
}

fn scram(secured: &Secured, sslmode: &str) -> String {
    format!(
        "host=127.0.0.1 port={} dbname=scram user=scram password='it\\'s a: p@ss' {sslmode}",
        secured.server.port()
    )
}

/// As in a container that has nothing else in it: no `/dev/urandom`, no `/proc`.
#[test]
fn a_login_needs_no_device() {
    let secured = Secured::start();
    let root = secured.site.file("root");
    std::fs::create_dir(&root).unwrap();
    // Another process copies: what this one has open for writing can't be executed.
    for (from, to) in [
        (TOKENRUN.into(), "tokenrun"),
        (secured.folder.join("ca.crt"), "ca.crt"),
    ] {
        let done = Command::new("cp").arg(from).arg(root.join(to)).status();
        assert!(done.unwrap().success());
    }
    let chroot = ["unshare", "-r", "chroot", root.to_str().unwrap()];
    for sslmode in ["sslmode=disable", "sslmode=verify-ca sslrootcert=/ca.crt"] {
        let run = secured.site.store.bare(&["-g", "g", "--keep=0"]);
        let run = run.env("TOKENRUN_STORE", scram(&secured, sslmode));
        let run = run.under(&chroot);
        let run = run.program("/tokenrun").job(&["/tokenrun", "--version"]);
        let ended = run.end().with_code(0);
        assert!(ended.stdout.starts_with("tokenrun "), "{ended:?}");
        assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    }
}

/// A library that finds no seed panics, on the store's thread.
#[test]
fn a_panic_in_a_thread_ends_the_run_at_once() {
    let secured = Secured::start();
    let end = |word: &str| {
        let run = secured
            .site
            .store
            .bare(&["-g", "g", "--store-timeout=1m", word]);
        let run = run.env("TOKENRUN_STORE", scram(&secured, "sslmode=disable"));
        let begun = Instant::now();
        let ended = run.under(&[no_seed()]).job(&["true"]).end();
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(5), "{took:?}");
        ended.with_code(70)
    };
    const WORDS: [&str; 3] = ["a bug ends this run", "ThreadRng", "thread store"];
    end("--verbose").says(&WORDS);
    let json = end("--log-format=json");
    let shown: Value = serde_json::from_str(json.message()).unwrap();
    assert_eq!(shown["event"], "bug", "{shown}");
    json.says(&WORDS);
    assert_eq!(end("-qq").stderr, "");
}

/// The server asks for a password only once the job runs, so the next heartbeat panics.
#[test]
fn a_panic_while_a_job_runs_ends_the_job_too() {
    let server = Server::start(&["password_encryption = scram-sha-256"]);
    server.sql("postgres", "CREATE ROLE scram LOGIN SUPERUSER PASSWORD 'p'");
    let port = server.port();
    let site = Site::new(format!("postgres://scram@127.0.0.1:{port}/postgres"));
    // A hasty run may have no time to make the tables.
    site.verb(&["init"])
        .env("PGPASSWORD", "p")
        .end()
        .with_code(0);
    let run = site.run("a").under(&[no_seed()]);
    let run = run.env("PGPASSWORD", "p").hasty().start();
    site.store.until_begun("a");
    let asks = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    std::fs::write(server.data().join("pg_hba.conf"), asks).unwrap();
    server.ctl(&["reload"]);
    server.sql(
        "postgres",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'scram'",
    );
    let ended = run.end().with_code(70);
    ended.says(&["a bug ends this run", "ThreadRng", "thread store"]);
    site.store.until_job_gone();
    assert_eq!(site.store.log().len(), 1, "{:?}", site.store.log());
    assert_eq!(
        server.sql("postgres", "SELECT state FROM tokenrun.tokens"),
        "running"
    );
}
