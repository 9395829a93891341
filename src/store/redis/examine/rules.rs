//! What the facts about a Redis or Valkey server mean, and what to do, step by step: the first rule of a step that
//! holds gives its check. The facts are the fields of INFO, and settings by their names.

use super::super::fault::Said;
use super::super::script::MOST_LAG;
use crate::store::checkup::rules::{Facts, Rule, on, otherwise};
use crate::store::net::fault::Said as _;

/// How the shared texts name what is Redis's, and what several rules say.
pub(super) const WORDS: [(&str, &str); 5] = [
    ("product", "Redis or Valkey"),
    ("see", "see"),
    ("socket", "(unixsocket)"),
    ("listens", "bind, port"),
    (
        "later",
        "after a restart nothing is granted until every earlier lease is over",
    ),
];

/// What a master needs so that it stops as soon as one of its replicas is another's.
const ALL: &str = "set min-replicas-to-write {connected_slaves} and min-replicas-max-lag 1";

pub(super) const RULES: &[Rule] = &[
    on("tls", |f| f.has("secured")).fine("encrypted, and the certificate is good"),
    on("tls", |f| !f.has("unix") && !f.has("loopback")).warn(
        "not encrypted: the password and every token can be read on the network",
        "have the server listen with TLS, and write rediss://",
    ),

    on("server", |f| f.is("redis_mode", "sentinel")).wrong(
        "{kind} {release}, a Sentinel, which keeps no data",
        "name the servers that it watches",
    ),
    on("server", |f| {
        let major = f.text("release").split('.').next().unwrap_or_default();
        major.parse::<u32>().is_ok_and(|major| major < 7)
    })
    .wrong("{kind} {release}, {place}", "use Redis 7.0, Valkey 7.2 or newer"),
    on("server", |f| !is_master(f) && f.has("quorum")).unavailable(
        "{kind} {release}, {place}, which counts for nothing",
        "REPLICAOF NO ONE: the servers of a quorum are independent",
    ),
    on("server", |f| !is_master(f) && !f.has("several")).unavailable(
        "{kind} {release}, {place}, where no token can be written",
        "name the master, or all servers that may become it (redis://db1,db2)",
    ),
    otherwise("server").fine("{kind} {release}, {place}"),

    on("rights", |f| f.has("missing")).denied(
        "no right to {missing}",
        "ACL SETUSER … ~{prefix}* &{prefix}* and the commands of tokenrun",
    ),
    otherwise("rights").fine("all commands on the keys {prefix}*"),

    on("member", |f| f.has("quorum") && f.has("alone")).wrong(
        "it keeps tokens of an address without ?quorum: nodes with that address and nodes with this one do not exclude each other",
        "give all nodes the same address, or give this one another prefix=; then remove the old keys",
    ),
    on("member", |f| f.has("quorum") && f.has("joined")).fine("it has joined, and knows what it has promised"),
    on("member", |f| f.has("quorum")).warn(
        "it has not joined since it started, and counts for nothing",
        "a run lets it join, and tokenrun status does",
    ),

    on("memory", |f| f.has("quorum") && !f.is("maxmemory_policy", "noeviction")).wrong(
        "{memory}: a full server forgets what it has promised, and counts for nothing from then on",
        "CONFIG SET maxmemory-policy noeviction, and in redis.conf; a server that has removed keys must be restarted",
    ),
    on("memory", |f| f.text("maxmemory_policy").starts_with("allkeys")).wrong(
        "{memory}: a full server removes tokens, and then two nodes run the job",
        "CONFIG SET maxmemory-policy noeviction, and in redis.conf",
    ),
    on("memory", |f| f.number("used") >= 100 && f.is("maxmemory_policy", "noeviction")).unavailable(
        "{memory}: the server refuses writes, so nothing is granted and jobs are ended",
        "raise maxmemory, or remove other data",
    ),
    on("memory", |f| f.has("almost_full")).warn(
        "{memory}: a full server refuses heartbeats, and that ends jobs",
        "raise maxmemory, or remove other data",
    ),
    otherwise("memory").fine("{memory}"),

    on("durability", |f| f.is("rdb_last_bgsave_status", "err") || f.is("aof_last_write_status", "err"))
        .unavailable(
            "the server could not write its data to the disk",
            "see its log, and the room on its disk",
        ),
    on("durability", |f| f.has("quorum"))
        .fine("what it forgets when it starts anew the others tell it; if a majority starts anew at once, nothing is granted until every earlier lease is over"),
    on("durability", |f| !f.is("aof_enabled", "1")).warn(
        "appendonly is off: a server that is killed forgets the tokens and history; {later}",
        "set appendonly yes and appendfsync always",
    ),
    on("durability", |f| f.is("appendfsync", "always") && f.is("no-appendfsync-on-rewrite", "yes")).warn(
        "appendfsync always, but not while the file is rewritten (no-appendfsync-on-rewrite)",
        "set no-appendfsync-on-rewrite no",
    ),
    on("durability", |f| f.is("appendfsync", "always"))
        .fine("each write is on the disk; {later}"),
    on("durability", |f| f.has("appendfsync")).warn(
        "appendfsync {appendfsync}: a power cut may take the last writes, keys of --once too; {later}",
        "set appendfsync always",
    ),
    otherwise("durability").unknown(
        "appendonly is on, and this user may not read appendfsync; {later}",
        "see that redis.conf has appendonly yes and appendfsync always",
    ),

    on("replicas", |f| f.has("quorum") && replicas(f) > 0)
        .fine("{connected_slaves} replicas, which count for nothing: one that is promoted joins as a new server"),
    on("replicas", |f| needs_replicas(f) && near(f) < f.number("least")).unavailable(
        "{min_slaves_good_slaves} of {least} replicas are there: the server refuses writes",
        "start the replicas, or see why they lag (min-replicas-to-write, min-replicas-max-lag)",
    ),
    on("replicas", |f| needs_replicas(f) && replicas(f) > 1 && f.text("min-replicas-to-write").is_empty()).unknown(
        "{connected_slaves} replicas, and this user may not read how many of them it needs",
        "see that redis.conf has min-replicas-to-write {connected_slaves}",
    ),
    on("replicas", |f| needs_replicas(f) && f.number("least") < replicas(f)).warn(
        "{least} of {connected_slaves} replicas are enough for writes: when one is promoted, this server goes on \
         with the others, and two nodes run the job",
        ALL,
    ),
    on("replicas", |f| needs_replicas(f) && lags(f)).warn(
        "min-replicas-max-lag is long: when a replica is promoted, this server accepts heartbeats for so long, and \
         two nodes run the job",
        ALL,
    ),
    on("replicas", needs_replicas)
        .fine("{connected_slaves} replicas, without any of which it refuses writes"),
    on("replicas", |f| replicas(f) > 0).warn(
        "{connected_slaves} replicas; when one is promoted, this server goes on accepting the heartbeats of those \
         who still reach it, and two nodes run the job",
        ALL,
    ),

    on("cluster", |f| f.has("cluster_enabled") && !f.has("quorum")).warn(
        "one node of a cluster; its failover may lose grants, and tokenrun follows it only to nodes that the URL \
         names",
        "name the node with tokenrun's keys and its replicas, and set min-replicas-to-write to their number",
    ),

    on("sentinel", |f| f.has("watched") && f.has("quorum")).fine(
        "a Sentinel watches it; a replica that it promotes joins as a new server",
    ),
    on("sentinel", |f| f.has("watched") && needs_replicas(f)).fine(
        "a Sentinel watches it and may promote a replica, which may lack the last grants",
    ),
    on("sentinel", |f| f.has("watched")).warn(
        "a Sentinel watches it and may promote a replica, which may lack the last grants",
        "set min-replicas-to-write to the number of replicas and min-replicas-max-lag 1, and name all servers in \
         the URL",
    ),

    on("primary", |f| f.has("quorum") && f.number("primaries") < f.number("needed")).unavailable(
        "{primaries} of {members} servers can be used: fewer than {needed} grant nothing",
        "start the others",
    ),
    on("primary", |f| f.has("quorum") && f.number("primaries") < f.number("members")).warn(
        "{primaries} of {members} servers can be used, and {needed} are needed",
        "start the others, or see whether two names lead to one server",
    ),
    on("primary", |f| f.has("quorum")).fine("all {members} servers can be used"),
    on("primary", |f| !f.has("primaries"))
        .unavailable("no server that can be reached is a master", "start one, or name it"),
    on("primary", |f| f.is("primaries", "1")).fine("{names} is the only master"),
    otherwise("primary").wrong(
        "{all} accept writes: each can grant the same token",
        "make all but one replicas (REPLICAOF), and set min-replicas-to-write to their number",
    ),
];

pub(super) fn is_master(f: &Facts) -> bool {
    f.is("role", "master")
}

fn replicas(f: &Facts) -> i64 {
    f.number("connected_slaves")
}

/// The replicas that do not lag.
fn near(f: &Facts) -> i64 {
    f.number("min_slaves_good_slaves")
}

/// True if writes need replicas: else the server does not tell how many are near.
fn needs_replicas(f: &Facts) -> bool {
    !f.text("min_slaves_good_slaves").is_empty()
}

/// True if a replica may be silent for so long that heartbeats go on after it was promoted.
fn lags(f: &Facts) -> bool {
    let lag = f.text("min-replicas-max-lag").parse::<u64>();
    lag.is_ok_and(|lag| lag > MOST_LAG)
}

/// The step at which a log-in was refused, and what to do.
pub(super) fn refused(said: &Said) -> (&'static str, &'static str) {
    match said {
        Said::Answer { .. } if !said.is_full() => {
            ("login", said.remedy().unwrap_or("see the server's log"))
        }
        _ => (
            "port",
            said.remedy().unwrap_or(
                "see whether the server runs, listens there, and can be reached from here",
            ),
        ),
    }
}
