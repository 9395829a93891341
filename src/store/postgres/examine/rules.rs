//! What the facts about a PostgreSQL server mean, and what to do, step by step: the first rule of a step that
//! holds gives its check.

use crate::store::checkup::rules::{Facts, Rule, on, otherwise};

/// The oldest supported release, as `server_version_num`.
const OLDEST: i64 = 150_000;

/// How the shared texts name what is PostgreSQL's, and what several rules say.
pub(super) const WORDS: [(&str, &str); 11] = [
    ("product", "PostgreSQL"),
    ("see", "check"),
    ("socket", "(unix_socket_directories, port)"),
    ("listens", "listen_addresses, port"),
    ("account", "role"),
    ("whole", "the schema is whole and this is PostgreSQL"),
    ("protocol", "TLS, of which version can't be known"),
    ("end", "when its certificate ends can't be known"),
    (
        "lossy",
        "(synchronous_standby_names is empty): a failover can lose the last grants, and then the next runs \
         wait until their leases are over",
    ),
    (
        "pooled",
        "runs work as without; a waiter gets no notification of a release, and looks about once a second",
    ),
    (
        "open",
        "the open transaction of a job may delay a takeover, if it called tokenrun_fence",
    ),
];

const VERIFY: &str =
    "set sslmode=verify-full with sslrootcert, the file of the authority that signed (or system)";
const GRANT: &str = "ask a database administrator to run what tokenrun init --print-sql prints, and then GRANT \
                     tokenrun TO {grantee}";
const BACKUP: &str = "put a backup back, or name another schema with tokenrun_schema";
const SYNCHRONOUS: &str =
    "set up a synchronous standby (synchronous_standby_names), and fail over to that one only";
const LIMIT: &str =
    "for the roles of such jobs: ALTER ROLE … SET idle_in_transaction_session_timeout = '1min'";

pub(super) const RULES: &[Rule] = &[
    on("server", |f| f.number("number") < OLDEST)
        .wrong("PostgreSQL {release}, {kind}", "use PostgreSQL 15 or newer"),
    on("server", |f| f.has("standby") && !f.has("several")).unavailable(
        "PostgreSQL {release}, {kind}, where no token can be written",
        "name the primary, or all servers that may become it (host=db1,db2)",
    ),
    on("server", |f| !f.has("standby") && f.has("read_only")).wrong(
        "PostgreSQL {release}, {kind}, where transactions are read-only by default",
        "set default_transaction_read_only = off, for the role at least",
    ),
    otherwise("server").fine("PostgreSQL {release}, {kind}"),

    on("pooler", |f| f.is("pooler", "one")).fine("one is in between: {pooled}"),
    on("pooler", |f| f.is("pooler", "none")).fine("none is in between"),
    on("pooler", |f| f.has("unix")).unknown(
        "whether one is in between can't be known over a Unix socket",
        "nothing; behind a pooler {pooled}",
    ),
    otherwise("pooler").unknown(
        "whether one is in between can't be known: the server sees this connection come from another \
         address, as behind a pooler, a proxy or a translation of addresses",
        "nothing; behind a pooler {pooled}",
    ),

    on("tls", |f| f.has("unix")).fine("none: a Unix socket needs none"),
    on("tls", |f| !f.has("secured") && f.has("loopback"))
        .fine("none; the connection does not leave this host"),
    on("tls", |f| !f.has("secured")).warn(
        "none: what is sent can be read and changed on its way; whether the server has none, or TLS was tried \
         and failed, can't be known",
        "set ssl = on on the server, and set sslmode=verify-full with sslrootcert, the file of the authority \
         that signed (or system): a TLS failure then ends the login with its reason",
    ),
    on("tls", |f| !f.has("roots")).warn(
        "{protocol}; the certificate is not verified: another server could have answered; {end}",
        VERIFY,
    ),
    on("tls", |f| f.has("named"))
        .fine("{protocol}; the certificate was checked, and its name; {end}"),
    on("tls", |f| f.has("insists"))
        .fine("{protocol}; the certificate was checked, but not its name; {end}"),
    otherwise("tls").warn(
        "{protocol}; the certificate was checked, but a connection without TLS would do as well; {end}",
        VERIFY,
    ),

    on("authentication", |f| f.is("method", "trust") && f.has("unix")).fine("the method is trust"),
    on("authentication", |f| f.is("method", "trust")).warn(
        "the method is trust: every client that reaches the server is let in",
        "set scram-sha-256 in the server's pg_hba.conf, and a password in ~/.pgpass",
    ),
    on("authentication", |f| !f.has("method") && f.is("pooler", "one")).unknown(
        "a pooler is in between: its authentication method can't be known",
        "see auth_type in the pooler's configuration: scram-sha-256 is good",
    ),
    on("authentication", |f| !f.has("method")).unknown(
        "the authentication method can't be known: PostgreSQL tells it since version 16",
        "see its pg_hba.conf (the view pg_hba_file_rules): scram-sha-256 is good, and trust lets in every client",
    ),
    on("authentication", |f| f.is("method", "md5")).warn(
        "the method is {method}",
        "set password_encryption = scram-sha-256, set the password again, and set scram-sha-256 in pg_hba.conf",
    ),
    on("authentication", |f| {
        let is_private = f.has("unix") || f.has("loopback") || f.has("secured");
        !is_private && ["password", "ldap", "pam", "bsd", "radius"].contains(&f.text("method"))
    })
    .warn(
        "the method is {method}, and the password was sent where it can be read",
        "set scram-sha-256 in the server's pg_hba.conf, or TLS",
    ),
    otherwise("authentication").fine("the method is {method}"),

    on("rights", |f| f.has("super")).warn(
        "{user} is a superuser: it may do all that tokenrun does, and everything else",
        "use a role of its own: tokenrun init --print-sql prints one with the least rights",
    ),
    on("rights", |f| !f.has("there") && f.has("may_create"))
        .fine("{user} may make the schema {schema:?}"),
    on("rights", |f| !f.has("there"))
        .denied("there is no schema {schema:?}, and {user} may not make it", GRANT),
    on("rights", |f| !f.has("usage")).denied("{user} may not use the schema {schema:?}", GRANT),
    on("rights", |f| f.has("missing"))
        .denied("{user} lacks {missing} in the schema {schema:?}", GRANT),
    on("rights", |f| f.has("filtered")).wrong(
        "row security hides rows from {user} in {filtered}: it may see a free token that is held",
        "ALTER TABLE … DISABLE ROW LEVEL SECURITY",
    ),
    otherwise("rights").fine("{user} may do all that tokenrun does with the tables"),

    on("schema", |f| !f.has("there") && (f.has("may_create") || f.has("super")))
        .fine("there is none named {schema:?} yet: the first run makes it"),
    on("schema", |f| !f.has("there")).wrong(
        "there is none named {schema:?}",
        "ask an administrator to make it, or name another with tokenrun_schema",
    ),
    on("schema", |f| !f.has("readable") && !f.lists("absent", "meta")).denied(
        "{schema:?} is there, but its version can't be read",
        "give the role the rights that it lacks",
    ),
    on("schema", |f| !f.has("readable") && f.lists("absent", "tokens") && f.has("may_add"))
        .fine("{schema:?} is there without tokenrun's tables: the first run makes them"),
    on("schema", |f| !f.has("readable")).wrong(
        "{schema:?} is there, but not tokenrun's table meta",
        "ask an administrator to run what tokenrun init --print-sql prints, or name another schema with \
         tokenrun_schema",
    ),
    on("schema", |f| f.text("oldest_reader").parse::<i64>().is_err()).wrong(
        "the table meta in {schema:?} does not say which programs it is for",
        BACKUP,
    ),
    on("schema", |f| f.number("oldest_reader") > f.number("knows")).wrong(
        "{schema:?} is for programs that know version {oldest_reader} or later, and this tokenrun knows {knows}",
        "install a newer tokenrun",
    ),
    on("schema", |f| f.has("unlogged")).wrong(
        "{schema:?} has version {version}, and this tokenrun knows {knows}; not logged: {unlogged}. A crash of \
         the server would empty them",
        "ALTER TABLE … SET LOGGED",
    ),
    on("schema", |f| f.has("absent")).wrong(
        "{schema:?} has version {version}, and this tokenrun knows {knows}; not there: {absent}",
        BACKUP,
    ),
    otherwise("schema").fine("{schema:?} has version {version}, and this tokenrun knows {knows}"),

    on("durability", |f| !f.has("syncs")).warn(
        "fsync is off: a crash of the server's host can lose grants, or the whole database",
        "set fsync = on",
    ),
    otherwise("durability").fine(
        "fsync is on; the site's synchronous_commit is {commit}, and tokenrun commits with on at least",
    ),

    on("replication", |f| waits_for_none(f) && f.has("standbys"))
        .warn("{counted} asynchronously {lossy}", SYNCHRONOUS),
    on("replication", |f| waits_for_none(f) && f.has("slots")).warn(
        "no standby follows now, and {slots} slots are kept for some {lossy}",
        SYNCHRONOUS,
    ),
    on("replication", |f| waits_for_none(f) && f.has("several")).warn(
        "several servers are named, and none follows this one now {lossy}",
        SYNCHRONOUS,
    ),
    on("replication", waits_for_none).fine(
        "no standby follows and one server is named: there is nothing to fail over to",
    ),
    on("replication", |f| !f.has("standbys") || !(f.has("hidden") || f.has("synchronous"))).unavailable(
        "synchronous_standby_names is {names:?}, and no such standby follows: every commit waits until one does",
        "start that standby, or take its name out",
    ),
    on("replication", |f| f.has("hidden")).fine(
        "synchronous_standby_names is {names:?}, {counted}; which of them commits wait for this role may not \
         see (GRANT pg_read_all_stats shows it). Fail over to a synchronous one alone",
    ),
    on("replication", |f| f.has("asynchronous")).fine(
        "synchronous_standby_names is {names:?}, {counted}, commits wait for {synchronous}: a failover to \
         such a one loses no grant; {asynchronous} of them asynchronously: never fail over to those",
    ),
    otherwise("replication").fine(
        "synchronous_standby_names is {names:?}, {counted}, commits wait for {synchronous}: a failover to \
         such a one loses no grant",
    ),

    on("keepalives", |f| f.has("local")).fine("a Unix socket needs none"),
    on("keepalives", |f| !f.has("late"))
        .fine("the server notices after {noticed} that the host{of} at the other end is gone"),
    otherwise("keepalives").warn(
        "the server notices after {noticed} that the host{of} at the other end is gone; for that time the open \
         transaction of a dead job may delay a takeover, if it called tokenrun_fence",
        "for the roles of such jobs (here {role:?}): ALTER ROLE … SET tcp_keepalives_idle = 10, \
         tcp_keepalives_interval = 5 and tcp_keepalives_count = 3",
    ),

    on("idle_in_transaction", |f| f.has("unlimited")).warn(
        "roles that may call tokenrun_fence and have no limit: {unlimited}; without a limit {open}",
        LIMIT,
    ),
    on("idle_in_transaction", |f| !f.has("idle_in_transaction_ms"))
        .warn("{role:?} has no limit: {open}", LIMIT),
    on("idle_in_transaction", |f| f.has("idles")).warn(
        "{role:?} may leave a transaction open for {idle}; for that time {open}",
        LIMIT,
    ),
    otherwise("idle_in_transaction").fine("{role:?} may leave a transaction open for {idle}"),

    on("primary", |f| !f.has("primaries")).unavailable(
        "none of the servers can be written to",
        "start the primary, or promote a standby",
    ),
    on("primary", |f| f.is("primaries", "1")).fine("{names}"),
    otherwise("primary").wrong(
        "each of these can be written to: {names}; two nodes may use two of them",
        "stop all but the right one now, and start an old primary again only as a standby",
    ),
];

/// True if commits wait for no standby.
fn waits_for_none(f: &Facts) -> bool {
    f.text("names").trim().is_empty()
}

/// The step at which a log-in was refused, and what to do, by the SQLSTATE; `unable`: the client can't do what the
/// server asks for.
pub(super) fn refused(code: &str, unable: bool) -> (&'static str, &'static str) {
    match code {
        "28P01" => (
            "authentication",
            "correct the password (~/.pgpass, PGPASSWORD, --store-file)",
        ),
        _ if code.starts_with("28") => (
            "authentication",
            "make the role, or let it in from this host in the server's pg_hba.conf",
        ),
        "3D000" => (
            "login",
            "make the database, or correct its name in the store",
        ),
        "53300" => (
            "login",
            "raise max_connections, or put a pooler in transaction mode in between",
        ),
        "57P03" => ("login", "wait until the server has started, or see its log"),
        "42501" => ("login", "GRANT CONNECT ON DATABASE … TO the role"),
        "" if unable => (
            "authentication",
            "give a password in ~/.pgpass, PGPASSWORD or --store-file, and a method that tokenrun knows \
             (scram-sha-256) in pg_hba.conf",
        ),
        "" => (
            "login",
            "check whether it is PostgreSQL that listens there, and the server's log",
        ),
        _ => ("login", "see the server's log"),
    }
}
