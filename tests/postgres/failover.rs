//! A primary with a standby: promoted, its clock elsewhere, the last grant lost.

use std::process::Stdio;

use super::server::{Server, program};
use super::site::Site;
use crate::support::{children, signal, until};
use nix::sys::signal::Signal;

/// A standby that follows, as its user, from a copy of the primary.
pub(super) fn standby(primary: &Server) -> Server {
    let folder = Server::folder();
    let mut copy = Server::command(&program("pg_basebackup"));
    copy.args([
        "-h",
        "127.0.0.1",
        "-U",
        "postgres",
        "-R",
        "-X",
        "stream",
        "-c",
        "fast",
    ]);
    copy.args(["-p", &primary.port().to_string(), "-D"])
        .arg(folder.join("data"));
    assert!(copy.stdout(Stdio::null()).status().unwrap().success());
    let upstream = format!(
        "primary_conninfo = 'host=127.0.0.1 port={} user=postgres'",
        primary.port()
    );
    Server::start_in(folder, &[&upstream, "hot_standby = on"])
}

pub(super) fn both(first: &Server, second: &Server) -> String {
    format!(
        "postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres",
        first.port(),
        second.port()
    )
}

#[test]
fn a_hung_primary_does_not_hide_a_promoted_standby() {
    let primary = Server::start(&["wal_level = replica", "max_wal_senders = 4"]);
    let site = Site::new(both(&primary, &primary));
    site.short("a").end().with_code(0);
    let second = standby(&primary);
    let site = Site::new(both(&second, &primary));
    // The standby comes first in the list, and can't write.
    site.short("a").end().with_code(0);
    until("the standby has it", || {
        let there = second.sql("postgres", "SELECT count(*) FROM tokenrun.runs");
        if there == "2" { Ok(()) } else { Err(there) }
    });
    let alone = Site::new(format!(
        "postgres://postgres@127.0.0.1:{}/postgres",
        second.port()
    ));
    alone.short("a").end().with_code(69).says(&["standby"]);
    // What it tells may be old.
    for verb in [&["once", "list"][..], &["history"], &["status"]] {
        alone.verb(verb).end().with_code(69).says(&["standby"]);
    }
    let first = primary.pid();
    signal(first, Signal::SIGSTOP);
    for child in children(first) {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(child), Signal::SIGSTOP);
    }
    second.ctl(&["-w", "promote"]);
    let site = Site::new(both(&primary, &second));
    let ended = site
        .run("a")
        .job(&["sh", "-c", "echo $TOKENRUN_FENCE"])
        .with(&["--store-timeout=4s"])
        .end();
    for child in children(first) {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(child), Signal::SIGCONT);
    }
    signal(first, Signal::SIGCONT);
    ended.with_code(0);
}

/// A primary, and a standby that has its first run and receives nothing more.
fn with_a_standby_that_was_cut_off() -> (Server, Server) {
    let primary = Server::start(&["wal_level = replica", "max_wal_senders = 4"]);
    let before = Site::new(both(&primary, &primary));
    before.short("z").end().with_code(0);
    let second = standby(&primary);
    until("the standby has it", || {
        let there = second.sql("postgres", "SELECT count(*) FROM tokenrun.runs");
        if there == "1" { Ok(()) } else { Err(there) }
    });
    second.sql("postgres", "ALTER SYSTEM SET primary_conninfo = ''");
    second.ctl(&["reload"]);
    until("the standby is cut off", || {
        let receivers = second.sql("postgres", "SELECT count(*) FROM pg_stat_wal_receiver");
        if receivers == "0" {
            Ok(())
        } else {
            Err(receivers)
        }
    });
    (primary, second)
}

/// The session knows its run whole, so a success whose grant was lost is history all the same,
/// and its key is done. It tells that the token was lost meanwhile.
#[test]
fn a_success_whose_grant_a_failover_lost_is_recorded_with_its_key() {
    let (primary, second) = with_a_standby_that_was_cut_off();
    let site = Site::new(both(&primary, &second));
    // No heartbeat tells of the loss before the job has ended.
    let once = ["--once=night", "--heartbeat=60s", "--report=report.json"];
    let run = site.run("old").with(&once).start();
    site.store.until_begun("old");
    primary.ctl(&["-w", "-m", "immediate", "stop"]);
    second.ctl(&["-w", "promote"]);
    site.store.go(0);
    run.end().with_code(0).says(&["was no longer ours"]);
    let report = std::fs::read_to_string(site.file("report.json")).unwrap();
    assert!(report.contains("\"recorded\": true"), "{report}");
    let told = "SELECT client, outcome, document ->> 'program', started_at < ended_at
        FROM tokenrun.runs WHERE document ->> 'once_key' = 'night'";
    assert_eq!(second.sql("postgres", told), "old|succeeded|sh|t");
    let again = site.short("new").with(&["--once=night"]).end();
    again.with_code(0).says(&["is done already"]);
}

/// The grant that was lost with the primary is another's afterwards: the old holder's
/// heartbeat does not overwrite it, its job is ended, and the fence has risen.
#[test]
fn a_grant_that_a_failover_lost_is_not_fought_for() {
    let (primary, second) = with_a_standby_that_was_cut_off();
    let site = Site::new(both(&primary, &second));
    let timing = [
        "--heartbeat=300ms",
        "--takeover-after=40s",
        "--store-timeout=3s",
    ];
    let old = site.run("old").with(&timing).start();
    site.store.until_begun("old");
    let lost: i64 = primary
        .sql("postgres", "SELECT fence FROM tokenrun.tokens")
        .parse()
        .unwrap();
    primary.ctl(&["-w", "-m", "immediate", "stop"]);
    second.ctl(&["-w", "promote"]);
    let other = Site::new(both(&second, &second));
    let new = other.run("new").with(&timing).start();
    other.store.until_begun("new");
    let fence: i64 = second
        .sql("postgres", "SELECT fence FROM tokenrun.tokens")
        .parse()
        .unwrap();
    assert!(fence > lost, "{fence} > {lost}");
    old.end().with_code(76);
    site.store.until_job_gone();
    let told = "SELECT outcome FROM tokenrun.runs WHERE client = 'old'";
    assert_eq!(second.sql("postgres", told), "lost");
    assert_eq!(
        second.sql("postgres", "SELECT client_bound FROM tokenrun.tokens"),
        "new"
    );
    other.store.go(0);
    new.end().with_code(0);
}

/// A job that runs goes on: its heartbeats find the server that was promoted.
#[test]
fn a_run_outlives_a_primary_that_hangs_for_ever() {
    let primary = Server::start(&["wal_level = replica", "max_wal_senders = 4"]);
    let second = standby(&primary);
    let site = Site::new(both(&primary, &second));
    let run = site.run("a").with(&[
        "--heartbeat=200ms",
        "--takeover-after=40s",
        "--store-timeout=1s",
    ]);
    let run = run.start();
    site.store.until_begun("a");
    until("the standby has the grant", || {
        let sql = "SELECT count(*) FROM pg_tables WHERE tablename = 'tokens'";
        if second.sql("postgres", sql) != "1" {
            return Err("no table".into());
        }
        let seen = second.sql("postgres", "SELECT state FROM tokenrun.tokens");
        if seen == "running" { Ok(()) } else { Err(seen) }
    });
    super::faults::all(&primary, Signal::SIGSTOP);
    second.ctl(&["-w", "promote"]);
    run.until_says("can be used again");
    site.store.go(4);
    let ended = run.end();
    super::faults::all(&primary, Signal::SIGCONT);
    let ended = ended.with_code(4);
    assert_eq!(ended.messages().len(), 2, "{ended:?}");
    let outcome = second.sql("postgres", "SELECT outcome FROM tokenrun.runs");
    assert_eq!(outcome, "failed");
}
