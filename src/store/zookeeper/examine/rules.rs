//! What the facts about a ZooKeeper server mean, and what to do, step by step: the first rule of a step that holds gives
//! its check.

use super::super::fault::Said;
use crate::store::checkup::rules::{Rule, on, otherwise};
use crate::store::net::fault::Said as _;

/// How the shared texts name what is ZooKeeper's.
pub(super) const WORDS: [(&str, &str); 4] = [
    ("product", "ZooKeeper"),
    ("see", "see"),
    ("socket", ""),
    ("listens", "clientPort and clientPortAddress"),
];

pub(super) const RULES: &[Rule] = &[
    on("tls", |f| f.has("secured")).fine("encrypted, and the certificate is good"),
    on("tls", |f| !f.has("loopback")).warn(
        "not encrypted: the password and every token can be read on the network",
        "have the servers listen with TLS (secureClientPort), and write zks://",
    ),

    otherwise("server").fine("ZooKeeper {release}, {place}"),

    on("quorum", |f| f.is("place", "standalone")).warn(
        "one server alone: without it nothing is granted",
        "run three servers, so that one of them may fail",
    ),
    on("quorum", |f| f.number("members") == 0).fine("its number of servers is not told"),
    on("quorum", |f| f.number("members") % 2 == 0).warn(
        "{members} servers: one more than needed, and no failure more is survived",
        "run three or five",
    ),
    otherwise("quorum").fine("{members} servers, of which a majority must be there"),

    on("rights", |f| f.has("open")).warn(
        "any client that reaches the servers can change the nodes under {path}",
        "write a user with its password into the URL before the first run: its nodes are its own then",
    ),
    otherwise("rights").fine("the nodes under {path} are this user's own"),

    on("primary", |f| !f.has("primaries"))
        .unavailable("no server that can be reached knows a leader", "start the others"),
    on("primary", |f| f.is("primaries", "1")).fine("all servers are of one ensemble"),
    otherwise("primary").wrong(
        "{all} are of different ensembles: each can grant the same token",
        "name the servers of one ensemble",
    ),
];

/// The step at which a log-in was refused, and what to do.
pub(super) fn refused(said: &Said) -> (&'static str, &'static str) {
    match said {
        Said::Failed { .. } => ("login", said.remedy().unwrap_or("see the server's log")),
        Said::NoSession => (
            "login",
            "start the other servers of the ensemble: a majority must be there",
        ),
        _ => (
            "port",
            "see whether the server runs, listens there, and can be reached from here",
        ),
    }
}
