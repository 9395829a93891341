//! The texts of checks, case by case, as snapshots have them.

use std::fmt::Write as _;
use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use super::rules::{Facts, Rule, judge};
use super::walk::{Examined, primary};
use super::{Check, connecting};
use crate::store::net::deadline::{Activity, TimedOut};
use crate::store::net::fault::Fault;
use crate::store::net::host::Settings as _;
use crate::store::net::tls::Insecure;

/// Facts as a test has them.
pub(in crate::store) fn facts(words: &[(&str, &str)], pairs: &[(&str, &str)]) -> Facts {
    let mut facts = Facts::default();
    facts.extend(words.iter().chain(pairs).copied());
    facts
}

/// The checks of these steps.
pub(in crate::store) fn checks(rules: &[Rule], facts: &Facts, steps: &[&str]) -> Vec<Check> {
    let checks = steps.iter().filter_map(|step| judge(rules, step, facts));
    checks.collect()
}

/// The faults between this process and a server, by names, and then what the server has said.
pub(in crate::store) fn faults<S>(said: Vec<(&'static str, S)>) -> Vec<(&'static str, Fault<S>)> {
    let late = |doing| {
        let after = Duration::from_secs(10);
        Fault::TimedOut(TimedOut { doing, after })
    };
    let broken = |doing, kind| Fault::Io(doing, Error::from(kind));
    let mut all = vec![
        ("late look-up", late(Activity::LookingUp)),
        ("look-up", broken(Activity::LookingUp, ErrorKind::NotFound)),
        ("late", late(Activity::Connecting)),
        (
            "refused",
            broken(Activity::Connecting, ErrorKind::ConnectionRefused),
        ),
        (
            "denied",
            broken(Activity::Connecting, ErrorKind::PermissionDenied),
        ),
        ("gone", broken(Activity::Connecting, ErrorKind::NotFound)),
        ("late TLS", late(Activity::Securing)),
        ("late log-in", late(Activity::LoggingIn)),
        (
            "cut",
            broken(Activity::LoggingIn, ErrorKind::ConnectionReset),
        ),
        ("no TLS", Fault::Tls(Insecure::NotOffered, "none".into())),
        ("untrusted", Fault::Tls(Insecure::Untrusted, "bad".into())),
        ("settings", Fault::Settings("impossible".into())),
    ];
    all.extend(
        said.into_iter()
            .map(|(name, said)| (name, Fault::Said(said))),
    );
    all
}

/// Compares what is said of each fault with a snapshot: of a server, of a Unix socket, of one of several.
#[track_caller]
pub(in crate::store) fn pin_faults<L: Examined>(
    name: &str,
    stores: [(&str, L::Settings); 3],
    faults: &[(&'static str, Fault<L::Said>)],
) {
    let mut cases = Vec::new();
    for (url, settings) in stores {
        let hosts = &settings.servers().hosts;
        let addresses: Vec<SocketAddr> = match hosts[0].is_unix() {
            true => vec![],
            false => ["10.0.0.1:7", "10.0.0.2:7"]
                .map(|it| it.parse().unwrap())
                .to_vec(),
        };
        let named = connecting::name(&hosts[0], &addresses);
        cases.push((url.to_owned(), named.into_iter().collect()));
        for (fault_name, fault) in faults {
            let mut facts = L::facts(&settings);
            facts.flag("several", hosts.len() > 1);
            let checks = connecting::failed(&mut facts, &hosts[0], &addresses, fault, L::refused);
            cases.push((format!("{url}: {fault_name}"), checks));
        }
    }
    pin(name, cases);
}

/// Compares the checks of each case with a snapshot.
#[track_caller]
pub(in crate::store) fn pin(
    name: &str,
    cases: impl IntoIterator<Item = (impl Into<String>, Vec<Check>)>,
) {
    let mut text = String::new();
    for (case, checks) in cases {
        writeln!(text, "{}", case.into()).unwrap();
        for check in checks {
            let verdict = format!("{:?}", check.verdict);
            writeln!(text, "    {} {verdict}: {}", check.step, check.found).unwrap();
            if let Some(remedy) = check.remedy {
                writeln!(text, "        -> {remedy}").unwrap();
            }
        }
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// What is said of no, one and two servers that accept writes.
pub(in crate::store) fn primaries<L: Examined>() -> Vec<(&'static str, Vec<Check>)> {
    let met = |name: &str| {
        let facts = facts(&[], &[("id", name), ("writable", "on")]);
        (name.to_owned(), facts)
    };
    let said = |met: &[_]| primary::<L>(met, met.len()).into_iter().collect();
    let two = [met("a:1"), met("b:2")];
    vec![
        ("none", said(&[])),
        ("one", said(&two[..1])),
        ("two", said(&two)),
    ]
}
