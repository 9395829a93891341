//! What `doctor` says about a server.

use super::server::Server;
use super::site::Site;

fn checked(site: &Site) -> (i32, serde_json::Value) {
    let ended = site.verb(&["doctor", "--json"]).end();
    (ended.code.unwrap(), ended.json())
}

/// The verdict of a check.
fn verdict(of: &serde_json::Value, step: &str) -> String {
    let checks = of.as_array().unwrap().iter();
    let mut found = checks.filter(|check| check["check"] == step || check["step"] == step);
    let check = found
        .next()
        .unwrap_or_else(|| panic!("{step} is missing: {of}"));
    check["verdict"]
        .as_str()
        .or(check["result"].as_str())
        .unwrap()
        .to_owned()
}

#[test]
fn a_sound_server_is_fine() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    let (code, before) = checked(&site);
    assert_eq!(code, 0, "{before}");
    assert_eq!(database.sql("SHOW TABLES"), "", "doctor makes nothing");
    site.short("a").end().with_code(0);
    let (code, checks) = checked(&site);
    assert_eq!(code, 0, "{checks}");
    for step in [
        "port",
        "login",
        "server",
        "clock",
        "rights",
        "durability",
        "replication",
    ] {
        assert_eq!(verdict(&checks, step), "ok", "{checks}");
    }
}

#[test]
fn what_can_lose_a_grant_is_said() {
    for (configuration, step, expected) in [
        ("innodb_flush_log_at_trx_commit = 2", "durability", "FAIL"),
        ("log_bin\nsync_binlog = 0", "durability", "warn"),
        ("log_bin\nsync_binlog = 1", "replication", "warn"),
        ("sysdate-is-now", "clock", "FAIL"),
        ("read_only = ON", "server", "FAIL"),
    ] {
        let server = Server::start(&[configuration]);
        let site = Site::new(server.database().url());
        let (_, checks) = checked(&site);
        assert_eq!(
            verdict(&checks, step),
            expected,
            "{configuration}: {checks}"
        );
    }
}
