//! The rules, case by case.

use super::*;
use crate::store::Trouble;
use crate::store::checkup::Verdict;
use crate::store::checkup::pinned::{self, checks, pin, pin_faults};

const STEPS: [&str; 2] = ["durability", "replication"];

fn facts(pairs: &[(&str, &str)]) -> Facts {
    let sound = [
        ("version", "10.11.6-MariaDB"),
        ("innodb_flush_log_at_trx_commit", "1"),
        ("log_bin", "OFF"),
    ];
    let mut facts = pinned::facts(&rules::WORDS, &sound);
    facts.extend(pairs.iter().copied());
    derive(&mut facts);
    facts
}

fn verdicts(pairs: &[(&str, &str)]) -> Vec<(&'static str, Verdict)> {
    let checks = checks(rules::RULES, &facts(pairs), &STEPS);
    let verdicts = checks.iter().map(|check| (check.step, check.verdict));
    verdicts.collect()
}

fn verdict(step: &str, pairs: &[(&str, &str)]) -> Option<Verdict> {
    let checks = checks(rules::RULES, &facts(pairs), &[step]);
    checks.first().map(|check| check.verdict)
}

#[test]
fn what_a_crash_can_lose_is_said() {
    const BAD: Verdict = Verdict::Fail(Trouble::Misconfigured);
    let fine = [
        ("durability", Verdict::Fine),
        ("replication", Verdict::Fine),
    ];
    assert_eq!(verdicts(&[]), fine);
    let flush = ("innodb_flush_log_at_trx_commit", "2");
    assert_eq!(verdicts(&[flush])[0], ("durability", BAD));
    for method in ["nosync", "NOSYNC", "littlesync"] {
        let method = ("innodb_flush_method", method);
        assert_eq!(verdicts(&[method])[0], ("durability", BAD));
    }
    let sound = ("innodb_flush_method", "fsync");
    assert_eq!(verdicts(&[sound])[0], fine[0]);
    let log = ("log_bin", "ON");
    let lazy = [log, ("sync_binlog", "0")];
    assert_eq!(verdicts(&lazy)[0], ("durability", Verdict::Warn));
    let statement = [log, ("sync_binlog", "1"), ("binlog_format", "STATEMENT")];
    assert_eq!(verdicts(&statement)[0], ("durability", BAD));
}

#[test]
fn what_a_failover_can_lose_is_said() {
    let log = [("log_bin", "ON"), ("sync_binlog", "1")];
    let asynchronous = ("replication", Verdict::Warn);
    assert_eq!(verdicts(&log)[1], asynchronous);
    let mut semi = log.to_vec();
    semi.push(("rpl_semi_sync_source_enabled", "ON"));
    assert_eq!(verdicts(&semi)[1], ("replication", Verdict::Fine));
}

#[test]
fn several_writable_nodes_are_said() {
    let galera = [("wsrep_on", "ON"), ("galera_nodes", "3")];
    assert_eq!(verdict("cluster", &galera), Some(Verdict::Warn));
    let single = [
        ("group_replication_group_name", "x"),
        ("group_replication_single_primary_mode", "ON"),
    ];
    assert_eq!(verdict("cluster", &single), Some(Verdict::Fine));
    assert_eq!(verdict("cluster", &[]), None);
}

#[test]
fn an_old_server_is_refused() {
    for (text, is_new) in [
        ("10.6.4-MariaDB", true),
        ("10.5.29-MariaDB-log", false),
        ("5.5.5-11.4.2-MariaDB", true),
        ("8.0.16", false),
        ("8.4.0", true),
        ("9.7.0-ubuntu", true),
        ("5.7.44", false),
    ] {
        let verdict = verdict("server", &[("version", text)]).unwrap();
        assert_eq!(verdict == Verdict::Fine, is_new, "{text}");
    }
}

#[test]
fn the_texts_are_pinned() {
    let mut cases = Vec::new();
    let log = ("log_bin", "ON");
    let synced = ("sync_binlog", "1");
    for pairs in [
        &[][..],
        &[("innodb_flush_log_at_trx_commit", "2")],
        &[("innodb_flush_method", "NOSYNC")],
        &[log, ("binlog_format", "STATEMENT")],
        &[log, ("sync_binlog", "0")],
        &[log, synced],
        &[log, synced, ("slaves_connected", "1")],
        &[log, synced, ("slaves_connected", "2")],
        &[log, synced, ("rpl_semi_sync_master_enabled", "ON")],
        &[("wsrep_on", "ON"), ("galera_nodes", "1")],
        &[("wsrep_on", "1"), ("galera_nodes", "3")],
        &[("group_replication_group_name", "x")],
        &[
            ("group_replication_group_name", "x"),
            ("group_replication_single_primary_mode", "ON"),
        ],
        &[("version", "10.5.29-MariaDB")],
        &[("version", "8.0.16")],
        &[("version", "9.7.0")],
    ] {
        for several in [false, true] {
            let mut facts = facts(pairs);
            facts.flag("several", several);
            let mut all = checks(rules::RULES, &facts, &["server", "durability", "cluster"]);
            if all.len() < 3 {
                all.extend(checks(rules::RULES, &facts, &["replication"]));
            }
            cases.push((format!("{pairs:?}, several: {several}"), all));
        }
    }
    pin("mysql", cases);
}

#[test]
fn what_is_said_of_a_connection_and_of_the_tables_is_pinned() {
    let cases = [
        ("tls", vec![("unix", "on")]),
        ("tls", vec![("secured", "on"), ("verified", "on")]),
        ("tls", vec![("loopback", "on")]),
        ("tls", vec![("secured", "on")]),
        ("tls", vec![]),
        ("proxy", vec![("greeted", "7"), ("session", "4294967303")]),
        ("proxy", vec![("greeted", "7"), ("session", "8")]),
        ("clock", vec![]),
        ("clock", vec![("passed_us", "10000")]),
        ("clock", vec![("passed_us", "0")]),
        ("rights", vec![("no_tables", "on"), ("database", "jobs")]),
        (
            "rights",
            vec![(
                "missing",
                "SELECT on tokenrun_runs, EXECUTE on tokenrun_swap",
            )],
        ),
        ("rights", vec![]),
        (
            "tables",
            vec![("table", "tokenrun_runs"), ("engine", "MyISAM")],
        ),
        ("fence", vec![]),
        ("fence", vec![("uncallable", "no (error 1449)")]),
    ];
    let cases = cases.map(|(step, pairs)| {
        let case = format!("{step} {pairs:?}");
        (case, checks(rules::RULES, &facts(&pairs), &[step]))
    });
    pin("mysql_tables", cases);
}

#[test]
fn what_is_said_of_primaries_is_pinned() {
    let mut cases = pinned::primaries::<Link>();
    let read_only = |several| {
        let facts = pinned::facts(&[], &[("elsewhere", "on"), ("several", several)]);
        checks(rules::RULES, &facts, &["server"])
    };
    cases.push(("read-only", [read_only(""), read_only("on")].concat()));
    pin("mysql_primary", cases);
}

#[test]
fn what_is_said_of_a_connection_that_failed_is_pinned() {
    let said = |code| Said::Server {
        code,
        state: None,
        message: "no".into(),
    };
    let faults = pinned::faults(vec![
        ("database", said(code::UNKNOWN_DATABASE)),
        ("rights", said(1044)),
        ("full", said(1040)),
        ("password", said(1045)),
        ("another", said(1)),
        ("plugin", Said::Login("no way".into())),
    ]);
    let stores = [
        "mysql://etl@db1:7/jobs",
        "mysql://etl@/jobs?socket=/run/mysql.sock",
        "mysql://etl@db1:7,db2:7/jobs",
    ];
    let stores = stores.map(|it| (it, crate::store::mysql::settings(it, "test").unwrap()));
    pin_faults::<Link>("mysql_connecting", stores, &faults);
}
