//! What a server's own words mean for a store. Pure.

use std::collections::BTreeMap;

use super::super::script::MOST_LAG;
use crate::store::Trouble;
use crate::store::checkup::Check;
use crate::store::net::host::{Host, Place};

/// The fields of INFO.
pub(super) struct Info(pub(super) BTreeMap<String, String>);

/// The oldest release that is supported.
const OLDEST: u32 = 7;

impl Info {
    fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    pub(super) fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or_default()
    }

    /// The id of the server's process.
    pub(super) fn process(&self) -> &str {
        self.text("run_id")
    }

    pub(super) fn is_master(&self) -> bool {
        self.text("role") == "master"
    }
}

pub(super) fn tls(host: &Host, secured: bool) -> Option<Check> {
    match &host.place {
        _ if secured => Some(Check::fine("tls", "encrypted, and the certificate is good")),
        Place::Unix(_) => None,
        Place::Tcp { to, .. } if is_local(to) => None,
        Place::Tcp { .. } => Some(Check::warn(
            "tls",
            "not encrypted: the password and every token can be read on the network",
            "have the server listen with TLS, and write rediss://",
        )),
    }
}

fn is_local(name: &str) -> bool {
    name == "localhost" || name == "::1" || name.starts_with("127.")
}

/// Which server it is, and whether tokens can be written on it.
pub(super) fn server(info: &Info, several: bool) -> Check {
    const STEP: &str = "server";
    let (product, version) = match info.text("valkey_version") {
        "" => ("Redis", info.text("redis_version")),
        version => ("Valkey", version),
    };
    let role = match info.text("role") {
        "master" => "a master".to_owned(),
        "slave" => format!(
            "a replica of {}:{}",
            info.text("master_host"),
            info.text("master_port")
        ),
        other => other.to_owned(),
    };
    let found = format!("{product} {version}, {role}");
    if info.text("redis_mode") == "sentinel" {
        return Check::fail(
            STEP,
            Trouble::Misconfigured,
            format!("{product} {version}, a Sentinel, which keeps no data"),
            "name the servers that it watches",
        );
    }
    let major = version.split('.').next().unwrap_or_default();
    if major.parse::<u32>().is_ok_and(|major| major < OLDEST) {
        let remedy = "use Redis 7.0, Valkey 7.2 or newer";
        return Check::fail(STEP, Trouble::Misconfigured, found, remedy);
    }
    if !info.is_master() && !several {
        return Check::fail(
            STEP,
            Trouble::Unavailable,
            format!("{found}, where no token can be written"),
            "name the master, or all servers that may become it (redis://db1,db2)",
        );
    }
    Check::fine(STEP, found)
}

/// Of several servers one is the master.
pub(super) fn primary(masters: &[String]) -> Check {
    const STEP: &str = "primary";
    match masters {
        [one] => Check::fine(STEP, format!("{one} is the only master")),
        [] => Check::fail(
            STEP,
            Trouble::Unavailable,
            "no server that can be reached is a master",
            "start one, or name it",
        ),
        several => Check::fail(
            STEP,
            Trouble::Misconfigured,
            format!(
                "{} accept writes: each can grant the same token",
                several.join(" and ")
            ),
            "make all but one replicas (REPLICAOF), and set min-replicas-to-write to their number",
        ),
    }
}

/// Whether the server may remove keys when its memory is full, and how soon it is.
pub(super) fn memory(info: &Info) -> Check {
    const STEP: &str = "memory";
    let policy = info.text("maxmemory_policy");
    let (used, most) = (info.number("used_memory"), info.number("maxmemory"));
    let found = match most {
        0 => format!("no limit, policy {policy}"),
        _ => format!(
            "{} % of maxmemory is used, policy {policy}",
            used.saturating_mul(100) / most
        ),
    };
    if policy.starts_with("allkeys") {
        return Check::fail(
            STEP,
            Trouble::Misconfigured,
            format!("{found}: a full server removes tokens, and then two nodes run the job"),
            "CONFIG SET maxmemory-policy noeviction, and in redis.conf",
        );
    }
    if most > 0 && used >= most && policy == "noeviction" {
        return Check::fail(
            STEP,
            Trouble::Unavailable,
            format!("{found}: the server refuses writes, so nothing is granted and jobs are ended"),
            "raise maxmemory, or remove other data",
        );
    }
    if most > 0 && used.saturating_mul(10) > most.saturating_mul(9) {
        return Check::warn(
            STEP,
            format!("{found}: a full server refuses heartbeats, and that ends jobs"),
            "raise maxmemory, or remove other data",
        );
    }
    Check::fine(STEP, found)
}

/// What is left after the server was killed.
pub(super) fn durability(info: &Info, fsync: Option<&str>, on_rewrite: Option<&str>) -> Check {
    const STEP: &str = "durability";
    const LATER: &str = "after a restart nothing is granted until every earlier lease is over";
    let always = "appendonly yes and appendfsync always";
    if info.text("rdb_last_bgsave_status") == "err" || info.text("aof_last_write_status") == "err" {
        return Check::fail(
            STEP,
            Trouble::Unavailable,
            "the server could not write its data to the disk",
            "see its log, and the room on its disk",
        );
    }
    if info.text("aof_enabled") != "1" {
        return Check::warn(
            STEP,
            format!(
                "appendonly is off: a server that is killed forgets the tokens and history; {LATER}"
            ),
            format!("set {always}"),
        );
    }
    match fsync {
        Some("always") if on_rewrite == Some("yes") => Check::warn(
            STEP,
            "appendfsync always, but not while the file is rewritten (no-appendfsync-on-rewrite)",
            "set no-appendfsync-on-rewrite no",
        ),
        Some("always") => Check::fine(STEP, format!("each write is on the disk; {LATER}")),
        Some(other) => Check::warn(
            STEP,
            format!(
                "appendfsync {other}: a power cut may take the last writes, keys of --once too; {LATER}"
            ),
            "set appendfsync always",
        ),
        None => Check::unknown(
            STEP,
            format!("appendonly is on, and this user may not read appendfsync; {LATER}"),
            format!("see that redis.conf has {always}"),
        ),
    }
}

/// What a master needs so that it stops as soon as one of its replicas is another's.
fn all_of(replicas: u64) -> String {
    format!("set min-replicas-to-write {replicas} and min-replicas-max-lag 1")
}

/// Whether a master stops when one of its replicas is promoted, whatever the others do. `needed` and `lag`:
/// `min-replicas-to-write` and `min-replicas-max-lag`, if this user may read them.
pub(super) fn replicas(info: &Info, needed: Option<u64>, lag: Option<u64>) -> Option<Check> {
    const STEP: &str = "replicas";
    let count = info.number("connected_slaves");
    // The server tells it only if the setting is not 0.
    let needs_them = !info.text("min_slaves_good_slaves").is_empty();
    let near = info.number("min_slaves_good_slaves");
    let least = needed.unwrap_or(1);
    match (count, needs_them) {
        (0, false) => None,
        (_, true) if near < least => Some(Check::fail(
            STEP,
            Trouble::Unavailable,
            format!("{near} of {least} replicas are there: the server refuses writes"),
            "start the replicas, or see why they lag (min-replicas-to-write, min-replicas-max-lag)",
        )),
        (2.., true) if needed.is_none() => Some(Check::unknown(
            STEP,
            format!("{count} replicas, and this user may not read how many of them it needs"),
            format!("see that redis.conf has min-replicas-to-write {count}"),
        )),
        (_, true) if least < count => Some(Check::warn(
            STEP,
            format!(
                "{least} of {count} replicas are enough for writes: when one is promoted, this server goes on \
                 with the others, and two nodes run the job"
            ),
            all_of(count),
        )),
        (_, true) if lag.is_some_and(|lag| lag > MOST_LAG) => Some(Check::warn(
            STEP,
            "min-replicas-max-lag is long: when a replica is promoted, this server accepts heartbeats for so \
             long, and two nodes run the job",
            all_of(count),
        )),
        (count, true) => Some(Check::fine(
            STEP,
            format!("{count} replicas, without any of which it refuses writes"),
        )),
        (count, false) => Some(Check::warn(
            STEP,
            format!(
                "{count} replicas; when one is promoted, this server goes on accepting the \
                 heartbeats of those who still reach it, and two nodes run the job"
            ),
            all_of(count),
        )),
    }
}

pub(super) fn cluster(info: &Info) -> Option<Check> {
    (info.number("cluster_enabled") != 0).then(|| {
        Check::warn(
            "cluster",
            "one node of a cluster; its failover may lose grants, and tokenrun follows it only to \
             nodes that the URL names",
            "name the node with tokenrun's keys and its replicas, and set min-replicas-to-write to their number",
        )
    })
}

pub(super) fn sentinel(info: &Info) -> Check {
    let found = "a Sentinel watches it and may promote a replica, which may lack the last grants";
    let needs_them = !info.text("min_slaves_good_slaves").is_empty();
    if needs_them {
        return Check::fine("sentinel", found);
    }
    Check::warn(
        "sentinel",
        found,
        "set min-replicas-to-write to the number of replicas and min-replicas-max-lag 1, and name all \
         servers in the URL",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::checkup::Verdict;
    use crate::store::checkup::pinned::pin;

    fn info(pairs: &[(&str, &str)]) -> Info {
        let owned = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Info(owned.collect())
    }

    fn is_fail(check: &Check) -> bool {
        matches!(check.verdict, Verdict::Fail(_))
    }

    #[test]
    fn a_server_that_evicts_tokens_fails_and_one_that_is_almost_full_is_warned_of() {
        let of = |policy, used, most| {
            memory(&info(&[
                ("maxmemory_policy", policy),
                ("used_memory", used),
                ("maxmemory", most),
            ]))
        };
        assert!(is_fail(&of("allkeys-lru", "1", "0")));
        assert_eq!(of("noeviction", "1", "0").verdict, Verdict::Fine);
        assert_eq!(of("volatile-lru", "10", "100").verdict, Verdict::Fine);
        assert_eq!(of("noeviction", "95", "100").verdict, Verdict::Warn);
    }

    #[test]
    fn only_a_log_that_is_synced_each_time_is_fine() {
        let on = info(&[("aof_enabled", "1")]);
        let verdict = |fsync, rewrite| durability(&on, fsync, rewrite).verdict;
        assert_eq!(verdict(Some("always"), Some("no")), Verdict::Fine);
        assert_eq!(verdict(Some("always"), Some("yes")), Verdict::Warn);
        assert_eq!(verdict(Some("everysec"), Some("no")), Verdict::Warn);
        assert_eq!(verdict(None, None), Verdict::Unknown);
        let off = durability(&info(&[("aof_enabled", "0")]), Some("always"), None);
        assert_eq!(off.verdict, Verdict::Warn);
        let full = info(&[("aof_enabled", "1"), ("aof_last_write_status", "err")]);
        assert!(is_fail(&durability(&full, Some("always"), None)));
    }

    #[test]
    fn replicas_are_warned_of_unless_the_master_needs_them() {
        assert_eq!(replicas(&info(&[]), None, None), None);
        let loose = replicas(&info(&[("connected_slaves", "1")]), None, None).unwrap();
        assert_eq!(loose.verdict, Verdict::Warn);
        let tight = [("connected_slaves", "1"), ("min_slaves_good_slaves", "1")];
        let verdict = |needed| replicas(&info(&tight), needed, Some(10)).unwrap().verdict;
        assert_eq!(
            (verdict(None), verdict(Some(1))),
            (Verdict::Fine, Verdict::Fine)
        );
        assert!(matches!(verdict(Some(2)), Verdict::Fail(_)));
        let none = [("connected_slaves", "1"), ("min_slaves_good_slaves", "0")];
        assert!(is_fail(&replicas(&info(&none), None, None).unwrap()));
        let slow = replicas(&info(&tight), Some(1), Some(11)).unwrap();
        assert_eq!(slow.verdict, Verdict::Warn);
        assert_eq!(sentinel(&info(&tight)).verdict, Verdict::Fine);
        assert_eq!(sentinel(&info(&[])).verdict, Verdict::Warn);
    }

    /// With the others the old master goes on beside the one that was promoted.
    #[test]
    fn a_master_that_does_not_need_all_of_its_replicas_is_warned_of() {
        let three = [("connected_slaves", "3"), ("min_slaves_good_slaves", "3")];
        let verdict = |needed| replicas(&info(&three), needed, Some(1)).unwrap().verdict;
        assert_eq!(verdict(Some(1)), Verdict::Warn);
        assert_eq!(verdict(Some(2)), Verdict::Warn);
        assert_eq!(verdict(Some(3)), Verdict::Fine);
        assert_eq!(verdict(None), Verdict::Unknown);
    }

    #[test]
    fn the_texts_are_pinned() {
        let mut cases = Vec::new();
        let mut case = |name: &str, checks: Vec<Check>| cases.push((name.to_owned(), checks));
        let of = |version, role, mode| {
            info(&[
                ("redis_version", version),
                ("role", role),
                ("redis_mode", mode),
                ("master_host", "10.0.0.1"),
                ("master_port", "6379"),
            ])
        };
        case("a master", vec![server(&of("7.0.1", "master", ""), false)]);
        case("old", vec![server(&of("6.2.1", "master", ""), false)]);
        case("a replica", vec![server(&of("7.0.1", "slave", ""), false)]);
        case(
            "a replica of several",
            vec![server(&of("7.0.1", "slave", ""), true)],
        );
        case(
            "a Sentinel",
            vec![server(&of("7.0.1", "master", "sentinel"), true)],
        );
        let valkey = info(&[("valkey_version", "9.1.0"), ("role", "odd")]);
        case("another role", vec![server(&valkey, true)]);
        let names = ["a:1".to_owned(), "b:2".to_owned()];
        case("two masters", vec![primary(&names)]);
        case("one master", vec![primary(&names[..1])]);
        case("no master", vec![primary(&[])]);
        for (policy, used, most) in [
            ("noeviction", "1", "0"),
            ("allkeys-lru", "1", "0"),
            ("noeviction", "100", "100"),
            ("volatile-lru", "95", "100"),
            ("noeviction", "10", "100"),
        ] {
            let of = info(&[
                ("maxmemory_policy", policy),
                ("used_memory", used),
                ("maxmemory", most),
            ]);
            case(&format!("{policy} {used} of {most}"), vec![memory(&of)]);
        }
        let on = info(&[("aof_enabled", "1")]);
        for (fsync, rewrite) in [
            (Some("always"), Some("no")),
            (Some("always"), Some("yes")),
            (Some("everysec"), Some("no")),
            (None, None),
        ] {
            case(
                &format!("{fsync:?}, on rewrite {rewrite:?}"),
                vec![durability(&on, fsync, rewrite)],
            );
        }
        let off = info(&[("aof_enabled", "0")]);
        case("no log", vec![durability(&off, Some("always"), None)]);
        let full = info(&[("aof_enabled", "1"), ("aof_last_write_status", "err")]);
        case("full", vec![durability(&full, Some("always"), None)]);
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
            let mut pairs = vec![("connected_slaves", count)];
            if !near.is_empty() {
                pairs.push(("min_slaves_good_slaves", near));
            }
            let found = info(&pairs);
            let mut checks: Vec<Check> = replicas(&found, needed, lag).into_iter().collect();
            checks.push(sentinel(&found));
            case(
                &format!("{count} replicas, {near} near, {needed:?} needed, {lag:?} late"),
                checks,
            );
        }
        let node = info(&[("cluster_enabled", "1")]);
        case("a node", cluster(&node).into_iter().collect());
        let far = Host::tcp("db1", 6379);
        let near = Host::tcp("localhost", 6379);
        for (host, secured) in [(&far, true), (&far, false), (&near, false)] {
            case(
                &format!("{host}, secured: {secured}"),
                tls(host, secured).into_iter().collect(),
            );
        }
        pin("redis", cases);
    }

    #[test]
    fn an_old_release_a_replica_alone_and_a_sentinel_fail() {
        let of = |version, role, mode| {
            info(&[
                ("redis_version", version),
                ("role", role),
                ("redis_mode", mode),
            ])
        };
        assert!(is_fail(&server(&of("6.2.1", "master", ""), false)));
        assert!(is_fail(&server(&of("7.0.1", "slave", ""), false)));
        assert!(!is_fail(&server(&of("7.0.1", "slave", ""), true)));
        assert!(is_fail(&server(&of("7.0.1", "master", "sentinel"), true)));
        let valkey = info(&[("valkey_version", "9.1.0"), ("role", "master")]);
        assert_eq!(server(&valkey, false).found, "Valkey 9.1.0, a master");
        assert!(is_fail(&primary(&["a".into(), "b".into()])));
        assert!(is_fail(&primary(&[])));
    }
}
