//! The rules, case by case.

use super::*;
use crate::store::checkup::Verdict;
use crate::store::checkup::pinned::{self, checks, pin, pin_faults};
use crate::store::net::deadline::Activity;

fn facts(pairs: &[(&str, &str)]) -> Facts {
    let mut facts = pinned::facts(&rules::WORDS, pairs);
    derive(&mut facts);
    facts
}

/// The checks of these steps.
fn said(steps: &[&str], pairs: &[(&str, &str)]) -> Vec<Check> {
    checks(rules::RULES, &facts(pairs), steps)
}

/// The check of a step.
fn check(step: &str, pairs: &[(&str, &str)]) -> Check {
    said(&[step], pairs).remove(0)
}

fn is_fail(check: &Check) -> bool {
    matches!(check.verdict, Verdict::Fail(_))
}

#[test]
fn a_server_that_evicts_tokens_fails_and_one_that_is_almost_full_is_warned_of() {
    let of = |policy, used, most| {
        let memory = [
            ("maxmemory_policy", policy),
            ("used_memory", used),
            ("maxmemory", most),
        ];
        check("memory", &memory)
    };
    assert!(is_fail(&of("allkeys-lru", "1", "0")));
    assert_eq!(of("noeviction", "1", "0").verdict, Verdict::Fine);
    assert_eq!(of("volatile-lru", "10", "100").verdict, Verdict::Fine);
    assert_eq!(of("noeviction", "95", "100").verdict, Verdict::Warn);
}

const SYNCS: [(&str, &str); 2] = [("aof_enabled", "1"), ("appendfsync", "always")];

#[test]
fn only_a_log_that_is_synced_each_time_is_fine() {
    let of = |pairs: &[_]| check("durability", pairs).verdict;
    let rewrite = |value| [SYNCS[0], SYNCS[1], ("no-appendfsync-on-rewrite", value)];
    assert_eq!(of(&rewrite("no")), Verdict::Fine);
    assert_eq!(of(&rewrite("yes")), Verdict::Warn);
    let lazy = [SYNCS[0], ("appendfsync", "everysec")];
    assert_eq!(of(&lazy), Verdict::Warn);
    assert_eq!(of(&SYNCS[..1]), Verdict::Unknown);
    assert_eq!(of(&[("aof_enabled", "0"), SYNCS[1]]), Verdict::Warn);
    let full = [SYNCS[0], SYNCS[1], ("aof_last_write_status", "err")];
    assert!(is_fail(&check("durability", &full)));
}

/// So many replicas, those that do not lag, those that writes need, and their lag. An empty text: not told.
fn replicas<'a>(count: &'a str, near: &'a str, needed: &'a str, lag: &'a str) -> Facts {
    let mut facts = facts(&[
        ("connected_slaves", count),
        ("min_slaves_good_slaves", near),
        ("min-replicas-to-write", needed),
        ("min-replicas-max-lag", lag),
        ("watched", "1"),
    ]);
    count_replicas(&mut facts);
    facts
}

#[test]
fn replicas_are_warned_of_unless_the_master_needs_them() {
    let of = |count, near, needed, lag| {
        let facts = replicas(count, near, needed, lag);
        let mut checks = checks(rules::RULES, &facts, &["replicas"]);
        checks.pop().map(|check| check.verdict)
    };
    assert_eq!(of("0", "", "", ""), None);
    assert_eq!(of("1", "", "", ""), Some(Verdict::Warn));
    assert_eq!(of("1", "1", "", "10"), Some(Verdict::Fine));
    assert_eq!(of("1", "1", "1", "10"), Some(Verdict::Fine));
    assert!(matches!(of("1", "1", "2", "10"), Some(Verdict::Fail(_))));
    assert!(matches!(of("1", "0", "", ""), Some(Verdict::Fail(_))));
    assert_eq!(of("1", "1", "1", "11"), Some(Verdict::Warn));
    let watched = |near| {
        let facts = replicas("1", near, "1", "1");
        checks(rules::RULES, &facts, &["sentinel"])[0].verdict
    };
    assert_eq!(watched("1"), Verdict::Fine);
    assert_eq!(watched(""), Verdict::Warn);
    // With the others the old master goes on beside the one that was promoted.
    assert_eq!(of("3", "3", "1", "1"), Some(Verdict::Warn));
    assert_eq!(of("3", "3", "2", "1"), Some(Verdict::Warn));
    assert_eq!(of("3", "3", "3", "1"), Some(Verdict::Fine));
    assert_eq!(of("3", "3", "", "1"), Some(Verdict::Unknown));
}

/// A server's release, role and mode.
fn server<'a>(version: &'a str, role: &'a str, mode: &'a str) -> [(&'a str, &'a str); 5] {
    [
        ("redis_version", version),
        ("role", role),
        ("redis_mode", mode),
        ("master_host", "10.0.0.1"),
        ("master_port", "6379"),
    ]
}

fn with<'a>(pairs: &[(&'a str, &'a str)], more: (&'a str, &'a str)) -> Vec<(&'a str, &'a str)> {
    pairs.iter().copied().chain([more]).collect()
}

#[test]
fn an_old_release_a_replica_alone_and_a_sentinel_fail() {
    let of = |pairs: &[_]| check("server", pairs);
    let several = ("several", "on");
    assert!(is_fail(&of(&server("6.2.1", "master", ""))));
    assert!(is_fail(&of(&server("7.0.1", "slave", ""))));
    assert!(!is_fail(&of(&with(&server("7.0.1", "slave", ""), several))));
    let sentinel = server("7.0.1", "master", "sentinel");
    assert!(is_fail(&of(&with(&sentinel, several))));
    let valkey = [("valkey_version", "9.1.0"), ("role", "master")];
    assert_eq!(of(&valkey).found, "Valkey 9.1.0, a master");
    let primaries = pinned::primaries::<Link>();
    let verdicts = primaries.iter().map(|(_, checks)| is_fail(&checks[0]));
    assert_eq!(verdicts.collect::<Vec<_>>(), [true, false, true]);
}

#[test]
fn the_texts_are_pinned() {
    let mut cases: Vec<(String, Vec<Check>)> = Vec::new();
    let several = ("several", "on");
    let valkey = [("valkey_version", "9.1.0"), ("role", "odd")];
    for (name, pairs) in [
        ("a master", server("7.0.1", "master", "").to_vec()),
        ("old", server("6.2.1", "master", "").to_vec()),
        ("a replica", server("7.0.1", "slave", "").to_vec()),
        (
            "a replica of several",
            with(&server("7.0.1", "slave", ""), several),
        ),
        (
            "a Sentinel",
            with(&server("7.0.1", "master", "sentinel"), several),
        ),
        ("another role", with(&valkey, several)),
    ] {
        cases.push((name.to_owned(), said(&["server"], &pairs)));
    }
    let mut primaries = pinned::primaries::<Link>();
    primaries.reverse();
    let names = ["two masters", "one master", "no master"];
    for (name, (_, checks)) in names.iter().zip(primaries) {
        cases.push(((*name).to_owned(), checks));
    }
    for (policy, used, most) in [
        ("noeviction", "1", "0"),
        ("allkeys-lru", "1", "0"),
        ("noeviction", "100", "100"),
        ("volatile-lru", "95", "100"),
        ("noeviction", "10", "100"),
    ] {
        let pairs = [
            ("maxmemory_policy", policy),
            ("used_memory", used),
            ("maxmemory", most),
        ];
        let case = format!("{policy} {used} of {most}");
        cases.push((case, said(&["memory"], &pairs)));
    }
    for (fsync, rewrite) in [
        (Some("always"), Some("no")),
        (Some("always"), Some("yes")),
        (Some("everysec"), Some("no")),
        (None, None),
    ] {
        let mut pairs = vec![SYNCS[0]];
        pairs.extend(fsync.map(|it| ("appendfsync", it)));
        pairs.extend(rewrite.map(|it| ("no-appendfsync-on-rewrite", it)));
        let case = format!("{fsync:?}, on rewrite {rewrite:?}");
        cases.push((case, said(&["durability"], &pairs)));
    }
    let off = [("aof_enabled", "0"), SYNCS[1]];
    cases.push(("no log".to_owned(), said(&["durability"], &off)));
    let full = with(&SYNCS, ("aof_last_write_status", "err"));
    cases.push(("full".to_owned(), said(&["durability"], &full)));
    for (count, near, needed, lag) in [
        ("0", "", None, None),
        ("3", "", None, None),
        ("3", "0", None, None),
        ("3", "1", Some(2), None),
        ("3", "3", None, None),
        ("3", "3", Some(2), Some(1)),
        ("1", "1", Some(1), Some(99)),
        ("1", "1", Some(1), Some(1)),
        ("1", "1", None, None),
    ] {
        let text = |it: Option<i32>| it.map(|it| it.to_string()).unwrap_or_default();
        let facts = replicas(count, near, &text(needed), &text(lag));
        cases.push((
            format!("{count} replicas, {near} near, {needed:?} needed, {lag:?} late"),
            checks(rules::RULES, &facts, &["replicas", "sentinel"]),
        ));
    }
    let node = [("cluster_enabled", "1")];
    cases.push(("a node".to_owned(), said(&["cluster"], &node)));
    for (case, fact) in [
        ("db1:6379, secured: true", ("secured", "on")),
        ("db1:6379, secured: false", ("secured", "")),
        ("localhost:6379, secured: false", ("loopback", "on")),
    ] {
        cases.push((case.to_owned(), said(&["tls"], &[fact])));
    }
    pin("redis", cases);
}

#[test]
fn what_is_said_of_rights_is_pinned() {
    let prefix = ("prefix", "{tokenrun}:");
    let lacks = [prefix, ("missing", "HSET TIME")];
    let cases = [("all", &[prefix][..]), ("two are missing", &lacks)];
    let cases = cases.map(|(name, pairs)| (name, said(&["rights"], pairs)));
    pin("redis_rights", cases);
}

#[test]
fn what_is_said_of_a_connection_that_failed_is_pinned() {
    let answer = |code: &str, text: &str| Said::Answer {
        doing: Activity::LoggingIn,
        code: code.to_owned(),
        text: format!("{code} {text}"),
    };
    let faults = pinned::faults(vec![
        ("password", answer("WRONGPASS", "no")),
        ("an error", answer("ERR", "odd")),
        ("full", answer("ERR", "max number of clients reached")),
        ("nonsense", Said::Nonsense("HTTP".into())),
    ]);
    let stores = [
        "redis://db1:7",
        "redis+unix:///run/redis.sock",
        "redis://db1:7,db2:7",
    ];
    let stores = stores.map(|it| (it, Settings::read(it, |_| None).unwrap()));
    pin_faults::<Link>("redis_connecting", stores, &faults);
}

#[test]
fn a_member_of_a_quorum_needs_no_log_and_must_remove_nothing() {
    let quorum = ("quorum", "on");
    let of = |step, more: &[(&'static str, &'static str)]| {
        let pairs: Vec<_> = more.iter().copied().chain([quorum]).collect();
        check(step, &pairs)
    };
    assert_eq!(
        of("durability", &[("aof_enabled", "0")]).verdict,
        Verdict::Fine
    );
    assert_eq!(
        of("replicas", &[("connected_slaves", "1")]).verdict,
        Verdict::Fine
    );
    let policy = |name| of("memory", &[("maxmemory_policy", name)]);
    // Promises have a time limit.
    assert!(is_fail(&policy("volatile-lru")));
    assert_eq!(policy("noeviction").verdict, Verdict::Fine);
    assert_eq!(of("member", &[("joined", "on")]).verdict, Verdict::Fine);
    let mixed = of("member", &[("joined", "on"), ("alone", "on")]);
    assert!(is_fail(&mixed), "{mixed:?}");
    assert_eq!(of("member", &[]).verdict, Verdict::Warn);
    assert!(is_fail(&of(
        "server",
        &[("role", "slave"), ("several", "on")]
    )));
    assert_eq!(said(&["member"], &[]), []);
}

#[test]
fn a_quorum_needs_a_majority_of_its_servers() {
    let met = |id: &str| {
        let mut facts = facts(&[("quorum", "on"), ("writable", "on")]);
        facts.set("id", id);
        (id.to_owned(), facts)
    };
    let of = |ids: &[&str]| {
        let met: Vec<_> = ids.iter().map(|id| met(id)).collect();
        walk::primary::<Link>(&met, 3).unwrap().verdict
    };
    assert_eq!(of(&["a", "b", "c"]), Verdict::Fine);
    assert_eq!(of(&["a", "b"]), Verdict::Warn);
    // Two names lead to one server.
    assert_eq!(of(&["a", "b", "b"]), Verdict::Warn);
    assert!(matches!(of(&["a", "a"]), Verdict::Fail(_)));
}
