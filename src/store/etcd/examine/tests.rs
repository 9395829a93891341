//! The rules, case by case.

use super::*;
use crate::store::checkup::Check;
use crate::store::checkup::pinned::{self, checks, pin, pin_faults};

/// The checks of these steps.
fn said(steps: &[&str], pairs: &[(&str, &str)]) -> Vec<Check> {
    checks(rules::RULES, &pinned::facts(&rules::WORDS, pairs), steps)
}

#[test]
fn what_is_said_is_pinned() {
    let server = [("release", "3.4.23"), ("place", "the leader")];
    let with = |more: &[(&'static str, &'static str)]| [&server[..], more].concat();
    let cases = [
        ("tls", vec!["tls"], vec![("secured", "on")]),
        ("no TLS", vec!["tls"], vec![]),
        ("a loopback", vec!["tls"], vec![("loopback", "on")]),
        ("led", vec!["server", "clock"], with(&[("led", "on")])),
        ("not led", vec!["server"], with(&[])),
        (
            "old",
            vec!["server"],
            vec![("release", "3.3.10"), ("led", "on")],
        ),
        ("one", vec!["quorum"], vec![("members", "1")]),
        ("two", vec!["quorum"], vec![("members", "2")]),
        ("three", vec!["quorum"], vec![("members", "3")]),
        ("full", vec!["alarms"], vec![("alarms", "NOSPACE")]),
        ("corrupt", vec!["alarms"], vec![("alarms", "CORRUPT")]),
        ("no alarm", vec!["alarms"], vec![]),
        ("large", vec!["space"], vec![("megabytes", "1200")]),
        (
            "kept",
            vec!["space"],
            vec![("megabytes", "9"), ("keeps_all", "on")],
        ),
        ("small", vec!["space"], vec![("megabytes", "9")]),
        ("rights", vec!["rights"], vec![("prefix", "tokenrun")]),
        ("no primary", vec!["primary"], vec![]),
        ("one cluster", vec!["primary"], vec![("primaries", "1")]),
        (
            "two clusters",
            vec!["primary"],
            vec![("primaries", "2"), ("all", "a and b")],
        ),
    ];
    let cases = cases.map(|(name, steps, pairs)| (name, said(&steps, &pairs)));
    pin("etcd", cases);
}

#[test]
fn what_is_said_of_a_connection_that_failed_is_pinned() {
    let faults = pinned::faults(vec![
        (
            "password",
            Said::answer(
                3,
                "etcdserver: authentication failed, invalid user ID or password",
            ),
        ),
        ("an error", Said::answer(13, "odd")),
        ("nonsense", Said::Nonsense("HTTP".into())),
    ]);
    let stores = ["etcd://e1:7", "etcds://e1:7", "etcd://e1:7,e2:7"];
    let stores = stores.map(|it| (it, Settings::read(it, |_| None).unwrap()));
    pin_faults::<Link>("etcd_connecting", stores, &faults);
}
