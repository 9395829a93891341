//! What the facts about an etcd server mean, and what to do, step by step: the first rule of a step that holds gives
//! its check.

use super::super::fault::Said;
use crate::store::checkup::rules::{Rule, on, otherwise};
use crate::store::net::fault::Said as _;

/// How the shared texts name what is etcd's.
pub(super) const WORDS: [(&str, &str); 4] = [
    ("product", "etcd"),
    ("see", "see"),
    ("socket", ""),
    ("listens", "--listen-client-urls"),
];

pub(super) const RULES: &[Rule] = &[
    on("tls", |f| f.has("secured")).fine("encrypted, and the certificate is good"),
    on("tls", |f| !f.has("loopback")).warn(
        "not encrypted: the password and every token can be read on the network",
        "have the servers listen with TLS, and write etcds://",
    ),

    on("server", |f| {
        let mut parts = f.text("release").split('.').map_while(|part| part.parse::<u32>().ok());
        let release = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        release < (3, 4)
    })
    .wrong("etcd {release}, {place}", "use etcd 3.4 or newer"),
    on("server", |f| !f.has("led")).unavailable(
        "etcd {release}, which knows no leader: nothing can be granted, and holders end",
        "start the other servers of the cluster: a majority must be there (etcdctl endpoint status --cluster)",
    ),
    otherwise("server").fine("etcd {release}, {place}"),

    otherwise("clock").fine("the leader counts the seconds itself: no clock that is set matters"),

    on("quorum", |f| f.is("members", "1")).warn(
        "one server alone: without it nothing is granted",
        "run three servers, so that one of them may fail",
    ),
    on("quorum", |f| f.number("members") % 2 == 0).warn(
        "{members} servers: one more than needed, and no failure more is survived",
        "run three or five",
    ),
    otherwise("quorum").fine("{members} servers, of which a majority must be there"),

    on("alarms", |f| f.text("alarms").contains("NOSPACE")).unavailable(
        "alarm NOSPACE: the database is full, nothing is granted, and every holder ends",
        "compact and defragment it, then etcdctl alarm disarm",
    ),
    on("alarms", |f| f.text("alarms").contains("CORRUPT")).wrong(
        "alarm CORRUPT: the servers' data differ",
        "see etcd's guide on data corruption; then tokenrun distrust",
    ),

    on("space", |f| f.number("megabytes") >= 1_000).warn(
        "the database has {megabytes} MB; by default 2,000 are the most, and then every holder ends",
        "compact and defragment it, or raise --quota-backend-bytes",
    ),
    on("space", |f| f.has("keeps_all")).warn(
        "{megabytes} MB, and old revisions are kept for ever: a holder's heartbeats fill the database in months",
        "start the servers with --auto-compaction-retention 1h",
    ),
    otherwise("space").fine("{megabytes} MB, and old revisions are removed"),

    otherwise("rights").fine("reads and writes of the keys {prefix}/"),

    on("primary", |f| !f.has("primaries"))
        .unavailable("no server that can be reached knows a leader", "start the others"),
    on("primary", |f| f.is("primaries", "1")).fine("all servers are of one cluster"),
    otherwise("primary").wrong(
        "{all} are of different clusters: each can grant the same token",
        "name the servers of one cluster",
    ),
];

/// The step at which a log-in was refused, and what to do.
pub(super) fn refused(said: &Said) -> (&'static str, &'static str) {
    match said {
        Said::Answer { .. } => ("login", said.remedy().unwrap_or("see the server's log")),
        _ => (
            "port",
            "see whether the server runs, listens there, and can be reached from here",
        ),
    }
}
