//! What the facts about a MySQL or MariaDB server mean, and what to do, step by step: the first rule of a step
//! that holds gives its check.

use super::super::fault::{Said, code};
use crate::store::checkup::rules::{Facts, Rule, on, otherwise};

/// How the shared texts name what is MySQL's, and what several rules say.
pub(super) const WORDS: [(&str, &str); 7] = [
    ("product", "MySQL or MariaDB"),
    ("see", "see"),
    (
        "socket",
        "(socket); a name other than localhost, or a port, connects by TCP",
    ),
    ("listens", "bind-address, port"),
    ("account", "user"),
    ("whole", "the tables are whole"),
    (
        "lossy",
        "replication is asynchronous: a failover can lose the last grants and keys, and what follows is observed \
         for takeover-after",
    ),
];

const VERIFY: &str = "have ssl-mode=VERIFY_IDENTITY with ssl-ca, the file of the authority that signed the server's \
                      certificate";
const ONE_NODE: &str = "name one node in the store, and another only after a failover; the fence in a job's own \
                        transaction does not hold across nodes";

pub(super) const RULES: &[Rule] = &[
    on("tls", |f| f.has("unix")).fine("a Unix socket, which no other host can read"),
    on("tls", |f| f.has("secured") && f.has("verified"))
        .fine("on, and the server's certificate is verified"),
    on("tls", |f| f.has("loopback")).fine("the connection does not leave this host"),
    on("tls", |f| f.has("secured")).warn(
        "on, but the server's certificate is not verified: any server in between could read and change \
         everything",
        VERIFY,
    ),
    otherwise("tls").warn(
        "off: everybody in between can read and change everything",
        VERIFY,
    ),

    on("server", |f| f.has("elsewhere") && f.has("several")).fine("read_only is on"),
    on("server", |f| f.has("elsewhere")).unavailable(
        "read_only is on, and no token can be written here",
        "name the server that accepts writes, or all servers that may become it \
         (mysql://user@db1,db2/database)",
    ),
    on("server", is_old).wrong(
        "{kind} {version}, which accepts writes",
        "use MariaDB 10.6 or MySQL 8.0.17, or newer",
    ),
    otherwise("server").fine("{kind} {version}, which accepts writes"),

    // A session's number is on the wire with its low 32 bits.
    on("proxy", |f| f.number("greeted") != f.number("session") & 0xffff_ffff).warn(
        "a proxy answers in the place of the server: its session is {greeted}, the server's is {session}",
        "let the proxy send all statements of tokenrun's user to the server that accepts writes, reads too, and \
         keep each session on one connection (ProxySQL: transaction_persistent, no rules for SELECT); or name \
         the servers themselves in the store",
    ),

    on("clock", |f| !f.text("passed_us").is_empty() && f.number("passed_us") < 5_000).wrong(
        "the server gives statements the time of their start (sysdate-is-now): a swap that waited would not \
         notice that it is late",
        "start the server without sysdate-is-now",
    ),

    on("rights", |f| f.has("no_tables")).unknown(
        "the database {database:?} has no tables of tokenrun's yet",
        "nothing, if its user may make them: the first run does (or tokenrun init, now); else have an \
         administrator run what tokenrun init --print-sql prints",
    ),
    on("rights", |f| f.has("missing")).denied(
        "the user lacks, or the database does: {missing}",
        "have a database administrator run what tokenrun init --print-sql prints: it makes what is missing, and \
         names the rights to GRANT",
    ),
    otherwise("rights").fine("the user has all that tokenrun needs"),

    on("durability", |f| !f.is("innodb_flush_log_at_trx_commit", "1")).wrong(
        "innodb_flush_log_at_trx_commit is {innodb_flush_log_at_trx_commit}: a crash can lose the grants and keys \
         of the last second",
        "set innodb_flush_log_at_trx_commit = 1",
    ),
    on("durability", |f| ["nosync", "littlesync"].contains(&f.text("flush_method"))).wrong(
        "innodb_flush_method is {flush_method}: a crash of the server's host can lose grants and keys, or the tables",
        "leave innodb_flush_method out, or set it to fsync or O_DIRECT",
    ),
    on("durability", |f| f.has("log_bin") && f.is("binlog_format", "STATEMENT")).wrong(
        "binlog_format is STATEMENT, which can't record what tokenrun writes",
        "set binlog_format = ROW or MIXED",
    ),
    on("durability", |f| f.has("log_bin") && !f.is("sync_binlog", "1")).warn(
        "sync_binlog is {sync_binlog}: a crash of the server's host can lose the last commits",
        "set sync_binlog = 1",
    ),
    otherwise("durability").fine("each commit is on the disk before its answer"),

    on("cluster", |f| is_galera(f) && f.is("galera_nodes", "1")).warn(
        "Galera, with one node; each further node accepts writes too",
        ONE_NODE,
    ),
    on("cluster", is_galera)
        .warn("Galera, with {galera_nodes} nodes that all accept writes", ONE_NODE),
    on("cluster", |f| is_group(f) && f.has("group_replication_single_primary_mode"))
        .fine("Group Replication with a single primary"),
    on("cluster", is_group).warn("Group Replication with several primaries", ONE_NODE),

    on("replication", |f| !f.has("log_bin") && f.has("several")).warn(
        "no binary log, so none of the other servers follows this one",
        "set log_bin, or name the servers that follow each other",
    ),
    on("replication", |f| !f.has("log_bin")).fine("no binary log, so no other server follows"),
    on("replication", |f| {
        f.has("rpl_semi_sync_master_enabled") || f.has("rpl_semi_sync_source_enabled")
    })
    .fine("{replicas}; semi-synchronous: a commit waits for a replica, while one answers in time"),
    otherwise("replication").warn(
        "{replicas}; {lossy}",
        "have semi-synchronous replication, if failovers happen by themselves",
    ),

    on("tables", |f| f.has("engine")).wrong(
        "the table {table} has the engine {engine}, which does not lock rows as InnoDB does",
        "ALTER TABLE {table} ENGINE = InnoDB",
    ),

    on("fence", |f| f.has("uncallable")).warn(
        "a job can't call tokenrun_fence: {uncallable}",
        "have an administrator who stays make the procedures again: run what tokenrun init --print-sql prints, \
         and GRANT EXECUTE on tokenrun_fence again",
    ),

    on("primary", |f| !f.has("primaries"))
        .unavailable("no server accepts writes", "have one server without read_only"),
    on("primary", |f| f.is("primaries", "1")).fine("{names} accepts writes, and no other"),
    otherwise("primary").wrong(
        "several servers accept writes: {names}; each can grant the token",
        "set read_only = ON on all but one",
    ),
];

/// True if the release is not supported.
fn is_old(f: &Facts) -> bool {
    // Servers behind some proxies have this before the version.
    let text = f.text("version");
    let text = text.strip_prefix("5.5.5-").unwrap_or(text);
    let mut parts = text.split(|c: char| !c.is_ascii_digit());
    let mut next = || parts.next().and_then(|part| part.parse().ok()).unwrap_or(0);
    let oldest = if f.is("kind", "MariaDB") {
        (10, 6, 0)
    } else {
        (8, 0, 17)
    };
    (next(), next(), next()) < oldest
}

fn is_galera(f: &Facts) -> bool {
    f.has("wsrep_on") && !f.text("galera_nodes").is_empty()
}

fn is_group(f: &Facts) -> bool {
    f.has("group_replication_group_name")
}

/// The step at which a log-in was refused, and what to do.
pub(super) fn refused(said: &Said) -> (&'static str, &'static str) {
    let code = match said {
        Said::Server { code, .. } => *code,
        Said::Login(_) => {
            return (
                "authentication",
                "connect with TLS (ssl-mode) or over a Unix socket, or have another plugin for the user",
            );
        }
        Said::ReadOnly => 0,
    };
    match code {
        code::UNKNOWN_DATABASE => (
            "login",
            "make the database, or correct its name in the store",
        ),
        1044 => ("login", "GRANT the user rights on the database"),
        _ if code::NO_CONNECTION.contains(&code) => {
            ("login", "raise max_connections, or the limit of the user")
        }
        _ if code::DENIED.contains(&code) => (
            "authentication",
            "correct the user and the password (~/.my.cnf, MYSQL_PWD, --store-file), or have the user let in \
             from this host",
        ),
        _ => ("login", "see the server's log"),
    }
}
