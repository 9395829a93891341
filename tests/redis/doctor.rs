//! `doctor` on a Redis server.

use serde_json::Value;

use crate::server::Server;
use crate::settled;
use crate::site::{GROUP, Site};

#[track_caller]
fn found(site: &Site, code: i32) -> Vec<Value> {
    let ended = site.verb(&["doctor", "--json", "-g", GROUP]).end();
    ended.with_code(code).json().as_array().unwrap().clone()
}

#[track_caller]
fn says(found: &[Value], step: &str, verdict: &str, words: &[&str]) {
    let check = found.iter().find(|check| check["step"] == step);
    let check = check.unwrap_or_else(|| panic!("no {step}: {found:#?}"));
    assert_eq!(check["verdict"], verdict, "{check:#}");
    for word in words {
        assert!(check.to_string().contains(word), "{word:?}: {check:#}");
    }
}

/// What was found and the remedy, to the letter.
#[track_caller]
fn is(found: &[Value], step: &str, words: &str, remedy: &str) {
    let check = found.iter().find(|check| check["step"] == step);
    let check = check.unwrap_or_else(|| panic!("no {step}: {found:#?}"));
    assert_eq!(check["found"], words, "{check:#}");
    assert_eq!(check["remedy"].as_str().unwrap_or_default(), remedy);
}

#[test]
fn a_server_that_keeps_every_write_is_fine_and_left_as_it_is() {
    let server = Server::start(&["appendonly yes", "appendfsync always"]);
    let site = settled(&server, &server.tcp_url());
    site.short("a").end().with_code(0);
    let before = server.cli(&["DBSIZE"]);
    let all = found(&site, 0);
    let fine = |check: &Value| check["verdict"] == "ok";
    assert!(all.iter().all(fine), "{all:#?}");
    says(&all, "server", "ok", &["a master"]);
    says(&all, "durability", "ok", &["each write is on the disk"]);
    says(&all, "rights", "ok", &[]);
    is(&all, "name", "127.0.0.1 is an address", "");
    let port = format!("connected to 127.0.0.1:{}", server.port());
    is(&all, "port", &port, "");
    is(&all, "login", "as default to database 0", "");
    let (_, prefix) = site.url.split_once("prefix=").unwrap();
    let keys = format!("all commands on the keys {{{prefix}}}:*");
    is(&all, "rights", &keys, "");
    says(&all, "group", "ok", &["free"]);
    assert_eq!(server.cli(&["DBSIZE"]), before);
}

#[test]
fn what_loses_tokens_is_found() {
    let server = Server::start(&[]);
    let site = settled(&server, &server.url());
    site.short("a").end().with_code(0);
    says(&found(&site, 0), "durability", "warn", &["appendonly"]);
    server.cli(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    says(&found(&site, 78), "memory", "FAIL", &["removes tokens"]);
    server.cli(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    server.cli(&["CONFIG", "SET", "appendonly", "yes"]);
    says(&found(&site, 0), "durability", "warn", &["everysec"]);
}

#[test]
fn replicas_without_which_the_master_goes_on_are_found() {
    let master = Server::start(&[]);
    let replica = Server::start(&[]);
    replica.follow(&master);
    let site = settled(&master, &master.tcp_url());
    site.short("a").end().with_code(0);
    let words = ["min-replicas-to-write 1"];
    says(&found(&site, 0), "replicas", "warn", &words);
    master.cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    master.until_a_replica_is_near();
    says(&found(&site, 0), "replicas", "ok", &[]);
    master.cli(&["CONFIG", "SET", "min-replicas-max-lag", "11"]);
    says(&found(&site, 0), "replicas", "warn", &["max-lag"]);
    // One of two may stay with this master when the other is promoted.
    let second = Server::start(&[]);
    second.follow(&master);
    let words = ["1 of 2", "min-replicas-to-write 2"];
    says(&found(&site, 0), "replicas", "warn", &words);
    second.kill();
    master.wait_until("one replica", || {
        let info = master.cli(&["INFO", "replication"]);
        info.contains("connected_slaves:1")
    });
    master.cli(&["CONFIG", "SET", "min-replicas-to-write", "2"]);
    let refuses = ["1 of 2 replicas", "refuses writes"];
    says(&found(&site, 69), "replicas", "FAIL", &refuses);
    site.short("a").end().with_code(69).says(&["NOREPLICAS"]);
    master.cli(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    let alone = Site::new(replica.tcp_url());
    says(&found(&alone, 69), "server", "FAIL", &["a replica of"]);
    replica.promote();
    let both = format!(
        "redis://127.0.0.1:{},127.0.0.1:{}",
        master.port(),
        replica.port()
    );
    says(
        &found(&Site::new(both), 78),
        "primary",
        "FAIL",
        &["accept writes"],
    );
}

/// Each makes every run end with this code.
#[test]
fn what_refuses_every_run_fails() {
    let server = Server::start(&[]);
    let site = settled(&server, &server.url());
    let words = "ACL SETUSER etl reset on >pw ~* &* +@all -time";
    server.cli(&words.split(' ').collect::<Vec<_>>());
    let etl = Site::new(server.tcp_url().replace("://", "://etl:pw@"));
    says(&found(&etl, 77), "rights", "FAIL", &["TIME"]);
    // Without a password, it is that user all the same.
    let open = Site::new(server.tcp_url().replace("://", "://etl@"));
    says(&found(&open, 77), "login", "FAIL", &["WRONGPASS"]);
    open.short("a").end().with_code(77).says(&["WRONGPASS"]);
    server.cli(&[
        "ACL", "SETUSER", "free", "on", "nopass", "~*", "&*", "+@all",
    ]);
    let free = Site::new(server.tcp_url().replace("://", "://free@"));
    says(&found(&free, 0), "login", "ok", &["as free"]);
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    says(&found(&site, 69), "memory", "FAIL", &["refuses writes"]);
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    let note = server.cli(&["KEYS", "*:incarnation"]);
    server.cli(&["DEL", note.trim()]);
    server.cli(&["SET", note.trim(), "mine"]);
    says(&found(&site, 78), "group", "FAIL", &["WRONGTYPE"]);
    let any = site.verb(&["doctor"]).end().with_code(78);
    assert!(any.stdout.contains("FAIL  read"), "{any:?}");
}

#[test]
fn two_names_of_one_server_are_one() {
    let server = Server::start(&[]);
    let port = server.port();
    let twice = format!("redis://127.0.0.1:{port},localhost:{port}");
    let site = settled(&server, &twice);
    let all = found(&site, 0);
    says(&all, "primary", "ok", &["the only master"]);
    // The fence rises after a failover if the clocks are close to each other.
    says(&all, "clocks", "ok", &["localhost", "127.0.0.1"]);
}

#[test]
fn a_missing_right_a_wrong_password_and_a_server_that_is_gone_are_found() {
    let server = Server::start(&[]);
    let words = "ACL SETUSER etl reset on >pw ~{tokenrun}:* &{tokenrun}:* +@all -hset -config";
    server.cli(&words.split(' ').collect::<Vec<_>>());
    let site = Site::new(server.tcp_url().replace("://", "://etl:pw@"));
    says(
        &found(&site, 77),
        "rights",
        "FAIL",
        &["HSET", "ACL SETUSER"],
    );
    is(
        &found(&site, 77),
        "rights",
        "no right to HSET",
        "ACL SETUSER … ~{tokenrun}:* &{tokenrun}:* and the commands of tokenrun",
    );
    let wrong = Site::new(server.tcp_url().replace("://", "://etl:no@"));
    let all = found(&wrong, 77);
    says(&all, "login", "FAIL", &["WRONGPASS"]);
    server.kill();
    says(&found(&site, 69), "port", "FAIL", &["refused"]);
}

#[test]
fn a_node_of_a_cluster_is_found() {
    let server = Server::start(&crate::clustered());
    server.cli(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    server.wait_until("the slots", || {
        server
            .cli(&["CLUSTER", "INFO"])
            .contains("cluster_state:ok")
    });
    let site = Site::new(server.tcp_url());
    site.short("a").hasty().end().with_code(0);
    let words = ["one node of a cluster", "min-replicas-to-write"];
    says(&found(&site, 0), "cluster", "warn", &words);
    server.cli(&["CLUSTER", "DELSLOTSRANGE", "0", "16383"]);
    server.wait_until("no slots", || {
        server
            .cli(&["CLUSTER", "INFO"])
            .contains("cluster_state:fail")
    });
    let words = ["CLUSTERDOWN", "CLUSTER INFO"];
    says(&found(&site, 69), "rights", "FAIL", &words);
}

#[test]
fn a_server_that_runs_no_scripts_is_found() {
    let server = Server::start(&["rename-command EVAL run-a-script"]);
    let site = Site::new(server.url());
    let words = ["unknown command", "rename-command"];
    says(&found(&site, 78), "rights", "FAIL", &words);
    site.short("a").end().with_code(78).says(&words);
}
