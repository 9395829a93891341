//! The rules, case by case.

use super::*;
use crate::store::Trouble;
use crate::store::checkup::clock::Offset;
use crate::store::checkup::pinned::{self, checks, pin, pin_faults};
use crate::store::checkup::{Check, Verdict};
use crate::store::net::tls::Roots;

const SECOND: Duration = Duration::from_secs(1);

const DENIED: Verdict = Verdict::Fail(Trouble::Denied);
const WRONG: Verdict = Verdict::Fail(Trouble::Misconfigured);
const STUCK: Verdict = Verdict::Fail(Trouble::Unavailable);

const ON: &str = "true";

fn facts(pairs: &[(&str, &str)]) -> Facts {
    pinned::facts(&rules::WORDS, pairs)
}

/// The check of a step.
fn said(step: &str, pairs: &[(&str, &str)]) -> Check {
    checks(rules::RULES, &facts(pairs), &[step]).remove(0)
}

fn verdict(step: &str, pairs: &[(&str, &str)]) -> Verdict {
    said(step, pairs).verdict
}

/// How a connection was made.
const UNIX: &[(&str, &str)] = &[("unix", ON)];
const OPEN: &[(&str, &str)] = &[("pooler", "none")];
const SECURED: &[(&str, &str)] = &[("secured", ON), ("pooler", "none")];

fn with<'a>(made: &[(&'a str, &'a str)], more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    made.iter().chain(more).copied().collect()
}

#[test]
fn an_authentication_method_is_judged_by_where_the_password_can_be_read() {
    let said = |made, method| verdict("authentication", &with(made, &[("method", method)]));
    for (method, openly, securely) in [
        ("scram-sha-256", Verdict::Fine, Verdict::Fine),
        ("cert", Verdict::Fine, Verdict::Fine),
        ("peer", Verdict::Fine, Verdict::Fine),
        ("md5", Verdict::Warn, Verdict::Warn),
        ("password", Verdict::Warn, Verdict::Fine),
        ("ldap", Verdict::Warn, Verdict::Fine),
        ("trust", Verdict::Warn, Verdict::Warn),
    ] {
        assert_eq!(said(OPEN, method), openly, "{method}");
        assert_eq!(said(SECURED, method), securely, "{method}");
    }
    assert_eq!(said(UNIX, "trust"), Verdict::Fine);
}

#[test]
fn an_authentication_method_that_is_not_reported_is_unknown() {
    let pooled = &[("pooler", "one")][..];
    for (made, word) in [(OPEN, "since version 16"), (pooled, "a pooler")] {
        let check = said("authentication", made);
        assert_eq!(check.verdict, Verdict::Unknown);
        assert!(check.found.contains(word), "{check:?}");
    }
}

#[test]
fn the_tls_check_says_what_is_unknown_of_the_certificate() {
    let check = said("tls", &with(SECURED, &[("protocol", "TLSv1.3")]));
    for word in ["TLSv1.3", "when its certificate ends can't be known"] {
        assert!(check.found.contains(word), "{check:?}");
    }
    let check = said("tls", SECURED);
    let word = "which version can't be known";
    assert!(check.found.contains(word), "{check:?}");
    let check = said("tls", OPEN);
    assert_eq!(check.verdict, Verdict::Warn);
    let word = "tried and failed, can't be known";
    assert!(check.found.contains(word), "{check:?}");
}

#[test]
fn what_is_said_of_a_release_and_its_role_is_pinned() {
    let primary = [
        ("number", "160003"),
        ("release", "16.3"),
        ("kind", "a primary"),
    ];
    let standby = [
        ("number", "160003"),
        ("release", "16.3"),
        ("kind", "a standby"),
    ];
    let standby = with(&standby, &[("standby", ON), ("read_only", ON)]);
    let old = [
        ("number", "140012"),
        ("release", "14.12"),
        ("kind", "a primary"),
    ];
    let cases = [
        ("a primary", primary.to_vec()),
        ("read-only", with(&primary, &[("read_only", ON)])),
        ("a standby of several", with(&standby, &[("several", ON)])),
        ("a standby", standby),
        ("old", old.to_vec()),
    ];
    let cases = cases.map(|(name, pairs)| (name, vec![said("server", &pairs)]));
    pin("postgres_server", cases);
}

#[test]
fn what_is_said_of_a_connection_is_pinned() {
    let mut cases = Vec::new();
    for (name, made) in [
        ("unix", UNIX),
        ("here", &[("loopback", ON), ("pooler", "none")]),
        ("plain", OPEN),
        ("secured", SECURED),
        ("pooled", &[("secured", ON), ("pooler", "one")]),
    ] {
        use crate::store::net::tls::SslMode::{Prefer, Require, VerifyCa, VerifyFull};
        for mode in [Prefer, Require, VerifyCa, VerifyFull] {
            for roots in [None, Some(Roots::System)] {
                let case = format!("{name}, {mode:?}, {roots:?}");
                let url = "host=db sslmode=prefer user=u dbname=d";
                let mut settings = crate::store::postgres::settings(url, "test").unwrap();
                settings.tls.mode = mode;
                settings.tls.roots = roots;
                let mut facts = Link::facts(&settings);
                facts.extend(made.iter().copied());
                if name == "secured" {
                    facts.set("protocol", "TLSv1.3");
                }
                cases.push((case, checks(rules::RULES, &facts, &["tls"])));
            }
        }
        for (asked, method) in [
            ("Unknown", ""),
            ("Nothing", "trust"),
            ("By(\"scram-sha-256\")", "scram-sha-256"),
            ("By(\"md5\")", "md5"),
            ("By(\"password\")", "password"),
            ("By(\"ldap\")", "ldap"),
        ] {
            let check = said("authentication", &with(made, &[("method", method)]));
            cases.push((format!("{name}, {asked}"), vec![check]));
        }
    }
    pin("postgres_connection", cases);
}

#[test]
fn what_is_said_of_a_connection_that_failed_is_pinned() {
    let stores = [
        "host=db1 port=7 user=etl dbname=jobs",
        "host=/run/pg port=7 user=etl dbname=jobs",
        "host=db1,db2 port=7 user=etl dbname=jobs",
    ];
    let stores = stores.map(|it| (it, crate::store::postgres::settings(it, "test").unwrap()));
    pin_faults::<Link>("postgres_connecting", stores, &pinned::faults(vec![]));
}

#[test]
fn a_pooler_is_known_by_its_own_end_or_by_an_older_process() {
    let end = |text: &str| text.parse::<SocketAddr>().ok();
    let (own, mapped) = (end("127.0.0.1:40001"), end("[::ffff:127.0.0.1]:40001"));
    assert_eq!(pooler(own, own, false), "none");
    assert_eq!(pooler(mapped, own, false), "none");
    // Over a Unix socket of the pooler's own.
    assert_eq!(pooler(own, None, false), "one");
    assert_eq!(pooler(None, own, false), "one");
    assert_eq!(pooler(own, own, true), "one");
}

#[test]
fn a_pooler_that_can_not_be_recognized_is_unknown() {
    let end = |text: &str| text.parse::<SocketAddr>().ok();
    let (own, seen) = (end("192.0.2.7:40001"), end("198.51.100.1:40001"));
    for (own, seen) in [(own, seen), (None, None)] {
        let pooler = pooler(own, seen, false);
        let check = said("pooler", &[("pooler", pooler)]);
        assert_eq!(check.verdict, Verdict::Unknown);
        assert!(check.found.contains("can't be known"), "{check:?}");
    }
}

/// A session's limits: after so many seconds a dead host is noticed, and an idle transaction ended.
fn limits_of(noticed: u64, idle: u64, more: &[(&str, &str)]) -> Facts {
    let mut facts = facts(&with(&[("role", "etl")], more));
    facts.set("idle_s", noticed);
    facts.set("idle_in_transaction_ms", idle * 1_000);
    compare_limits(&mut facts, SECOND * 300);
    facts
}

const LIMITS: [&str; 2] = ["keepalives", "idle_in_transaction"];

#[test]
fn the_systems_keepalives_are_too_slow_and_those_advised_are_not() {
    let verdict = |facts| checks(rules::RULES, &facts, &LIMITS)[0].verdict;
    let probes = [("interval_s", "75"), ("count", "9")];
    assert_eq!(verdict(limits_of(7_200, 0, &probes)), Verdict::Warn);
    assert_eq!(verdict(limits_of(25, 0, &[])), Verdict::Fine);
    assert_eq!(verdict(limits_of(0, 0, &[("local", ON)])), Verdict::Fine);
}

#[test]
fn a_transaction_without_an_end_is_a_warning() {
    let said =
        |idle, more: &[_]| checks(rules::RULES, &limits_of(25, idle, more), &LIMITS).remove(1);
    assert_eq!(said(0, &[]).verdict, Verdict::Warn);
    assert_eq!(said(60, &[]).verdict, Verdict::Fine);
    assert_eq!(said(3_600, &[]).verdict, Verdict::Warn);
    let job = said(60, &[("unlimited", "app")]);
    let names = job.verdict == Verdict::Warn && job.found.contains("app");
    assert!(names, "{job:?}");
}

#[test]
fn the_texts_about_limits_are_pinned() {
    let mut cases = Vec::new();
    for (between, made, own) in [
        ("Pooler", &[("pooler", "one")][..], true),
        ("Nothing", OPEN, true),
        ("Unknown", &[], true),
        ("Unknown", UNIX, false),
    ] {
        let case = format!("{between}, own end: {own}");
        cases.push((case, vec![said("pooler", made)]));
    }
    for (is_local, noticed, idle, unlimited) in [
        (true, 0, 0, &[][..]),
        (false, 25, 60, &[]),
        (false, 7_875, 3_600, &[]),
        (false, 25, 60, &["app", "web"]),
    ] {
        for (between, pooler) in [("Nothing", "none"), ("Pooler", "one")] {
            let local = if is_local { ON } else { "false" };
            let names = unlimited.join(", ");
            let more = [("local", local), ("unlimited", &names), ("pooler", pooler)];
            let case = format!(
                "local: {is_local}, noticed after {noticed} s, idle for {idle} s, without a limit {unlimited:?}, \
                 {between}"
            );
            let facts = limits_of(noticed, idle, &more);
            cases.push((case, checks(rules::RULES, &facts, &LIMITS)));
        }
    }
    pin("postgres_limits", cases);
}

fn standbys(pairs: &[(&str, &str)]) -> Facts {
    let mut facts = facts(pairs);
    count_standbys(&mut facts);
    facts
}

fn replication(names: &str, standbys_: &str, synchronous: &str, hidden: &str) -> Verdict {
    let facts = standbys(&[
        ("names", names),
        ("standbys", standbys_),
        ("synchronous", synchronous),
        ("hidden", hidden),
    ]);
    checks(rules::RULES, &facts, &["replication"])[0].verdict
}

#[test]
fn asynchronous_standbys_are_a_warning() {
    assert_eq!(replication("", "0", "0", "0"), Verdict::Fine);
    assert_eq!(replication("", "1", "0", "0"), Verdict::Warn);
    assert_eq!(replication(" ", "1", "0", "1"), Verdict::Warn);
    for more in [("slots", "1"), ("several", ON)] {
        assert_eq!(verdict("replication", &[more]), Verdict::Warn);
    }
}

#[test]
fn a_synchronous_standby_is_fine_and_one_that_is_away_stops_everything() {
    assert_eq!(replication("*", "1", "1", "0"), Verdict::Fine);
    assert_eq!(replication("*", "2", "1", "0"), Verdict::Fine);
    assert_eq!(replication("a", "0", "0", "0"), STUCK);
    assert_eq!(replication("a", "1", "0", "0"), STUCK);
    // A standby whose state is hidden is no failure.
    assert_eq!(replication("a", "1", "0", "1"), Verdict::Fine);
}

#[test]
fn the_texts_about_failovers_are_pinned() {
    let mut cases = Vec::new();
    for (names, count, synchronous, hidden, slots, several) in [
        ("", 0, 0, 0, 0, false),
        ("", 0, 0, 0, 0, true),
        ("", 0, 0, 0, 2, false),
        (" ", 1, 0, 0, 2, false),
        ("", 2, 0, 1, 0, true),
        ("a", 0, 0, 0, 0, false),
        ("a", 1, 0, 0, 0, false),
        ("a", 1, 0, 1, 0, false),
        ("*", 1, 1, 0, 0, false),
        ("*", 3, 1, 0, 0, true),
    ] {
        let mut facts = facts(&[("commit", "local"), ("names", names)]);
        for (name, number) in [
            ("standbys", count),
            ("synchronous", synchronous),
            ("hidden", hidden),
            ("slots", slots),
        ] {
            facts.set(name, number);
        }
        facts.flag("syncs", count > 0);
        facts.flag("several", several);
        count_standbys(&mut facts);
        cases.push((
            format!(
                "{names:?}: {count} standbys, {synchronous} synchronous, {hidden} hidden, {slots} slots, several: \
                 {several}"
            ),
            checks(rules::RULES, &facts, &["durability", "replication"]),
        ));
    }
    let (a, b) = (met("a:1", "1", ON), met("b:2", "2", ON));
    let c = met("c:3", "3", "");
    let clock = |name: &str, ahead_us: i64| {
        let (least_us, most_us) = (ahead_us - 500, ahead_us + 500);
        (name.to_owned(), Some(Offset { least_us, most_us }))
    };
    let clocks = [
        clock("a:1", 0),
        clock("b:2", -90_000_000),
        clock("c:3", 2_000),
    ];
    let two = [clocks[0].clone(), clocks[2].clone()];
    for (name, met, clocks) in [
        ("none", vec![], &[][..]),
        ("one", vec![a.clone(), c.clone()], &two),
        ("two", vec![a, b, c], &clocks),
    ] {
        let primary = walk::primary::<Link>(&met, met.len()).into_iter();
        let checks = primary.chain(clock::between(clocks)).collect();
        cases.push((name.to_owned(), checks));
    }
    pin("postgres_failover", cases);
}

/// A server that answered.
fn met(host: &str, id: &str, writable: &str) -> (String, Facts) {
    let facts = facts(&[("id", id), ("writable", writable)]);
    (host.to_owned(), facts)
}

#[test]
fn there_must_be_one_primary() {
    let verdict = |met: &[_]| walk::primary::<Link>(met, met.len()).unwrap().verdict;
    assert_eq!(verdict(&[]), STUCK);
    let (a, b) = (met("a", "1", ON), met("b", "2", ""));
    assert_eq!(verdict(&[a.clone(), b]), Verdict::Fine);
    let again = met("localhost", "1", ON);
    assert_eq!(verdict(&[a.clone(), again]), Verdict::Fine);
    assert_eq!(verdict(&[a, met("b", "2", ON)]), WRONG);
}

const WHOLE: &[(&str, &str)] = &[
    ("user", "etl"),
    ("schema", "s"),
    ("there", ON),
    ("usage", ON),
];

#[test]
fn a_role_with_the_least_rights_is_fine_and_a_superuser_is_too_much() {
    assert_eq!(verdict("rights", WHOLE), Verdict::Fine);
    let all = with(WHOLE, &[("super", ON)]);
    assert_eq!(verdict("rights", &all), Verdict::Warn);
}

#[test]
fn missing_rights_are_named_with_their_role() {
    let grantee = quoted("It's \"me\"");
    let poor = with(
        WHOLE,
        &[("missing", "DELETE on once"), ("grantee", &grantee)],
    );
    let said = said("rights", &poor);
    assert_eq!(said.verdict, DENIED);
    assert!(said.found.contains("DELETE on once"), "{said:?}");
    let remedy = said.remedy.unwrap();
    assert!(remedy.ends_with("TO \"It's \"\"me\"\"\""), "{remedy}");
}

#[test]
fn a_missing_schema_is_a_failure_only_if_the_role_may_not_make_it() {
    assert_eq!(verdict("rights", &[]), DENIED);
    let may = [("may_create", ON)];
    assert_eq!(verdict("rights", &may), Verdict::Fine);
    assert_eq!(verdict("schema", &may), Verdict::Fine);
}

/// A schema with these versions.
fn known<'a>(version: &'a str, oldest: &'a str) -> Vec<(&'a str, &'a str)> {
    let versions = [("version", version), ("oldest_reader", oldest)];
    with(&with(WHOLE, &[("readable", ON), ("knows", "1")]), &versions)
}

#[test]
fn versions_are_judged_by_their_oldest_reader() {
    assert_eq!(verdict("schema", &known("1", "1")), Verdict::Fine);
    assert_eq!(verdict("schema", &known("99", "1")), Verdict::Fine);
    let future = said("schema", &known("99", "99"));
    assert_eq!(future.verdict, WRONG);
    assert!(future.found.contains("99"), "{future:?}");
    assert_eq!(future.remedy.as_deref(), Some("install a newer tokenrun"));
    assert_eq!(verdict("schema", &known("2", "many")), WRONG);
    assert_eq!(verdict("schema", &known("", "")), WRONG);
}

#[test]
fn a_table_that_is_not_there_is_a_failure() {
    let check = said(
        "schema",
        &with(&known("1", "1"), &[("absent", "done_keys")]),
    );
    assert_eq!(check.verdict, WRONG);
    assert!(check.found.contains("done_keys"), "{check:?}");
}

#[test]
fn the_texts_about_rights_are_pinned() {
    let there = ("there", ON);
    let whole = [there, ("usage", ON)];
    let known = |version, oldest| known(version, oldest).split_off(2);
    let cases: [(&str, Vec<(&str, &str)>); 15] = [
        ("no schema", vec![]),
        ("no schema yet", vec![("may_create", ON)]),
        ("a superuser without a schema", vec![("super", ON)]),
        ("no use of the schema", vec![there]),
        ("all is well", known("1", "1")),
        (
            "rights are missing",
            with(&whole, &[("missing", "SELECT on meta, DELETE on runs")]),
        ),
        (
            "rows are hidden",
            with(&known("1", "1"), &[("filtered", "tokens, runs")]),
        ),
        (
            "tables may be made",
            with(&whole, &[("absent", "meta, tokens, runs"), ("may_add", ON)]),
        ),
        (
            "no tables",
            with(&whole, &[("absent", "meta, tokens, runs")]),
        ),
        (
            "a table is absent",
            with(&known("1", "1"), &[("absent", "runs, acts")]),
        ),
        (
            "a table is not logged",
            with(
                &known("1", "1"),
                &[("absent", "acts"), ("unlogged", "runs, tokens")],
            ),
        ),
        ("of the future", known("99", "99")),
        ("of a near future", known("99", "1")),
        ("malformed", known("1", "many")),
        ("empty", known("", "")),
    ];
    let user = "It's \"me\"";
    let grantee = quoted(user);
    let named = [("user", user), ("grantee", &grantee), ("schema", "s \"x\"")];
    pin(
        "postgres_rights",
        cases.map(|(name, pairs)| {
            let facts = facts(&with(&named, &pairs));
            (name, checks(rules::RULES, &facts, &["rights", "schema"]))
        }),
    );
}
