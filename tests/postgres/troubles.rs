//! A server that shuts down, is full, is read-only or has no disk left, with a job running and with
//! none: a run that has its token goes on if that passes, and nothing new is started.

use std::path::{Path, PathBuf};

use super::server::{Database, Server, program};
use super::site::Site;
use crate::support::{Run, until};

const PATIENT: [&str; 3] = [
    "--heartbeat=200ms",
    "--takeover-after=40s",
    "--store-timeout=1s",
];

/// A run that has begun.
fn holder(site: &Site) -> Run {
    let run = site.made().run("a").with(&PATIENT).start();
    site.store.until_begun("a");
    run
}

/// One message about the trouble and one about its end, and no effect on the job.
fn unharmed(site: &Site, run: Run) {
    run.until_says("can be used again");
    site.store.go(4);
    let ended = run.end().with_code(4);
    assert_eq!(ended.other_messages().len(), 2, "{ended:?}");
    assert_eq!(site.store.log().len(), 2, "{:?}", site.store.log());
}

/// psql, in a session that lasts until the test ends it.
fn session(database: &Database<'_>) -> std::process::Child {
    let mut psql = std::process::Command::new(program("psql"));
    psql.env_clear()
        .args(["-XAtq", "-U", "postgres", "-h"])
        .arg(database.server.socket());
    psql.args([
        "-p",
        &database.server.port().to_string(),
        "-d",
        &database.name,
    ]);
    psql.stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null());
    psql.spawn().unwrap()
}

#[test]
fn a_server_that_shuts_down_and_comes_back() {
    let server = Server::start(&[]);
    let database = server.database();
    let site = Site::new(database.url());
    let run = holder(&site);
    // It waits for connected clients, and lets no other in.
    server.ctl(&["-W", "-m", "smart", "stop"]);
    let other = Site::new(site.url.clone());
    until("it refuses others", || {
        let ended = other.short("b").with(&PATIENT).end();
        if ended.code == Some(69) {
            Ok(ended)
        } else {
            Err(format!("{ended:?}"))
        }
    })
    .says(&["shutting down", "57P03", "was not started"]);
    assert_eq!(run.stderr(), "");
    server.ctl(&["-w", "-m", "fast", "stop"]);
    run.until_says("it is ended in");
    other
        .short("b")
        .with(&PATIENT)
        .end()
        .with_code(69)
        .says(&["was not started"]);
    server.ctl(&["-w", "start"]);
    unharmed(&site, run);
}

/// Whether a client's connection is there, in a server without a slot to spare.
#[test]
fn a_server_that_is_full_when_the_connection_is_lost() {
    let server = Server::start(&["max_connections = 5", "superuser_reserved_connections = 3"]);
    let database = server.database();
    database.sql(
        "CREATE ROLE u LOGIN; GRANT CREATE ON DATABASE db0 TO u"
            .replace("db0", &database.name)
            .as_str(),
    );
    let site = Site::new(database.url().replace("postgres@", "u@"));
    let run = holder(&site);
    let mut others: Vec<_> = (0..2).map(|_| session(&database)).collect();
    let count = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'";
    until("they are connected", || {
        let seen = database.sql(count);
        if seen == "4" { Ok(()) } else { Err(seen) }
    });
    database.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'u'");
    let said = run.until_says("it is ended in");
    assert!(said.contains("SQLSTATE"), "{said}");
    site.short("b").with(&PATIENT).end().with_code(69).says(&[
        "53300",
        ".s.PGSQL.",
        "was not started",
    ]);
    for mut other in others.drain(..) {
        other.kill().unwrap();
        other.wait().unwrap();
    }
    unharmed(&site, run);
}

#[test]
fn a_server_that_becomes_read_only() {
    let server = Server::start(&[]);
    let database = server.database();
    let site = Site::new(database.url());
    let run = holder(&site);
    database.sql("ALTER SYSTEM SET default_transaction_read_only = on");
    server.ctl(&["reload"]);
    let said = run.until_says("read-only");
    // Over the connection that was there and over a new one it said the same.
    assert_eq!(said.matches("25006").count(), 1, "{said}");
    let ended = site.short_in("other").end().with_code(69);
    ended.says(&["read-only", "was not started"]);
    // It was refused: nothing of it can happen any more.
    assert!(!ended.stderr.contains("may be held"), "{ended:?}");
    let ended = site.verb(&["pause", "-g", "job"]).end().with_code(69);
    ended.says(&["25006"]);
    assert!(!ended.stderr.contains("not known"), "{ended:?}");
    database.sql("ALTER SYSTEM RESET default_transaction_read_only");
    server.ctl(&["reload"]);
    unharmed(&site, run);
}

/// A database whose files are on a file system of 14 MiB, that the server alone sees.
struct Small {
    server: Server,
    folder: PathBuf,
}

impl Small {
    fn new() -> Self {
        let server = Server::start(&[]);
        let folder = server.socket().join("small");
        done(Server::command(Path::new("mkdir")).arg(&folder));
        server.ctl(&["-w", "stop"]);
        let mount = "mount -t tmpfs -o size=14m,mode=0700 none \"$0\" && chown --reference=\"${0%/*}\" \"$0\" && exec \"$@\"";
        server.ctl_under(
            &["unshare", "-m", "sh", "-c", mount, folder.to_str().unwrap()],
            &["-w", "start"],
        );
        server.sql(
            "postgres",
            &format!("CREATE TABLESPACE small LOCATION '{}'", folder.display()),
        );
        server.sql("postgres", "CREATE DATABASE small TABLESPACE small");
        Self { server, folder }
    }

    fn filler(&self) -> PathBuf {
        let root = format!("/proc/{}/root", self.server.pid());
        Path::new(&root)
            .join(self.folder.strip_prefix("/").unwrap())
            .join("filler")
    }

    fn fill(&self) {
        let mut file = std::fs::File::create(self.filler()).unwrap();
        let full = std::io::copy(&mut std::io::repeat(0), &mut file).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    }
}

fn done(command: &mut std::process::Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}

/// Text that can't be compressed, so that a row of it needs room of its own.
fn dense(seed: u64) -> String {
    let mut state = seed;
    let word = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        format!("{:08x}", state >> 32)
    });
    word.take(120).collect()
}

const SHORT_LEASE: [&str; 3] = ["--takeover-after=8s", "--heartbeat=1s", "--kill-grace=1s"];

#[test]
fn needs_root_a_server_whose_disk_is_full() {
    let small = Small::new();
    let database = Database {
        server: &small.server,
        name: "small".into(),
    };
    let site = Site::new(database.url());
    let run = holder(&site);
    small.fill();
    // Heartbeats are made in place; what is new needs room. Here it does at once.
    database.sql("ALTER TABLE tokenrun.tokens SET (fillfactor = 100)");
    let mut number = 0;
    let full = until("there is no room for another group", || {
        number += 1;
        let label = format!("--label={}", dense(number));
        // One that finds no room for its end tries for as long as its lease.
        let short = site.short_in(&format!("g{number}"));
        let ended = short.with(&[&label]).with(&SHORT_LEASE).end();
        if ended.code == Some(69) {
            Ok(ended)
        } else {
            Err(format!("{ended:?}"))
        }
    });
    full.says(&["No space left", "53100", "was not started"]);
    assert!(!full.stderr.contains("may be held"), "{full:?}");
    std::fs::remove_file(small.filler()).unwrap();
    site.short_in("last").end().with_code(0);
    site.store.go(4);
    run.end().with_code(4);
}

#[test]
fn a_character_outside_the_databases_encoding_is_a_configuration_error() {
    let server = Server::shared();
    let name = "latin";
    let made = "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0";
    server.sql("postgres", made);
    let database = Database {
        server,
        name: name.into(),
    };
    let site = Site::new(database.url());
    site.short("a").end().with_code(0);
    let ended = site.short("a").with(&["--label=ночь"]).end().with_code(78);
    ended.says(&["22P05", "encoding", "was not started"]);
    assert!(!ended.stderr.contains("may be held"), "{ended:?}");
}
