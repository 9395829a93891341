//! Very many holders over a server that hangs and recovers.

use nix::sys::signal::Signal;
use postgres::{Client, NoTls};

use super::faults::all;
use super::server::Server;
use super::site::Site;
use crate::support::until;

const HOLDERS: usize = 300;

/// How many of them start at once.
const AT_ONCE: usize = 4;

#[test]
fn three_hundred_holders_over_a_frozen_server_leave_it_its_connections() {
    let server = Server::start(&["max_connections = 320", "log_connections = on"]);
    let database = server.database();
    let site = Site::new(database.url());
    site.short("a").end().with_code(0);
    // A busy machine needs many seconds to connect 300 clients. Clients that give up sooner keep the server
    // busy with connections that have no client. The lease outlasts the fault and all of that, however slow
    // the machine is, for the connections are the matter here.
    let timing = [
        "--heartbeat=2s",
        "--takeover-after=3m",
        "--store-timeout=10s",
    ];
    // A connection from before, because it is not easy to have one afterwards.
    let mut client = Client::connect(&database.tcp_url(), NoTls).unwrap();
    let mut so_many_are = |count: usize, sql: &str| {
        let seen: i64 = client.query_one(sql, &[]).unwrap().get(0);
        if seen == i64::try_from(count).unwrap() {
            Ok(())
        } else {
            Err(seen.to_string())
        }
    };
    let held = "SELECT count(*) FROM tokenrun.tokens WHERE state = 'running'";
    let mut runs = Vec::new();
    // Not all at once: a run whose start takes as long as its time-out gives up.
    while runs.len() < HOLDERS {
        for _ in 0..AT_ONCE {
            let line = site.in_group(&format!("g{}", runs.len()), "a");
            let line = line.with(&timing);
            let line = line.job(&["sh", "-c", "until test -e stop; do sleep 1; done"]);
            runs.push(line.start());
        }
        until("all hold their tokens", || so_many_are(runs.len(), held));
    }
    all(&server, Signal::SIGSTOP);
    for run in &runs {
        run.until_says("it is ended in");
    }
    // How long the fault lasts from here: every holder drops calls, and reconnects.
    std::thread::sleep(std::time::Duration::from_secs(5));
    let thawed = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    all(&server, Signal::SIGCONT);
    let heard = format!("{held} AND stamped_at > to_timestamp({})", thawed.as_secs());
    until("all are heard again", || so_many_are(HOLDERS, &heard));
    let connected = "SELECT count(*) FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND application_name LIKE 'tokenrun%'";
    until("each has one connection", || {
        so_many_are(HOLDERS, connected)
    });
    let log = std::fs::read_to_string(server.socket().join("log")).unwrap();
    assert!(!log.contains("too many clients"), "connections ran out");
    std::fs::write(site.file("stop"), "").unwrap();
    for run in runs {
        let ended = run.end().with_code(0);
        assert_eq!(ended.messages().len(), 2, "{ended:?}");
    }
}
