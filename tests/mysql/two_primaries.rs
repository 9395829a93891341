//! Two servers of one list that both accept writes: a holder notices and warns, and `doctor` too.

use serde_json::Value;

use super::server::{Kind, Server};
use super::site::Site;
use crate::support::{Line, until};

on_both!(
    a_holder_says_once_that_another_server_accepts_writes,
    a_read_only_server_and_a_second_name_are_no_second_primary,
);

/// A run that looks every second, and whose calls outlast a busy machine: a call that is given up at the first server
/// goes on to the second one, which has no tables.
fn run(site: &Site) -> Line {
    site.made().run("a").with(&[
        "--report=report.json",
        "--heartbeat=1s",
        "--takeover-after=30s",
        "--store-timeout=5s",
    ])
}

fn report(site: &Site) -> Value {
    let text = std::fs::read_to_string(site.file("report.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// How many sessions a server has had.
fn sessions(server: &Server) -> usize {
    let line = server.sql("mysql", "SHOW GLOBAL STATUS LIKE 'Connections'");
    line.rsplit('\t').next().unwrap().parse().unwrap()
}

/// Waits until the run has looked at this server again. Each question here is a session too.
fn until_looked(server: &Server) {
    let (before, mut asked) = (sessions(server), 0);
    until("it is looked at again", || {
        asked += 1;
        match sessions(server) - before - asked {
            looks if looks >= 3 => Ok(()),
            looks => Err(format!("{looks} looks")),
        }
    });
}

fn a_holder_says_once_that_another_server_accepts_writes(kind: Kind) {
    let (first, second) = (Server::shared_of(kind), Server::start_of(kind, &[]));
    let database = first.database();
    second.sql("mysql", &format!("CREATE DATABASE {}", database.name));
    let (one, other) = (first.port(), second.port());
    let site = Site::new(format!(
        "mysql://root@127.0.0.1:{one},127.0.0.1:{other}/{}",
        database.name
    ));
    let held = run(&site).start();
    held.until_says("can all be written to");
    until_looked(&second);
    site.store.go(3);
    let names = [one, other].map(|port| format!("127.0.0.1:{port}"));
    let ended = held.end().with_code(3);
    let [message] = ended.other_messages()[..] else {
        panic!("one message is expected: {ended:?}");
    };
    for words in [&names[0], &names[1], "job", "stop all but the right one"] {
        assert!(message.contains(words), "{words}: {message}");
    }
    assert_eq!(report(&site)["primaries"], Value::from(names.to_vec()));
    let checked = site.verb(&["doctor"]).end().with_code(78);
    let words = "several servers accept writes";
    assert!(checked.stdout.contains(words), "{checked:?}");
}

fn a_read_only_server_and_a_second_name_are_no_second_primary(kind: Kind) {
    let (first, second) = (
        Server::shared_of(kind),
        Server::start_of(kind, &["read_only = ON"]),
    );
    let database = first.database();
    second.sql("mysql", &format!("CREATE DATABASE {}", database.name));
    let (one, other) = (first.port(), second.port());
    let site = Site::new(format!(
        "mysql://root@127.0.0.1:{one},127.0.0.1:{other},localhost:{one}/{}",
        database.name
    ));
    let held = run(&site).start();
    site.store.until_begun("a");
    until_looked(&second);
    site.store.go(0);
    let ended = held.end().with_code(0);
    assert!(ended.messages().is_empty(), "{ended:?}");
    assert_eq!(report(&site)["primaries"], Value::Null);
    let checked = site.verb(&["doctor"]).end();
    let words = "accepts writes, and no other";
    assert!(checked.stdout.contains(words), "{checked:?}");
}
