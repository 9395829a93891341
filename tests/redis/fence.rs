//! The fence, for resources inside and outside the same server.

use crate::server::Server;
use crate::{field, key, settled};

/// It changes something in the same server only while the run with this fence has the token.
const GUARDED: &str = include_str!("../../examples/redis/fenced-set.lua");

#[test]
fn a_script_in_the_same_server_refuses_a_run_that_has_lost_its_token() {
    let server = Server::shared();
    let site = settled(server, &server.url());
    let first = site.run("a").start();
    site.store.until_begun("a");
    let token = key(&site, "token:job");
    let result = key(&site, "result");
    let old = field(server, &site, "fence");
    let set =
        |fence: &str, to: &str| server.try_cli(&["EVAL", GUARDED, "2", &token, &result, fence, to]);
    assert_eq!(set(&old, "one"), "OK");
    site.store.go(0);
    first.end().with_code(0);
    assert!(set(&old, "two").contains("FENCED"));
    let second = site.run("b").start();
    site.store.until_begun("b");
    assert!(set(&old, "three").contains("FENCED"));
    let new = field(server, &site, "fence");
    assert_eq!(set(&new, "four"), "OK");
    assert_eq!(server.cli(&["GET", &result]), "four");
    site.store.go(0);
    second.end().with_code(0);
}

#[test]
fn a_mark_refuses_a_lower_fence() {
    let server = Server::shared();
    let site = settled(server, &server.url());
    let verify = |fence: &str| {
        let words = ["fence", "advance", "bucket", fence];
        site.verb(&words).end()
    };
    verify("10").with_code(0);
    verify("12").with_code(0);
    verify("11").with_code(76);
    assert_eq!(
        server.cli(&["HGET", &key(&site, "mark:bucket"), "version"]),
        "12"
    );
}
