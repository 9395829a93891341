//! tokenrun on a real Redis server: runs, and what happens when the server forgets, hangs, dies,
//! refuses or is promoted.

// clippy.toml allows these in tests, and knows a test by an attribute that the
// helpers lack.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/guide.rs"]
#[allow(dead_code)] // the other programs of tests use the rest
mod blocks;
#[path = "support/certificates.rs"]
mod certificates;
#[path = "postgres/proxy.rs"]
#[allow(dead_code)]
mod proxy;
#[path = "../src/store/redis/test_server.rs"]
#[allow(dead_code)]
mod server;
#[path = "postgres/site.rs"]
#[allow(dead_code)]
mod site;
#[allow(dead_code, unused_imports)]
mod support;

#[path = "redis/clocks.rs"]
mod clocks;
#[path = "redis/doctor.rs"]
mod doctor;
#[path = "redis/failover.rs"]
mod failover;
#[path = "redis/fence.rs"]
mod fence;
#[path = "redis/forgetting.rs"]
mod forgetting;
#[path = "redis/guide.rs"]
mod guide;
#[path = "redis/quorum.rs"]
mod quorum;
#[path = "redis/running.rs"]
mod running;
#[path = "redis/tls.rs"]
mod tls;
#[path = "redis/troubles.rs"]
mod troubles;
#[path = "redis/waiting.rs"]
mod waiting;

use self::server::Server;
use self::site::Site;
use self::support::until;
use support::programs;

/// A store of a test's own on a server, which counts as one that has forgotten nothing.
fn settled(server: &Server, url: &str) -> Site {
    let joint = if url.contains('?') { '&' } else { '?' };
    let site = Site::new(format!("{url}{joint}prefix={}", Server::prefix()));
    settle(server, &site);
    site
}

/// A node of a cluster. The port of the cluster is by default 10,000 above the server's, which may be too
/// high.
fn clustered() -> [&'static str; 2] {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    ["cluster-enabled yes", format!("cluster-port {port}").leak()]
}

/// As an operator who knows that nothing was lost.
fn settle(server: &Server, site: &Site) {
    let mut incarnation = incarnation(server);
    let database = site
        .url
        .split('?')
        .next()
        .and_then(|url| url.rsplit_once('/'));
    if let Some((_, number)) = database.filter(|(_, text)| text.parse::<u32>().is_ok()) {
        incarnation = format!("{incarnation}/{number}");
    }
    site.verb(&["settle", "--yes", &incarnation])
        .end()
        .with_code(0);
}

/// Which incarnation of the store this server is.
fn incarnation(server: &Server) -> String {
    let field = |section: &str, name: &str| {
        let info = server.cli(&["INFO", section]);
        let line = info.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().to_owned()
    };
    let mut name = field("server", "run_id:")[..16].to_owned();
    let received = field("stats", "total_net_repl_input_bytes:");
    let before = field("replication", "master_replid2:");
    if received != "0" || before.contains(|digit| digit != '0') {
        name = format!("{name}-{received}-{}", &before[..8]);
    }
    name
}

/// A key of a site's, as redis-cli shows it.
fn key(site: &Site, name: &str) -> String {
    let prefix = site.url.rsplit_once("prefix=").map(|(_, prefix)| prefix);
    format!("{{{}}}:{name}", prefix.unwrap_or("tokenrun"))
}

/// A field of the group's token.
fn field(server: &Server, site: &Site, name: &str) -> String {
    let token = key(site, &format!("token:{}", site::GROUP));
    server.cli(&["HGET", &token, name])
}

/// Waits until the group's token has this value in a field.
fn until_field(server: &Server, site: &Site, name: &str, value: &str) {
    until(&format!("{name} is {value}"), || {
        let found = field(server, site, name);
        if found == value { Ok(()) } else { Err(found) }
    });
}

/// Waits until the server has been up for so many seconds.
fn until_up_for(server: &Server, seconds: u32) {
    until("it is old enough", || {
        let info = server.cli(&["INFO", "server"]);
        let mut lines = info.lines();
        let up = lines.find_map(|it| it.strip_prefix("uptime_in_seconds:"));
        let up: u32 = up.unwrap().trim().parse().unwrap();
        match up >= seconds {
            true => Ok(()),
            false => Err(up.to_string()),
        }
    });
}

/// A run hands its token over to another, which waits for it.
fn hand_over(server: &Server, site: &Site) {
    let holder = site.run("a").start();
    site.store.until_begun("a");
    let next = site.run("b").with(&["--wait"]).start();
    let list = key(site, "waiters:job");
    server.wait_until("the waiter", || server.cli(&["ZCARD", &list]) == "1");
    site.store.go(0);
    site.store.until_begun("b");
    site.store.go(0);
    holder.end().with_code(0);
    next.end().with_code(0);
}
