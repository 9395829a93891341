//! A server that comes back with another clock: restarted, or failed over to. Nothing is
//! taken over early, nothing is frozen until the old time comes again.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::server::Server;
use super::site::Site;
use crate::support::{Run, signal, until};

/// Restarts a server with its clock this much off.
fn restart_with_clock(server: &Server, offset: &str) {
    server.ctl(&["-w", "-m", "immediate", "stop"]);
    server.start_with_clock(offset);
    let theirs: i64 = server
        .sql(
            "postgres",
            "SELECT extract(epoch FROM clock_timestamp())::bigint",
        )
        .parse()
        .unwrap();
    let ours = std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .unwrap()
        .as_secs();
    let off = theirs - i64::try_from(ours).unwrap();
    assert!((off.abs() - 3600).abs() < 60, "{off} s");
}

/// Both at once, so that no process is left to record anything.
fn kill(run: Run) {
    let (supervisor, guard) = (run.pid(), run.guard());
    signal(supervisor, Signal::SIGSTOP);
    signal(guard, Signal::SIGKILL);
    signal(supervisor, Signal::SIGKILL);
    drop(run);
}

/// A running job is not taken over, and runs to its end; then a dead one is.
fn lives_through(site: &Site, change: impl FnOnce()) {
    let alive = site.run("alive").with(&[
        "--heartbeat=200ms",
        "--takeover-after=40s",
        "--store-timeout=2s",
    ]);
    let alive = alive.start();
    site.store.until_begun("alive");
    // Nothing proves on this host that it is dead.
    let dead = site.in_group("dead", "a").with(&["--close-lock"]).hasty();
    let dead = dead.job(&["sleep", "600"]).start();
    until("it runs", || {
        let status = site.verb(&["status", "--json", "-g", "dead"]).end();
        if status.stdout.contains("\"running\"") {
            Ok(())
        } else {
            Err(status.stderr)
        }
    });
    kill(dead);
    change();
    until("it is renewed in the new clock epoch", || {
        let ended = site.short("b").end();
        match ended.code {
            Some(75) if ended.stderr.contains("is held by alive") => Ok(()),
            _ => Err(format!("{ended:?}")),
        }
    });
    let begun = Instant::now();
    let ended = site
        .in_group("dead", "b")
        .hasty()
        .job(&["true"])
        .end()
        .with_code(0);
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(5), "{took:?}: {ended:?}");
    assert!(took < Duration::from_secs(30), "{took:?}: {ended:?}");
    let history = site
        .verb(&["history", "--json", "-g", "dead"])
        .end()
        .with_code(0)
        .json();
    assert_eq!(history[0]["grant"], "takeover");
    assert_eq!(history[1]["outcome"], "unknown");
    site.short("b").end().with_code(75);
    site.store.go(4);
    alive.end().with_code(4);
    site.store.assert_no_overlap();
}

#[test]
fn a_server_whose_clock_is_an_hour_ahead_after_a_restart() {
    let server = Server::start(&[]);
    let database = server.database();
    lives_through(&Site::new(database.url()), || {
        restart_with_clock(&server, "+3600s")
    });
}

#[test]
fn a_server_whose_clock_is_an_hour_behind_after_a_restart() {
    let server = Server::start(&[]);
    let database = server.database();
    lives_through(&Site::new(database.url()), || {
        restart_with_clock(&server, "-3600s")
    });
}

/// With synchronous replication nothing is lost.
#[test]
fn a_standby_whose_clock_is_an_hour_behind_is_promoted() {
    let primary = Server::start(&["wal_level = replica", "max_wal_senders = 4"]);
    let standby = primary.standby();
    standby.ctl(&["-w", "stop"]);
    standby.start_with_clock("-3600s");
    primary.sql(
        "postgres",
        "ALTER SYSTEM SET synchronous_standby_names = '*'",
    );
    primary.ctl(&["reload"]);
    until("it is synchronous", || {
        let seen = primary.sql("postgres", "SELECT sync_state FROM pg_stat_replication");
        if seen == "sync" { Ok(()) } else { Err(seen) }
    });
    let site = Site::new(super::failover::both(&primary, &standby));
    let fence = "SELECT string_agg(fence::text, ' ' ORDER BY token_group) FROM tokenrun.tokens WHERE token_group = 'job'";
    lives_through(&site, || {
        let granted = primary.sql("postgres", fence);
        primary.ctl(&["-w", "-m", "immediate", "stop"]);
        standby.ctl(&["-w", "promote"]);
        assert_eq!(standby.sql("postgres", fence), granted);
        let incarnation = super::failover::incarnation(&standby);
        site.verb(&["settle", "--yes", &incarnation])
            .end()
            .with_code(0);
    });
}
