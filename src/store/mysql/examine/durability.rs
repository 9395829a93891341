//! What a crash or a failover of the server would lose. Pure.

use std::collections::HashMap;

use super::super::cells::Cells;
use super::super::wire::Answer;
use crate::store::Trouble;
use crate::store::checkup::Check;

/// Settings and counters of a server, by name.
#[derive(Debug, Default)]
pub(super) struct Facts(HashMap<String, String>);

impl Facts {
    pub(super) fn of(answer: &Answer) -> Self {
        let pairs = answer.rows.iter().filter_map(|row| {
            let mut cells = Cells::new(answer, row, 0);
            let name = cells.text().ok()??.to_owned();
            let value = cells.text().ok()?.unwrap_or_default().to_owned();
            Some((name, value))
        });
        Self(pairs.collect())
    }

    fn text(&self, name: &str) -> &str {
        self.0.get(name).map(String::as_str).unwrap_or_default()
    }

    pub(super) fn number(&self, name: &str) -> i64 {
        self.text(name).parse().unwrap_or(0)
    }

    fn is_on(&self, name: &str) -> bool {
        matches!(self.text(name), "ON" | "1")
    }
}

/// The first two parts of a version, and whether it is MariaDB's.
fn version(text: &str) -> (bool, u32, u32, u32) {
    // Servers behind some proxies have this before the version.
    let text = text.strip_prefix("5.5.5-").unwrap_or(text);
    let mut parts = text.split(|c: char| !c.is_ascii_digit());
    let mut next = || parts.next().and_then(|part| part.parse().ok()).unwrap_or(0);
    (text.contains("MariaDB"), next(), next(), next())
}

/// Whether the server's release is supported.
pub(super) fn release(facts: &Facts) -> Check {
    const STEP: &str = "server";
    let text = facts.text("version");
    let (is_mariadb, major, minor, patch) = version(text);
    let kind = if is_mariadb { "MariaDB" } else { "MySQL" };
    let found = format!("{kind} {text}, which accepts writes");
    let is_new = match is_mariadb {
        true => (major, minor) >= (10, 6),
        false => (major, minor, patch) >= (8, 0, 17),
    };
    if is_new {
        return Check::fine(STEP, found);
    }
    Check::fail(
        STEP,
        Trouble::Misconfigured,
        found,
        "use MariaDB 10.6 or MySQL 8.0.17, or newer",
    )
}

/// Checks what a crash of the server, and what a failover would lose.
pub(super) fn judge(facts: &Facts, several: bool) -> Vec<Check> {
    let mut checks = vec![durability(facts)];
    checks.push(cluster(facts).unwrap_or_else(|| replication(facts, several)));
    checks
}

/// Checks whether a crash of the server's host loses commits. It is a setting of the server alone.
fn durability(facts: &Facts) -> Check {
    const STEP: &str = "durability";
    let flush = facts.text("innodb_flush_log_at_trx_commit");
    if flush != "1" {
        return Check::fail(
            STEP,
            Trouble::Misconfigured,
            format!(
                "innodb_flush_log_at_trx_commit is {flush}: a crash can lose the grants and keys of the \
                 last second"
            ),
            "set innodb_flush_log_at_trx_commit = 1",
        );
    }
    let method = facts.text("innodb_flush_method").to_lowercase();
    if ["nosync", "littlesync"].contains(&&*method) {
        return Check::fail(
            STEP,
            Trouble::Misconfigured,
            format!(
                "innodb_flush_method is {method}: a crash of the server's host can lose grants and keys, or \
                 the tables"
            ),
            "leave innodb_flush_method out, or set it to fsync or O_DIRECT",
        );
    }
    if facts.is_on("log_bin") && facts.text("binlog_format") == "STATEMENT" {
        return Check::fail(
            STEP,
            Trouble::Misconfigured,
            "binlog_format is STATEMENT, which can't record what tokenrun writes",
            "set binlog_format = ROW or MIXED",
        );
    }
    let sync = facts.text("sync_binlog");
    if facts.is_on("log_bin") && sync != "1" {
        return Check::warn(
            STEP,
            format!(
                "sync_binlog is {sync}: a crash of the server's host can lose the last commits"
            ),
            "set sync_binlog = 1",
        );
    }
    Check::fine(STEP, "each commit is on the disk before its answer")
}

/// Several servers that accept writes.
fn cluster(facts: &Facts) -> Option<Check> {
    const STEP: &str = "cluster";
    const ONE: &str = "name one node in the store, and another only after a failover; the fence in a \
                       job's own transaction does not hold across nodes";
    if facts.is_on("wsrep_on") && !facts.text("galera_nodes").is_empty() {
        let found = match facts.text("galera_nodes") {
            "1" => "Galera, with one node; each further node accepts writes too".to_owned(),
            count => format!("Galera, with {count} nodes that all accept writes"),
        };
        return Some(Check::warn(STEP, found, ONE));
    }
    if facts.text("group_replication_group_name").is_empty() {
        return None;
    }
    if facts.is_on("group_replication_single_primary_mode") {
        return Some(Check::fine(STEP, "Group Replication with a single primary"));
    }
    Some(Check::warn(
        STEP,
        "Group Replication with several primaries",
        ONE,
    ))
}

/// Checks what a failover would lose.
fn replication(facts: &Facts, several: bool) -> Check {
    const STEP: &str = "replication";
    if !facts.is_on("log_bin") {
        return match several {
            false => Check::fine(STEP, "no binary log, so no other server follows"),
            true => Check::warn(
                STEP,
                "no binary log, so none of the other servers follows this one",
                "set log_bin, or name the servers that follow each other",
            ),
        };
    }
    let semi = [
        "rpl_semi_sync_master_enabled",
        "rpl_semi_sync_source_enabled",
    ];
    let is_semi = semi.iter().any(|name| facts.is_on(name));
    let replicas = match facts.number("slaves_connected") {
        0 => "a binary log".to_owned(),
        1 => "a binary log, and a replica that is connected".to_owned(),
        count => format!("a binary log, and {count} replicas that are connected"),
    };
    match is_semi {
        true => Check::fine(
            STEP,
            format!(
                "{replicas}; semi-synchronous: a commit waits for a replica, while one answers in time"
            ),
        ),
        false => Check::warn(
            STEP,
            format!(
                "{replicas}; replication is asynchronous: a failover can lose the last grants and keys, \
                 and what follows is observed for takeover-after"
            ),
            "have semi-synchronous replication, if failovers happen by themselves",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::checkup::Verdict;
    use crate::store::checkup::pinned::pin;

    fn facts(pairs: &[(&str, &str)]) -> Facts {
        let sound = [
            ("version", "10.11.6-MariaDB"),
            ("innodb_flush_log_at_trx_commit", "1"),
            ("log_bin", "OFF"),
        ];
        let all = sound.iter().chain(pairs);
        Facts(
            all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        )
    }

    fn verdicts(pairs: &[(&str, &str)]) -> Vec<(&'static str, Verdict)> {
        let checks = judge(&facts(pairs), false);
        checks
            .iter()
            .map(|check| (check.step, check.verdict))
            .collect()
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
        assert!(verdicts(&galera).contains(&("cluster", Verdict::Warn)));
        let single = [
            ("group_replication_group_name", "x"),
            ("group_replication_single_primary_mode", "ON"),
        ];
        assert!(verdicts(&single).contains(&("cluster", Verdict::Fine)));
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
                let facts = facts(pairs);
                let mut checks = vec![release(&facts)];
                checks.extend(judge(&facts, several));
                cases.push((format!("{pairs:?}, several: {several}"), checks));
            }
        }
        pin("mysql", cases);
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
            let check = release(&facts(&[("version", text)]));
            assert_eq!(check.verdict == Verdict::Fine, is_new, "{text}");
        }
    }
}
