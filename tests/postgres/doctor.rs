//! `doctor` on real servers: each thing that can be wrong is named, with what to do.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::connecting::Secured;
use super::failover::both;
use super::faults::all;
use super::pooler::Pooler;
use super::server::Server;
use super::site::{GROUP, Site};
use crate::support::until;

/// What doctor found, and its exit status.
struct Findings(Vec<Value>);

impl Findings {
    #[track_caller]
    fn of(url: &str, words: &[&str], code: i32) -> Self {
        let site = Site::new(url);
        let line = site.verb(&["doctor", "--json"]).with(words);
        let ended = line.end().with_code(code);
        assert!(!ended.stdout.contains("s3cret"), "{ended:?}");
        assert!(!ended.stderr.contains("s3cret"), "{ended:?}");
        Self(ended.json().as_array().unwrap().clone())
    }

    /// The first of this step.
    #[track_caller]
    fn step(&self, step: &str) -> &Value {
        let found = self.0.iter().find(|check| check["step"] == step);
        found.unwrap_or_else(|| panic!("no {step}: {:#?}", self.0))
    }

    /// Its verdict, and words of what was found and of the remedy.
    #[track_caller]
    fn says(&self, step: &str, verdict: &str, words: &[&str]) {
        let check = self.step(step);
        assert_eq!(check["verdict"], verdict, "{check:#}");
        let has_remedy = check["remedy"].as_str().is_some_and(|it| !it.is_empty());
        assert_eq!(has_remedy, verdict != "ok", "{check:#}");
        for word in words {
            assert!(check.to_string().contains(word), "{word:?}: {check:#}");
        }
    }

    /// What was found and the remedy, to the letter.
    #[track_caller]
    fn is(&self, step: &str, found: &str, remedy: &str) {
        let check = self.step(step);
        assert_eq!(check["found"], found, "{check:#}");
        assert_eq!(check["remedy"].as_str().unwrap_or_default(), remedy);
    }

    /// Without those that say who set what.
    fn steps(&self) -> Vec<&str> {
        let steps = self.0.iter().map(|it| it["step"].as_str().unwrap());
        steps.filter(|step| *step != "setting").collect()
    }
}

/// A role that has what the printed SQL gives, and its database's tables.
fn least(database: &super::server::Database<'_>, role: &str) {
    let site = Site::new(database.url());
    let printed = site.verb(&["init", "--print-sql"]).end().with_code(0);
    database.sql(&printed.stdout);
    database.sql(&format!(
        "CREATE ROLE {role} LOGIN PASSWORD 's3cret' IN ROLE tokenrun; \
         ALTER ROLE {role} SET idle_in_transaction_session_timeout = '1min'; \
         ALTER ROLE {role} SET tcp_keepalives_idle = 10; \
         ALTER ROLE {role} SET tcp_keepalives_interval = 5; \
         ALTER ROLE {role} SET tcp_keepalives_count = 3"
    ));
}

#[test]
fn all_is_well_with_tls_scram_and_the_least_rights() {
    let secured = Secured::start();
    let server = &secured.server;
    let database = server.database();
    least(&database, "etl");
    let hba = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
    std::fs::write(server.data().join("pg_hba.conf"), hba).unwrap();
    server.sql("postgres", "ALTER SYSTEM SET fsync = on");
    server.sql("postgres", "SELECT pg_reload_conf()");
    let url = format!(
        "host=localhost hostaddr=127.0.0.1 port={} dbname={} user=etl password=s3cret \
         sslmode=verify-full sslrootcert={}",
        server.port(),
        database.name,
        secured.folder.join("ca.crt").display()
    );
    let found = Findings::of(&url, &["-g", GROUP], 0);
    assert_eq!(
        found.steps(),
        [
            "store",
            "name",
            "port",
            "login",
            "server",
            "pooler",
            "tls",
            "authentication",
            "clock",
            "round_trip",
            "rights",
            "schema",
            "durability",
            "replication",
            "keepalives",
            "idle_in_transaction",
            "stamps",
            "group",
            "timing",
            "lock_files",
        ]
    );
    for check in &found.0 {
        let may_be_else = ["group", "authentication"].map(Value::from);
        let well = check["verdict"] == "ok" || may_be_else.contains(&check["step"]);
        assert!(well, "{check:#}");
    }
    let words = [
        "TLSv1.3",
        "was checked, and its name",
        "ends can't be known",
    ];
    found.says("tls", "ok", &words);
    // A server before version 16 does not tell how it asked.
    let release = server.sql("postgres", "SHOW server_version_num");
    let (verdict, word) = match release.parse::<u32>().unwrap() {
        160_000.. => ("ok", "scram-sha-256"),
        _ => ("note", "can't be known"),
    };
    found.says("authentication", verdict, &[word]);
    found.says("pooler", "ok", &["none is in between"]);
    found.says("server", "ok", &["a primary"]);
    let version = server.sql("postgres", "SHOW server_version");
    found.is("server", &format!("PostgreSQL {version}, a primary"), "");
    found.is("name", "127.0.0.1 is an address", "");
    let port = format!("connected to 127.0.0.1:{}", server.port());
    found.is("port", &port, "");
    found.is("login", &format!("as etl to {}", database.name), "");
    found.is(
        "rights",
        "etl may do all that tokenrun does with the tables",
        "",
    );
    found.is("stamps", "none in the tokens lies in the future", "");
    found.says("group", "warn", &["there is no group", GROUP]);
    // It has written nothing.
    assert_eq!(database.sql("SELECT count(*) FROM tokenrun.tokens"), "0");
    // The files that secure the way are the first thing to be wrong.
    let other = url.replace("ca.crt", "other-ca.crt");
    let found = Findings::of(&other, &[], 78);
    found.says(
        "tls",
        "FAIL",
        &["the authority that signed", "sslrootcert", "UnknownIssuer"],
    );
    let unchecked = url
        .replace("verify-full", "require")
        .replace("ca.crt", "absent.crt");
    let found = Findings::of(&unchecked, &[], 0);
    found.says("tls", "warn", &["is not verified", "verify-full"]);
    let plain = unchecked
        .replace("absent.crt", "other-ca.crt")
        .replace("=require", "=prefer");
    Findings::of(&plain, &[], 78).says("tls", "FAIL", &["UnknownIssuer"]);
    let hba = format!("{hba}hostnossl all all 127.0.0.1/32 scram-sha-256\n");
    std::fs::write(server.data().join("pg_hba.conf"), hba).unwrap();
    server.sql("postgres", "SELECT pg_reload_conf()");
    let found = Findings::of(&plain, &[], 0);
    found.says("tls", "ok", &["does not leave this host"]);
    let elsewhere = url.replace("host=localhost", "host=elsewhere");
    let found = Findings::of(&elsewhere, &[], 78);
    found.says(
        "tls",
        "FAIL",
        &["elsewhere", "a name that the certificate has"],
    );
    let wrong = url.replace("s3cret", "wr0ng");
    let found = Findings::of(&wrong, &[], 77);
    found.says("authentication", "FAIL", &["28P01", "correct the password"]);
    let refused = |by: &str, words: &str| format!("as {by} to {}: {words}", database.name);
    found.is(
        "authentication",
        &refused(
            "etl",
            "password authentication failed for user \"etl\" (SQLSTATE 28P01)",
        ),
        "correct the password (~/.pgpass, PGPASSWORD, --store-file)",
    );
    assert!(
        !found
            .0
            .iter()
            .any(|check| check.to_string().contains("wr0ng"))
    );
    let none = url.replace("password=s3cret", "");
    let found = Findings::of(&none, &[], 77);
    found.says("authentication", "FAIL", &[".pgpass"]);
    let nobody = url
        .replace("user=etl", "user=plain")
        .replace("hostaddr=127.0.0.1", "hostaddr=::1");
    let found = Findings::of(&nobody, &[], 77);
    found.says("authentication", "FAIL", &["pg_hba.conf"]);
    let remedy = found.step("authentication")["remedy"].clone();
    let expected = "make the role, or let it in from this host in the server's pg_hba.conf";
    assert_eq!(remedy, expected);
    let absent = url.replace(&database.name, "absent");
    let found = Findings::of(&absent, &[], 78);
    found.says("login", "FAIL", &["absent", "database"]);
    found.is(
        "login",
        "as etl to absent: database \"absent\" does not exist (SQLSTATE 3D000)",
        "make the database, or correct its name in the store",
    );
}

#[test]
fn a_server_without_tls_gets_a_remedy() {
    let database = Server::shared().database();
    let url = format!("{}?sslmode=require", database.tcp_url());
    Findings::of(&url, &[], 78).says("tls", "FAIL", &["ssl = on"]);
}

#[test]
fn a_view_without_permission_is_no_failure() {
    let server = Server::start(&[]);
    let database = server.database();
    least(&database, "etl");
    database.sql(
        "REVOKE ALL ON pg_stat_replication, pg_stat_activity, pg_settings, pg_auth_members FROM PUBLIC",
    );
    let url = database.url().replace("postgres@", "etl@");
    let found = Findings::of(&url, &["-g", GROUP], 0);
    for step in ["pooler", "replication", "keepalives"] {
        found.says(step, "note", &["unknown: ", "permission denied"]);
        let remedy = &found.step(step)["remedy"];
        assert_eq!(remedy, "nothing, if this is intended: no run needs it");
    }
    found.says("rights", "ok", &[]);
}

#[test]
fn a_name_that_is_wrong_and_a_port_that_is_closed() {
    let probe = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = probe.local_addr().unwrap().port();
    drop(probe);
    let url = format!("postgres://u@127.0.0.1:{port}/d");
    let found = Findings::of(&url, &[], 69);
    found.says(
        "port",
        "FAIL",
        &["refused", "listen_addresses", &port.to_string()],
    );
    assert_eq!(
        found.steps(),
        ["store", "name", "port", "timing", "lock_files"]
    );
    let found = Findings::of("postgres://u@db.invalid/d", &[], 69);
    found.says("name", "FAIL", &["db.invalid", "getent"]);
    let found = Findings::of("postgres://u@%2Fnowhere/d", &[], 69);
    found.says("port", "FAIL", &["/nowhere", "unix_socket_directories"]);
    let found = Findings::of("postgres://u@h/d?sslcrl=x", &[], 78);
    found.says("store", "FAIL", &["sslcrl"]);
}

#[test]
fn each_of_several_hosts_is_gone_through() {
    let database = Server::shared().database();
    let port = database.server.port();
    let url = format!(
        "postgres://postgres@db.invalid,127.0.0.1:1,127.0.0.1:{port}/{}",
        database.name
    );
    let found = Findings::of(&url, &[], 69);
    found.says("name", "FAIL", &["db.invalid"]);
    found.says("port", "FAIL", &["127.0.0.1:1"]);
    found.says("server", "ok", &["primary", &port.to_string()]);
    found.says("primary", "ok", &[&port.to_string()]);
    found.says("replication", "warn", &["several servers are named"]);
    let text = Site::new(url).verb(&["doctor"]).end().with_code(69).stdout;
    assert_eq!(text.lines().count(), found.0.len(), "{text}");
    let starts = ["ok    ", "note  ", "warn  ", "FAIL  "];
    assert!(
        text.lines()
            .all(|line| starts.iter().any(|it| line.starts_with(it))),
        "{text}"
    );
    let fails = text.lines().filter(|line| line.starts_with("FAIL"));
    assert!(
        fails.clone().count() == 2 && fails.clone().all(|line| line.contains(" -> ")),
        "{text}"
    );
}

#[test]
fn a_schema_is_neither_made_nor_believed() {
    let server = Server::start(&[]);
    let database = server.database();
    let there = || database.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'tokenrun'");
    let found = Findings::of(&database.url(), &[], 0);
    found.says("schema", "ok", &["the first run makes it"]);
    found.says("rights", "warn", &["superuser", "init --print-sql"]);
    assert_eq!(there(), "0");
    database.sql("CREATE ROLE poor LOGIN");
    let poor = database.url().replace("postgres@", "poor@");
    let found = Findings::of(&poor, &[], 77);
    found.says(
        "rights",
        "FAIL",
        &["there is no schema", "GRANT tokenrun TO poor"],
    );
    found.says("idle_in_transaction", "warn", &["poor", "ALTER ROLE"]);
    assert_eq!(there(), "0");
    least(&database, "etl");
    database.sql("GRANT tokenrun_job TO poor");
    let found = Findings::of(&poor, &[], 77);
    found.says(
        "rights",
        "FAIL",
        &["lacks", "INSERT on tokens", "SELECT on meta"],
    );
    found.says("idle_in_transaction", "warn", &["poor"]);
    let etl = database.url().replace("postgres@", "etl@");
    let found = Findings::of(&etl, &[], 0);
    found.says("rights", "ok", &["etl"]);
    found.says("idle_in_transaction", "warn", &["poor"]);
    database.sql("ALTER TABLE tokenrun.tokens ENABLE ROW LEVEL SECURITY");
    Findings::of(&etl, &[], 78).says("rights", "FAIL", &["row security", "tokens"]);
    database.sql("ALTER TABLE tokenrun.tokens DISABLE ROW LEVEL SECURITY");
    database.sql("ALTER TABLE tokenrun.runs SET UNLOGGED");
    Findings::of(&etl, &[], 78).says("schema", "FAIL", &["not logged: runs"]);
    database.sql("ALTER TABLE tokenrun.runs SET LOGGED");
    database.sql("REVOKE DELETE ON tokenrun.waiters FROM tokenrun");
    Findings::of(&etl, &[], 77).says("rights", "FAIL", &["DELETE on waiters"]);
    database.sql("GRANT DELETE ON tokenrun.waiters TO tokenrun; DROP TABLE tokenrun.done_keys");
    Findings::of(&etl, &[], 78).says("schema", "FAIL", &["done_keys", "put a backup back"]);
    database.sql("UPDATE tokenrun.meta SET version = '99', oldest_reader = '99'");
    let found = Findings::of(&etl, &["-g", GROUP], 78);
    found.says("schema", "FAIL", &["99", "install a newer tokenrun"]);
    database.sql("DELETE FROM tokenrun.meta");
    Findings::of(&etl, &[], 78).says("schema", "FAIL", &["does not say which programs it is for"]);
    let odd = format!("{}?tokenrun_schema=My%20\"own\"%27s", database.url());
    Findings::of(&odd, &[], 0).says("schema", "ok", &["My ", "the first run makes it"]);
    database.sql("ALTER ROLE etl SET default_transaction_read_only = on");
    let found = Findings::of(&etl, &[], 78);
    found.says("server", "FAIL", &["read-only"]);
    let version = server.sql("postgres", "SHOW server_version");
    let primary = format!("PostgreSQL {version}, a primary");
    found.is(
        "server",
        &format!("{primary}, where transactions are read-only by default"),
        "set default_transaction_read_only = off, for the role at least",
    );
}

#[test]
fn a_groups_row_is_compared_with_the_options() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    let timing = ["--takeover-after=2m", "--keep=5m"];
    site.short("a").with(&timing).end().with_code(0);
    let before = database.sql("SELECT * FROM tokenrun.tokens");
    let found = Findings::of(&site.url, &["-g", GROUP, "--takeover-after=2m"], 0);
    found.says("group", "ok", &["bound to a", "2m"]);
    found.says("stamps", "ok", &[]);
    let found = Findings::of(&site.url, &["-g", GROUP], 0);
    found.says("group", "warn", &["2m", "5m", "on every node"]);
    found.says("timing", "ok", &["4m"]);
    assert_eq!(database.sql("SELECT * FROM tokenrun.tokens"), before);
    database.sql("UPDATE tokenrun.tokens SET stamped_at = now() + interval '1 hour'");
    Findings::of(&site.url, &[], 0).says("stamps", "warn", &["in the future"]);
    database.sql("UPDATE tokenrun.tokens SET state = 'odd'");
    let found = Findings::of(&site.url, &["-g", GROUP], 78);
    found.says("group", "FAIL", &["state"]);
    let remedy = "correct it in the table tokens, or put a backup back";
    assert_eq!(found.step("group")["remedy"], remedy);
}

#[test]
fn the_possible_loss_of_a_failover_is_reported() {
    let primary = Server::start(&["wal_level = replica", "max_wal_senders = 4", "fsync = off"]);
    let database = primary.database();
    least(&database, "etl");
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", primary.port());
    let alone = Findings::of(&url, &[], 0);
    alone.says("replication", "ok", &["nothing to fail over to"]);
    alone.says("durability", "warn", &["fsync"]);
    let second = primary.standby();
    until("the standby follows", || {
        let seen = primary.sql("postgres", "SELECT count(*) FROM pg_stat_replication");
        if seen == "1" { Ok(()) } else { Err(seen) }
    });
    let pair = both(&second, &primary);
    let found = Findings::of(&pair, &[], 0);
    found.says("server", "ok", &["a standby", &second.port().to_string()]);
    found.says("primary", "ok", &[&primary.port().to_string()]);
    found.says(
        "replication",
        "warn",
        &["1 standby follows asynchronously", "next runs wait"],
    );
    found.says("clocks", "ok", &[]);
    let hasty = ["--takeover-after=60s", "--heartbeat=5s", "--kill-grace=5s"];
    let found = Findings::of(&pair, &hasty, 0);
    found.says(
        "timing",
        "warn",
        &["a failover may take longer", "--takeover-after 1m"],
    );
    let found = Findings::of(&second_alone(&second), &[], 69);
    found.says("server", "FAIL", &["a standby", "name the primary"]);
    let version = second.sql("postgres", "SHOW server_version");
    found.is(
        "server",
        &format!("PostgreSQL {version}, a standby, where no token can be written"),
        "name the primary, or all servers that may become it (host=db1,db2)",
    );
    primary.sql(
        "postgres",
        "ALTER SYSTEM SET synchronous_standby_names = '*'",
    );
    primary.sql("postgres", "SELECT pg_reload_conf()");
    until("commits wait for the standby", || {
        let sql = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        let seen = primary.sql("postgres", sql);
        if seen == "1" { Ok(()) } else { Err(seen) }
    });
    let found = Findings::of(&pair, &[], 0);
    found.says(
        "replication",
        "ok",
        &["commits wait for 1", "loses no grant"],
    );
    let etl = database.tcp_url().replace("postgres@", "etl@");
    let found = Findings::of(&etl, &[], 0);
    found.says(
        "replication",
        "ok",
        &["this role may not see", "pg_read_all_stats"],
    );
    second.ctl(&["-w", "promote"]);
    // Each waits for a standby that follows it no more.
    let found = Findings::of(&pair, &[], 69);
    found.says(
        "primary",
        "FAIL",
        &["each of these can be written to", "stop all but"],
    );
    found.says("server", "ok", &["a primary"]);
    let found = Findings::of(&url, &[], 69);
    found.says("replication", "FAIL", &["every commit waits"]);
}

fn second_alone(second: &Server) -> String {
    format!("postgres://postgres@127.0.0.1:{}/postgres", second.port())
}

#[test]
fn a_pooler_is_noticed() {
    let server = Server::start(&[]);
    let database = server.database();
    let pooler = Pooler::start(&server);
    let url = format!(
        "postgres://postgres@127.0.0.1:{}/{}",
        pooler.port, database.name
    );
    let found = Findings::of(&url, &[], 0);
    found.says("pooler", "ok", &["one is in between", "once a second"]);
    let found = Findings::of(&database.tcp_url(), &[], 0);
    found.says("pooler", "ok", &["none"]);
    let found = Findings::of(&database.url(), &[], 0);
    found.says("pooler", "note", &["can't be known over a Unix socket"]);
}

#[test]
fn a_frozen_server_costs_one_time_out() {
    let server = Server::start(&[]);
    let database = server.database();
    all(&server, Signal::SIGSTOP);
    let begun = Instant::now();
    let site = Site::new(database.tcp_url());
    let line = site.verb(&["doctor", "--json", "--store-timeout=2s"]);
    let ended = line.end();
    let took = begun.elapsed();
    all(&server, Signal::SIGCONT);
    let found = Findings(ended.with_code(69).json().as_array().unwrap().clone());
    found.says("port", "ok", &["connected"]);
    found.says(
        "login",
        "FAIL",
        &["no answer within 2s", "while logging in", "stopped"],
    );
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn a_clock_an_hour_ahead_is_reported() {
    let server = Server::start(&[]);
    let database = server.database();
    server.ctl(&["-w", "stop"]);
    server.start_with_clock("+3600s");
    let found = Findings::of(&database.tcp_url(), &[], 0);
    found.says("clock", "warn", &["1h ahead", "NTP"]);
}

/// Something else listens on the port, and says what is meant to confuse.
#[test]
fn text_of_a_server_is_shown_in_one_line() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let fields = b"SFATAL\0VFATAL\0C28000\0Mno\nok    login\x1b[2J entry\0\0";
    let mut refusal = vec![b'E'];
    refusal.extend_from_slice(&u32::try_from(fields.len() + 4).unwrap().to_be_bytes());
    refusal.extend_from_slice(fields);
    let answers = [
        refusal,
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        b"R\xff\xff\xff\xff\0".to_vec(),
        vec![],
    ];
    std::thread::spawn(move || {
        let mut answers = answers.into_iter();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut first = [0; 8];
            let _ = stream.read_exact(&mut first);
            let Some(answer) = answers.next() else { return };
            let _ = stream.write_all(&answer);
        }
    });
    let url = format!("postgres://u:s3cret@127.0.0.1:{port}/d?sslmode=disable");
    let site = Site::new(url);
    for code in [77, 69, 69, 69] {
        let ended = site.verb(&["doctor"]).end().with_code(code);
        let odd = |line: &&str| {
            !["ok ", "note", "warn", "FAIL"]
                .iter()
                .any(|it| line.starts_with(it))
        };
        assert_eq!(ended.stdout.lines().filter(odd).count(), 0, "{ended:?}");
        assert!(!ended.stdout.contains('\u{1b}') && !ended.stdout.contains("s3cret"));
        assert_eq!(ended.stdout.matches("FAIL").count(), 1, "{ended:?}");
    }
}
