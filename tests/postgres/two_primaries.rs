//! Two servers of one list that both accept writes: a holder notices and warns.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::failover::both;
use super::server::Server;
use super::site::{GROUP, Site};
use crate::support::{Line, PROVING, TOKENRUN, until};

fn pair() -> (Server, Server) {
    let primary = Server::start(&["wal_level = replica", "max_wal_senders = 4"]);
    let second = primary.standby();
    second.sql("postgres", "ALTER SYSTEM SET log_connections = on");
    second.ctl(&["reload"]);
    until("connections are logged", || {
        let seen = second.sql("postgres", "SHOW log_connections");
        if seen == "on" { Ok(()) } else { Err(seen) }
    });
    (primary, second)
}

/// How often runs have connected to a server that logs that.
fn looks(server: &Server) -> usize {
    let log = std::fs::read_to_string(server.log()).unwrap();
    let shown = |line: &&str| {
        line.contains("connection authorized") && line.contains("application_name=tokenrun:")
    };
    log.lines().filter(shown).count()
}

/// Waits until so many more looks have begun; the last but one is over then.
fn until_looked(server: &Server, more: usize) {
    let before = looks(server);
    until("it is looked at again", || {
        let now = looks(server);
        if now >= before + more {
            Ok(())
        } else {
            Err(format!("{now} looks, {before} before"))
        }
    });
}

/// As `hasty`, and so it looks every second.
fn run(site: &Site) -> Line {
    site.run("a").hasty().with(&["--report=report.json"])
}

fn report(site: &Site) -> Value {
    let text = std::fs::read_to_string(site.file("report.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_holder_tells_once_that_another_server_can_be_written_to_as_well() {
    let (primary, second) = pair();
    let site = Site::new(both(&primary, &second));
    // The job is a nested run: the outer one looks for both.
    let nested = ["-s", &site.url, "-g", GROUP, "--", "sh", "-c", PROVING];
    let nested = [&[TOKENRUN], &nested[..]].concat();
    let first = run(&site).job(&nested).start();
    site.store.until_begun("a");
    let waits = site.run("b").hasty().with(&["--wait"]).start();
    waits.until_says("waiting");
    second.ctl(&["-w", "promote"]);
    first.until_says("can all be written to");
    until_looked(&second, 3);
    assert!(!waits.stderr().contains("can all be"), "it has no job");
    waits.signal(Signal::SIGTERM);
    assert_eq!(waits.end().signal, Some(15));
    until("each connection is closed after its look", || {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tokenrun:%'";
        let open = second.sql("postgres", sql);
        if open == "0" { Ok(()) } else { Err(open) }
    });
    site.store.go(3);
    let names = [&primary, &second].map(|it| format!("127.0.0.1:{}", it.port()));
    let ended = first.end().with_code(3);
    let [message] = ended.other_messages()[..] else {
        panic!("one message is expected: {ended:?}");
    };
    for words in [&names[0], &names[1], "job", "stop all but the right one"] {
        assert!(message.contains(words), "{words}: {message}");
    }
    assert_eq!(report(&site)["primaries"], Value::from(names.to_vec()));

    // It is there from the start.
    let json = run(&site).with(&["--log-format=json"]).start();
    let line = json.until_says("can all be written to");
    site.store.go(0);
    json.end().with_code(0).says(&["stop all but"]);
    let shown: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(shown["event"], "two_primaries", "{shown}");
    assert_eq!(shown["level"], "warning", "{shown}");
}

#[test]
fn a_standby_a_read_only_server_and_a_second_name_are_no_second_primary() {
    let (primary, second) = pair();
    let (one, other) = (primary.port(), second.port());
    let site = Site::new(format!(
        "postgres://postgres@127.0.0.1:{one},127.0.0.1:{other},localhost:{one}/postgres"
    ));
    let with_a_standby = run(&site).start();
    until_looked(&second, 3);
    site.store.go(0);
    let ended = with_a_standby.end().with_code(0);
    assert!(ended.messages().is_empty(), "{ended:?}");
    assert_eq!(report(&site)["primaries"], Value::Null);

    second.sql(
        "postgres",
        "ALTER SYSTEM SET default_transaction_read_only = on",
    );
    second.ctl(&["-w", "promote"]);
    second.ctl(&["reload"]);
    until("it is read-only", || {
        let seen = second.sql("postgres", "SHOW transaction_read_only");
        if seen == "on" { Ok(()) } else { Err(seen) }
    });
    let with_a_fenced_one = run(&site).start();
    until_looked(&second, 3);
    site.store.go(0);
    let ended = with_a_fenced_one.end().with_code(0);
    assert!(ended.messages().is_empty(), "{ended:?}");
}

/// The look at it lasts as long as the store's time-out: the run ends all the same.
#[test]
fn a_server_that_hangs_delays_neither_heartbeats_nor_the_end() {
    let primary = Server::start(&[]);
    let hung = TcpListener::bind("127.0.0.1:0").unwrap();
    let site = Site::new(format!(
        "postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres",
        primary.port(),
        hung.local_addr().unwrap().port()
    ));
    let run = site.run("a").with(&[
        "--heartbeat=200ms",
        "--takeover-after=60s",
        "--store-timeout=20s",
    ]);
    let run = run.start();
    site.store.until_begun("a");
    hung.set_nonblocking(true).unwrap();
    let looking = until("it is looked at", || match hung.accept() {
        Ok((looking, _)) => Ok(looking),
        Err(error) => Err(error.to_string()),
    });
    let heartbeat = "SELECT stamped_at FROM tokenrun.tokens";
    let before = primary.sql("postgres", heartbeat);
    until("the heart beats", || {
        let now = primary.sql("postgres", heartbeat);
        if now == before { Err(now) } else { Ok(()) }
    });
    let begun = Instant::now();
    site.store.go(0);
    let ended = run.end().with_code(0);
    let took = begun.elapsed();
    assert!(ended.messages().is_empty(), "{ended:?}");
    assert!(took < Duration::from_secs(1), "{took:?}");
    drop(looking);
}
