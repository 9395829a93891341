//! The guide's PostgreSQL, as it stands there: the servers' names are looked up in a hosts
//! file of the test's own, what is not in a command comes from libpq's variables.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use super::blocks::{Block, By, blocks, matches};
use super::server::{Database, Server, program};
use super::site::Site;
use crate::support::{Ended, Line, TOKENRUN, script, until};

/// What the guide's commands name and this host lacks, and what stands for it.
const MADE_UP: [(&str, &str); 2] = [
    ("/opt/etl/run.sh", "./run.sh"),
    ("/etc/tokenrun/store", "./store"),
];

/// The addresses of the servers that the guide names, on this host alone.
const HOSTS: &str = "127.0.0.1 localhost db.example.org db1\n127.0.0.2 db2\n";

/// the guide's text, with what this host lacks replaced.
fn made_up(text: &str) -> String {
    let text = text.to_owned();
    let replaced = MADE_UP.iter();
    replaced.fold(text, |text, (named, made_up)| text.replace(named, made_up))
}

/// The ports in the guide are PostgreSQL's own, its addresses a site's.
fn here(shown: &str, port: u16) -> String {
    shown
        .replace("10.0.0.11", "127.0.0.1")
        .replace("5432", &port.to_string())
}

/// A server with the database `jobs`, and the role `etl`.
struct Readme<'a> {
    server: &'a Server,
    jobs: Database<'a>,
    site: Site,
}

impl<'a> Readme<'a> {
    fn new(server: &'a Server) -> Self {
        server.sql("postgres", "CREATE DATABASE jobs");
        server.sql("postgres", "CREATE ROLE etl LOGIN PASSWORD 's3cret'");
        let name = "jobs".to_owned();
        let jobs = Database { server, name };
        let site = Site::new(jobs.url());
        std::os::unix::fs::symlink(TOKENRUN, site.file("tokenrun")).unwrap();
        let job = "#!/bin/sh\necho $TOKENRUN_FENCE\n";
        script(&site.file("run.sh"), job);
        fs::write(site.file("hosts"), HOSTS).unwrap();
        let pass = site.file(".pgpass");
        fs::write(&pass, "*:*:*:etl:s3cret\n").unwrap();
        fs::set_permissions(&pass, fs::Permissions::from_mode(0o600)).unwrap();
        Self { server, jobs, site }
    }

    /// the guide's lines, as a shell script of this user.
    fn shell(&self, script: &str, user: &str) -> Line {
        let script = made_up(script);
        let own = self.site.store.path().display();
        let psql = program("psql");
        let programs = psql.parent().unwrap().display();
        let hosts = self.site.file("hosts");
        self.site
            .store
            .bare(&["-ec", &script])
            .program("bash")
            .under(&["unshare", "-rm", "sh", "-ec"])
            .under(&["mount --bind \"$0\" /etc/hosts; exec \"$@\""])
            .under(&[hosts.to_str().unwrap()])
            .env("PATH", format!("{own}:{programs}:/usr/bin:/bin"))
            .env("PGPORT", self.server.port().to_string())
            .env("PGUSER", user)
            .env("XDG_STATE_HOME", self.site.store.path())
    }

    /// What a database administrator runs.
    fn as_administrator(&self, block: &Block) -> Ended {
        let socket = self.server.socket();
        let line = self.shell(block.text(), "postgres").env("PGHOST", socket);
        line.end().with_code(0)
    }

    /// A run of the job, as the guide starts it.
    fn run(&self, block: &Block) -> Line {
        self.shell(block.text(), "an-unused-user")
    }
}

fn the(begin: &str) -> Block {
    let all = blocks(By::Postgres);
    all.into_iter().find(|block| block.is(begin)).unwrap()
}

#[test]
fn every_block_is_in_a_test_below() {
    let begins = [
        "tokenrun --store ",
        "tokenrun init --print-sql ",
        "$ tokenrun doctor ",
        "SELECT tokenrun.tokenrun_fence(",
        "ALTER ROLE app ",
        "CREATE ROLE viewer ",
    ];
    for block in blocks(By::Postgres) {
        let known = begins.iter().any(|begin| block.is(begin));
        assert!(known, "no test below is about {block:?}");
    }
}

/// A role that may not create a schema, the administrator's two lines, and the run again.
#[test]
fn a_role_without_rights_runs_after_the_administrators_commands() {
    let server = Server::start(&[]);
    let readme = Readme::new(&server);
    let job = the("tokenrun --store ");
    let refused = readme.run(&job).end().with_code(77);
    refused.says(&["tokenrun init --print-sql", "was not started"]);
    readme.as_administrator(&the("tokenrun init --print-sql "));
    let fence = readme.run(&job).end().with_code(0).stdout;
    let row = readme
        .jobs
        .sql("SELECT token_group, fence, last_outcome FROM tokenrun.token_status");
    assert_eq!(row, format!("nightly|{}|succeeded", fence.trim()));
}

/// A role that may create a schema needs no administrator.
#[test]
fn the_first_run_makes_the_tables() {
    let server = Server::start(&[]);
    let readme = Readme::new(&server);
    server.sql("postgres", "GRANT CREATE ON DATABASE jobs TO etl");
    readme.run(&the("tokenrun --store ")).end().with_code(0);
    let count = readme.jobs.sql("SELECT count(*) FROM tokenrun.runs");
    assert_eq!(count, "1");
}

/// The job's role has no right but the one that the guide grants it.
#[test]
fn a_jobs_role_calls_the_fence_and_has_limits() {
    let server = Server::start(&[]);
    let readme = Readme::new(&server);
    readme.as_administrator(&the("tokenrun init --print-sql "));
    let grant = "GRANT tokenrun_job TO app";
    assert!(super::blocks::a_page_has(&format!("`{grant}`")));
    readme.jobs.sql(&format!("CREATE ROLE app LOGIN; {grant}"));
    readme.jobs.sql(the("ALTER ROLE app ").text());
    let statement = the("SELECT tokenrun.tokenrun_fence(");
    let statement = statement.text().replace("1790000000123", "$TOKENRUN_FENCE");
    let port = server.port();
    // In the job its own fence is let through; then an earlier one is not.
    let job = format!(
        "#!/bin/sh
         transaction() {{
             psql -XAtq -v ON_ERROR_STOP=1 -v VERBOSITY=verbose -h 127.0.0.1 -p {port} -U app -d jobs << end
         BEGIN; {statement} SHOW idle_in_transaction_session_timeout; COMMIT;
end
         }}
         transaction && TOKENRUN_FENCE=$((TOKENRUN_FENCE - 1)) && transaction\n"
    );
    fs::write(readme.site.file("run.sh"), job).unwrap();
    // What psql says of an error in a script.
    let ended = readme.run(&the("tokenrun --store ")).end().with_code(3);
    assert_eq!(ended.stdout.trim(), "1min");
    for word in ["55000", "is stale"] {
        assert!(ended.stderr.contains(word), "{ended:?}");
    }
}

/// A certificate for db1, by an authority that no client trusts.
fn certify(server: &Server, folder: &Path) {
    fs::write(folder.join("names"), "subjectAltName=DNS:db1\n").unwrap();
    for words in [
        "req -x509 -newkey rsa:2048 -nodes -days 400 -keyout ca.key -out ca.crt -subj /CN=Our_CA",
        "req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=db1",
        "x509 -req -days 300 -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial \
         -extfile names -out server.crt",
    ] {
        let words = words.split(' ').map(|word| word.replace('_', " "));
        let done = Command::new("openssl")
            .args(words)
            .current_dir(folder)
            .output()
            .expect("openssl is missing: install it (tests/run-all does)");
        assert!(done.status.success(), "{done:?}");
    }
    for (name, mode) in [("server.crt", 0o644), ("server.key", 0o600)] {
        // The server's user copies them, so that they are its own.
        let all = fs::Permissions::from_mode(0o644);
        fs::set_permissions(folder.join(name), all).unwrap();
        let to = server.data().join(name);
        let mut copy = Server::command(Path::new("cp"));
        assert!(
            copy.arg(folder.join(name))
                .arg(&to)
                .status()
                .unwrap()
                .success()
        );
        fs::set_permissions(to, fs::Permissions::from_mode(mode)).unwrap();
    }
    server.sql("postgres", "ALTER SYSTEM SET ssl = on");
}

/// Two servers, of which one does not run; a role that lacks a right; and a standby.
#[test]
fn doctor_finds_what_is_shown() {
    let server = Server::start(&["password_encryption = scram-sha-256"]);
    let readme = Readme::new(&server);
    readme.as_administrator(&the("tokenrun init --print-sql "));
    readme
        .jobs
        .sql("REVOKE DELETE ON tokenrun.done_keys FROM tokenrun");
    certify(&server, readme.site.store.path());
    let hba = "local all all trust\nhost replication all 127.0.0.1/32 trust\n\
               host all postgres 127.0.0.1/32 trust\nhost all etl 127.0.0.1/32 scram-sha-256\n";
    fs::write(server.data().join("pg_hba.conf"), hba).unwrap();
    server.ctl(&["-w", "restart"]);
    let standby = server.standby();
    until("the standby follows", || {
        let count = server.sql("postgres", "SELECT count(*) FROM pg_stat_replication");
        if count == "1" { Ok(()) } else { Err(count) }
    });

    let block = the("$ tokenrun doctor ");
    let steps = block.steps();
    let [(command, shown)] = &steps[..] else {
        panic!("one command: {steps:?}");
    };
    let store = here("postgres://etl@db1:5432,db2:5432/jobs", server.port());
    fs::write(readme.site.file("store"), store).unwrap();
    let ended = readme.shell(command, "nobody").end().with_code(77);
    drop(standby);
    let mut lines = ended.stdout.lines();
    let mut skipping = false;
    for shown in shown {
        if *shown == "…" {
            skipping = true;
            continue;
        }
        let shown = here(&made_up(shown), server.port());
        let next = |line: Option<&str>| line.is_some_and(|line| matches(&shown, line));
        let found = if skipping {
            lines.any(|line| next(Some(line)))
        } else {
            next(lines.next())
        };
        assert!(
            found,
            "not printed, or not there:\n{shown}\n{}",
            ended.stdout
        );
        skipping = false;
    }
    assert!(skipping || lines.next().is_none(), "{}", ended.stdout);
}

/// The rights that the guide's page on `serve` gives to what only shows.
#[test]
fn a_role_that_may_only_read_sees_everything_and_changes_nothing() {
    let server = Server::start(&[]);
    let database = server.database();
    let site = Site::new(database.url());
    site.short("a").end().with_code(0);
    let rights = the("CREATE ROLE viewer ");
    database.sql(&rights.text().replace("PASSWORD '…'", ""));
    let reader = Site::new(database.url().replace("postgres@", "viewer@"));
    let metrics = &["metrics"][..];
    for words in [
        &["status"],
        &["history"],
        metrics,
        &["page", "--output", "-"],
    ] {
        let shown = reader.verb(words).end().with_code(0).stdout;
        assert!(shown.contains("job"), "{shown}");
    }
    for words in [&["pause", "-g", "job"][..], &["pause", "--client", "a"]] {
        reader.verb(words).end().with_code(77);
    }
    reader.short("a").end().with_code(77);
}
