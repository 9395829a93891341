//! The guide's MariaDB, as it stands there: the servers' names are looked up in a hosts file of the test's own,
//! and what no command says comes from option files and variables.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use nix::sys::signal::Signal;

use super::blocks::{Block, By, a_page_has, blocks, matches};
use super::server::{Kind, Server};
use super::site::Site;
use crate::support::{Ended, Line, TOKENRUN, until};

/// The addresses of the servers that the guide names, on this host alone.
const HOSTS: &str = "127.0.0.1 localhost db.example.org db1 db2\n";

/// With these a wait of a takeover-after takes seconds.
pub(super) const HASTY: [(&str, &str); 4] = [
    ("TOKENRUN_TAKEOVER_AFTER", "10s"),
    ("TOKENRUN_HEARTBEAT", "1s"),
    ("TOKENRUN_KILL_GRACE", "1s"),
    ("TOKENRUN_STORE_TIMEOUT", "1s"),
];

/// What parts the output of two commands.
const END: &str = "end of a command";

/// A shell of the guide's user, on a host that knows the guide's servers.
struct Guide {
    site: Site,
    hasty: bool,
}

impl Guide {
    fn new(server: &Server) -> Self {
        let site = Site::new("");
        std::os::unix::fs::symlink(TOKENRUN, site.file("tokenrun")).unwrap();
        fs::write(site.file("hosts"), HOSTS).unwrap();
        let guide = Self { site, hasty: false };
        let socket = server.socket().display().to_string();
        let own = format!("[client]\nuser = root\nsocket = {socket}\n");
        guide.option_file("administrator", &own);
        guide
    }

    /// A user's home directory, with this option file.
    fn option_file(&self, user: &str, text: &str) {
        let file = self.home(user).join(".my.cnf");
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn home(&self, user: &str) -> PathBuf {
        let home = self.site.file(user);
        fs::create_dir_all(&home).unwrap();
        home
    }

    fn shell(&self, script: &str, user: &str, port: u16) -> Line {
        let own = self.site.store.path().display();
        let hosts = self.site.file("hosts");
        let mut line = (self.site.store.bare(&["-ec", script]))
            .program("bash")
            .under(&["unshare", "-rm", "sh", "-ec"])
            .under(&["mount --bind \"$0\" /etc/hosts; exec \"$@\""])
            .under(&[hosts.to_str().unwrap()])
            .env("PATH", format!("{own}:/usr/bin:/bin"))
            .env("HOME", self.home(user))
            .env("MYSQL_TCP_PORT", port.to_string())
            .env("XDG_STATE_HOME", self.site.store.path());
        for (name, value) in HASTY.into_iter().filter(|_| self.hasty) {
            line = line.env(name, value);
        }
        line
    }

    /// What a database administrator runs.
    fn as_administrator(&self, script: &str) -> Ended {
        self.shell(script, "administrator", 1).end().with_code(0)
    }

    /// What the job's user types, and what is shown below it; `here` puts the test's servers in their places.
    fn type_in(&self, block: &Block, port: u16, here: &dyn Fn(&str) -> String) -> Ended {
        let steps = block.steps();
        let typed = steps.iter().map(|(command, _)| here(command));
        let script: Vec<String> = typed.map(|it| format!("{it}; echo '{END}'")).collect();
        let script = format!("exec 2>&1\n{}", script.join("\n"));
        let ended = self.shell(&script, "etl", port).end();
        let end = format!("{END}\n");
        let mut printed = ended.stdout.split(&end);
        for (command, shown) in &steps {
            let lines: Vec<&str> = printed.next().unwrap_or_default().lines().collect();
            let shown: Vec<String> = shown.iter().map(|line| here(line)).collect();
            assert!(are_shown(&shown, &lines), "{command}: {ended:?}");
        }
        ended
    }

    /// The address that the guide gives, for the whole set-up.
    fn url(port: u16) -> String {
        format!("mysql://etl:s3cret@127.0.0.1:{port}/jobs")
    }
}

/// Whether the lines are those that are shown. A line `…` stands for any number of lines.
fn are_shown(shown: &[String], lines: &[&str]) -> bool {
    match shown.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first == "…" => {
            (0..=lines.len()).any(|skipped| are_shown(rest, &lines[skipped..]))
        }
        Some((first, rest)) => lines
            .split_first()
            .is_some_and(|(line, others)| matches(first, line) && are_shown(rest, others)),
    }
}

fn the(begin: &str) -> Block {
    let all = blocks(By::Mysql);
    all.into_iter().find(|block| block.is(begin)).unwrap()
}

const FIRST: &str = "$ export TOKENRUN_STORE=mysql://";
const RIGHTS: &str = "tokenrun init --print-sql ";
const DOCTOR: &str = "$ tokenrun doctor ";
const NIGHT: &str = "$ tokenrun --store mysql://";
const FENCE: &str = "START TRANSACTION;";

#[test]
fn every_block_is_in_a_test_below() {
    let begins = ["mariadb ", "[client]", FIRST, RIGHTS, DOCTOR, NIGHT, FENCE];
    for block in blocks(By::Mysql) {
        let known = begins.iter().any(|begin| block.is(begin));
        assert!(known, "no test below is about {block:?}");
    }
}

/// The first five minutes.
#[test]
fn a_user_of_a_new_database_runs_a_job() {
    let server = Server::start(&[]);
    let guide = Guide::new(&server);
    guide.as_administrator(the("mariadb ").text());
    guide.option_file("etl", the("[client]").text());
    let port = server.port();
    let shown = |text: &str| text.replace(":3306", &format!(":{port}"));
    guide.type_in(&the(FIRST), port, &shown);
    assert_eq!(
        server.sql("jobs", "SELECT count(*) FROM tokenrun_runs"),
        "1"
    );
}

/// The administrator's two lines, and what the user may do with each right that they give.
fn five_rights_are_needed_and_are_enough_on(server: &Server) {
    let guide = Guide::new(server);
    guide.as_administrator(
        "mariadb -e \"CREATE DATABASE jobs; CREATE USER etl@'%' IDENTIFIED BY 's3cret'\"",
    );
    let refused = Site::new(Guide::url(server.port())).short("a").end();
    refused.with_code(77);
    let script = the(RIGHTS);
    // As after an upgrade, a second time.
    for _ in 0..2 {
        guide.as_administrator(script.text());
    }
    let site = Site::new(Guide::url(server.port()));
    site.short("a")
        .with(&["--once", "key", "--capture=1k"])
        .end()
        .with_code(0);
    for words in [
        &["pause", "-g", "job"][..],
        &["resume", "-g", "job"],
        &["fence", "advance", "r", "7"],
        &["once", "forget", "-g", "job", "key"],
        &["move", "--when-idle", "-g", "job", "--to", "b"],
        &["doctor"],
    ] {
        site.verb(words).end().with_code(0);
    }
    for right in ["SELECT", "INSERT", "UPDATE", "DELETE", "EXECUTE"] {
        server.sql("jobs", &format!("REVOKE {right} ON jobs.* FROM etl"));
        let lacks = site.verb(&["doctor"]).end().with_code(77);
        assert!(lacks.stdout.contains(right), "{lacks:?}");
        server.sql("jobs", &format!("GRANT {right} ON jobs.* TO etl"));
    }
    site.verb(&["doctor"]).end().with_code(0);
}

#[test]
fn five_rights_are_needed_and_are_enough() {
    five_rights_are_needed_and_are_enough_on(&Server::start(&[]));
}

/// There a password is proven over plain TCP only after a login by which the server has learnt it.
#[test]
fn needs_root_mysql_takes_the_same_rights_and_the_password_over_tls_first() {
    let server = Server::shared_of(Kind::Mysql);
    five_rights_are_needed_and_are_enough_on(server);
    server.sql("mysql", "FLUSH PRIVILEGES");
    let plain = Site::new(format!("{}?ssl-mode=DISABLED", Guide::url(server.port())));
    let refused = plain.short("a").end().with_code(77);
    let why = "sent over TLS or a Unix socket only";
    assert!(refused.stderr.contains(why), "{refused:?}");
    let over_tls = Site::new(format!("{}?ssl-mode=REQUIRED", Guide::url(server.port())));
    over_tls.short("a").end().with_code(0);
    plain.short("a").end().with_code(0);
}

/// What a user who makes the tables needs besides; none of these rights can be left out.
#[test]
fn a_user_makes_the_tables_with_the_rights_that_are_named() {
    let more = "CREATE, DROP, CREATE VIEW, CREATE ROUTINE, ALTER ROUTINE";
    assert!(a_page_has(&format!("`{more}`")), "{more}");
    let server = Server::start(&[]);
    server.sql("mysql", "CREATE USER etl IDENTIFIED BY 's3cret'");
    let rights: Vec<&str> = more.split(", ").collect();
    for left_out in rights.iter().map(Some).chain([None]) {
        let given = rights.iter().filter(|right| Some(*right) != left_out);
        let given: Vec<&str> = given.copied().collect();
        server.sql(
            "mysql",
            &format!(
                "DROP DATABASE IF EXISTS jobs; CREATE DATABASE jobs; REVOKE ALL, GRANT OPTION FROM etl;
                 GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE, {} ON jobs.* TO etl",
                given.join(", ")
            ),
        );
        let ended = Site::new(Guide::url(server.port())).short("a").end();
        let code = if left_out.is_some() { 77 } else { 0 };
        assert_eq!(ended.code, Some(code), "without {left_out:?}: {ended:?}");
    }
}

/// A job's user has one right, and its transactions begin as the guide says.
#[test]
fn a_jobs_user_calls_the_fence() {
    let server = Server::start(&[]);
    let guide = Guide::new(&server);
    guide.as_administrator(
        "mariadb -e \"CREATE DATABASE jobs; CREATE USER etl IDENTIFIED BY 's3cret'\"",
    );
    guide.as_administrator(the(RIGHTS).text());
    let grant = "GRANT EXECUTE ON PROCEDURE jobs.tokenrun_fence TO app";
    assert!(a_page_has(&format!("`{grant}`")), "{grant}");
    server.sql("jobs", &format!("CREATE USER app; {grant}"));
    let statement = the(FENCE);
    let statement = statement.text().replace("1790000000123", "$TOKENRUN_FENCE");
    // In the job its own fence is let through; then an earlier one is not.
    let job = format!(
        "transaction() {{
             mariadb --no-defaults -N -h 127.0.0.1 -P {} -u app jobs << end
{statement} SELECT @@idle_transaction_timeout; COMMIT;
end
         }}
         transaction && TOKENRUN_FENCE=$((TOKENRUN_FENCE - 1)) && transaction",
        server.port()
    );
    let site = Site::new(Guide::url(server.port()));
    let run = site.in_group("nightly", "a").script(&job).end();
    // What the client says of an error in a script.
    let ended = run.with_code(1);
    assert_eq!(ended.stdout.trim(), "60");
    for word in ["45000", "is stale"] {
        assert!(ended.stderr.contains(word), "{ended:?}");
    }
}

/// A server that another can follow from its beginning on.
pub(super) fn with_a_binary_log(id: u32) -> Server {
    let id = format!("server_id = {id}");
    Server::start(&[&id, "log_bin", "log_slave_updates", "sync_binlog = 1"])
}

fn follow(replica: &Server, primary: &Server) {
    let from = format!(
        "SET GLOBAL read_only = ON; CHANGE MASTER TO master_host = '127.0.0.1', master_port = {}, \
         master_user = 'root', master_use_gtid = slave_pos; START SLAVE",
        primary.port()
    );
    replica.sql("mysql", &from);
}

/// Until the replica has all that the primary has.
fn wait_for(replica: &Server, primary: &Server) {
    let have = primary.sql("mysql", "SELECT @@gtid_binlog_pos");
    let wait = format!("SELECT MASTER_GTID_WAIT('{have}', 60)");
    assert_eq!(replica.sql("mysql", &wait), "0", "it does not follow");
}

/// A primary with its replica, and a night in which it dies.
#[test]
fn a_failover_looks_as_it_is_shown() {
    let (primary, replica) = (with_a_binary_log(1), with_a_binary_log(2));
    follow(&replica, &primary);
    let mut guide = Guide::new(&primary);
    guide.as_administrator(the("mariadb ").text());
    guide.option_file("etl", the("[client]").text());
    let (first, second) = (primary.port(), replica.port());
    let here = |text: &str| {
        let mut text = text.replace("10.0.0.11", "127.0.0.1");
        for (host, port) in [("db1", first), ("db2", second)] {
            for between in [":", " port "] {
                let (shown, real) = (format!("{between}3306"), format!("{between}{port}"));
                text = text.replace(&format!("{host}{shown}"), &format!("{host}{real}"));
            }
        }
        // Last: these ports may begin with the shown one.
        text.replace("etl@db1,db2", &format!("etl@db1:{first},db2:{second}"))
    };
    let init = here("tokenrun init --store mysql://etl@db1,db2/jobs");
    guide.shell(&init, "etl", first).end().with_code(0);
    guide.hasty = true;
    let run = here("tokenrun --store mysql://etl@db1,db2/jobs --group nightly -- true");
    guide.shell(&run, "etl", first).end().with_code(0);
    until("the replica is counted", || {
        let count = primary.sql("mysql", "SHOW STATUS LIKE 'Slaves_connected'");
        if count.ends_with('1') {
            Ok(())
        } else {
            Err(count)
        }
    });
    guide.hasty = false;
    guide.type_in(&the(DOCTOR), first, &here).with_code(0);
    guide.hasty = true;

    wait_for(&replica, &primary);
    primary.stop(Signal::SIGKILL);
    replica.sql(
        "mysql",
        "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = OFF",
    );
    guide.type_in(&the(NIGHT), first, &here).with_code(0);
    let known = guide.shell(&run, "etl", first).end().with_code(0);
    assert!(!known.stderr.contains("may have forgotten"), "{known:?}");
}
