//! The rules, case by case.

use super::super::wire::code;
use super::*;
use crate::store::checkup::Check;
use crate::store::checkup::pinned::{self, checks, pin, pin_faults};

/// The checks of these steps.
fn said(steps: &[&str], pairs: &[(&str, &str)]) -> Vec<Check> {
    checks(rules::RULES, &pinned::facts(&rules::WORDS, pairs), steps)
}

#[test]
fn what_is_said_is_pinned() {
    let cases = [
        ("tls", vec!["tls"], vec![("secured", "on")]),
        ("no TLS", vec!["tls"], vec![]),
        ("a loopback", vec!["tls"], vec![("loopback", "on")]),
        (
            "leader",
            vec!["server"],
            vec![("release", "3.8.0"), ("place", "leader")],
        ),
        ("one", vec!["quorum"], vec![("place", "standalone")]),
        ("untold", vec!["quorum"], vec![("members", "0")]),
        ("two", vec!["quorum"], vec![("members", "2")]),
        ("three", vec!["quorum"], vec![("members", "3")]),
        (
            "open",
            vec!["rights"],
            vec![("path", "/tokenrun"), ("open", "on")],
        ),
        ("own", vec!["rights"], vec![("path", "/tokenrun")]),
        ("no primary", vec!["primary"], vec![]),
        ("one ensemble", vec!["primary"], vec![("primaries", "1")]),
        (
            "two ensembles",
            vec!["primary"],
            vec![("primaries", "2"), ("all", "a and b")],
        ),
    ];
    let cases = cases.map(|(name, steps, pairs)| (name, said(&steps, &pairs)));
    pin("zookeeper", cases);
}

#[test]
fn what_is_said_of_a_connection_that_failed_is_pinned() {
    let failed = |code| Said::Failed {
        code,
        path: "/tokenrun/now".into(),
    };
    let faults = pinned::faults(vec![
        ("password", failed(code::LOGIN_FAILED)),
        ("rights", failed(code::NO_RIGHT)),
        ("an error", failed(-1)),
        ("no session", Said::NoSession),
        ("nonsense", Said::Nonsense("a short reply")),
    ]);
    let stores = ["zk://z1:7", "zks://z1:7", "zk://z1:7,z2:7"];
    let stores = stores.map(|it| (it, Settings::read(it).unwrap()));
    pin_faults::<Link>("zookeeper_connecting", stores, &faults);
}
