//! A primary with a standby: promoted, its clock elsewhere, the last grant lost.

use super::server::{Server, program};
use super::site::Site;
use crate::support::{children, signal, until};
use nix::sys::signal::Signal;

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
    let second = primary.standby();
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
    // Nothing was lost: the standby had it all.
    let incarnation = incarnation(&second);
    alone
        .verb(&["settle", "--yes", &incarnation])
        .end()
        .with_code(0);
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
    before.short("z").hasty().end().with_code(0);
    let second = primary.standby();
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
    run.end().with_code(0).says(&["no longer had the token"]);
    let report = std::fs::read_to_string(site.file("report.json")).unwrap();
    assert!(report.contains("\"recorded\": true"), "{report}");
    let shown = "SELECT client, outcome, document ->> 'program', started_at < ended_at
        FROM tokenrun.runs WHERE document ->> 'once_key' = 'night'";
    assert_eq!(second.sql("postgres", shown), "old|succeeded|sh|t");
    let again = site.short("new").with(&["--once=night"]).end();
    again.with_code(0).says(&["is done already"]);
}

/// Which incarnation of the store this server is.
pub(super) fn incarnation(server: &Server) -> String {
    let sql = "SELECT concat_ws('-', system_identifier, left(pg_walfile_name('0/1'), 8), oid)
        FROM pg_control_system(), pg_database WHERE datname = current_database()";
    server.sql("postgres", sql)
}

/// The holder reaches no server that knows nothing of its grant, and goes on for as long as it
/// trusts its lease. So no other run is granted the token before that is over.
#[test]
fn a_holder_that_a_failover_forgot_and_cut_off_has_no_other_beside_it() {
    let (primary, second) = with_a_standby_that_was_cut_off();
    let site = Site::new(both(&primary, &primary));
    let old = site.run("old").less_hasty().start();
    site.store.until_begun("old");
    primary.ctl(&["-w", "-m", "immediate", "stop"]);
    second.ctl(&["-w", "promote"]);
    let other = Site::new(both(&second, &second));
    let new = other.run("new").less_hasty().start();
    new.until_says("may have forgotten a grant");
    assert!(site.store.is_job_alive(), "else this shows nothing");
    other.store.until_begun("new");
    assert!(!site.store.is_job_alive());
    old.end().with_code(76);
    other.store.go(0);
    new.end().with_code(0);
}

/// A dump that is put back into the same server has the note in it, and is another store.
#[test]
fn a_dump_that_is_put_back_into_the_same_server_is_observed() {
    let server = Server::shared();
    let (database, copy) = (server.database(), server.database());
    let site = Site::new(database.url());
    // Apart, because a run with short time-outs may not have the time for it.
    site.verb(&["init"]).end().with_code(0);
    site.short("a").hasty().end().with_code(0);
    let pipe = "\"$1\" \"$2\" | \"$3\" -q \"$4\" > /dev/null";
    let mut shell = Server::command(std::path::Path::new("/bin/sh"));
    shell.args(["-c", pipe, "sh"]);
    shell.arg(program("pg_dump")).arg(database.url());
    shell.arg(program("psql")).arg(copy.url());
    assert!(shell.status().unwrap().success());
    let restored = Site::new(copy.url());
    let run = restored.short("a").hasty().end().with_code(0);
    run.says(&["may have forgotten a grant", "a restored or copied store"]);
    // The original is as it was.
    assert_eq!(
        site.short("a").hasty().end().with_code(0).messages(),
        [""; 0]
    );
}

/// The grant that was lost with the primary is another's afterwards: the old holder's
/// heartbeat does not overwrite it, its job is ended, and the fence has risen. The other waits
/// until that must be over, so the two never run at once.
#[test]
fn a_grant_that_a_failover_lost_is_not_fought_for() {
    let (primary, second) = with_a_standby_that_was_cut_off();
    let site = Site::new(both(&primary, &second));
    let old = site.run("old").hasty().with(&["--heartbeat=300ms"]);
    let old = old.start();
    site.store.until_begun("old");
    let lost: i64 = primary
        .sql("postgres", "SELECT fence FROM tokenrun.tokens")
        .parse()
        .unwrap();
    primary.ctl(&["-w", "-m", "immediate", "stop"]);
    second.ctl(&["-w", "promote"]);
    let other = Site::new(both(&second, &second));
    let new = other.run("new").hasty().start();
    other.store.until_begun("new");
    assert!(!site.store.is_job_alive());
    let fence: i64 = second
        .sql("postgres", "SELECT fence FROM tokenrun.tokens")
        .parse()
        .unwrap();
    assert!(fence > lost, "{fence} > {lost}");
    old.end().with_code(76);
    site.store.until_job_gone();
    let shown = "SELECT outcome FROM tokenrun.runs WHERE client = 'old'";
    assert_eq!(second.sql("postgres", shown), "lost");
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
    let second = primary.standby();
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
    assert_eq!(ended.other_messages().len(), 2, "{ended:?}");
    let outcome = second.sql("postgres", "SELECT outcome FROM tokenrun.runs");
    assert_eq!(outcome, "failed");
}
