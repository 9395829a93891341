//! What `doctor` says about a server.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use serde_json::Value;

use super::server::{Database, Kind, Server};
use super::site::Site;
use crate::support::until;

/// The provider of Galera, where Debian has it.
const GALERA: &str = "/usr/lib/galera/libgalera_smm.so";

fn checked(site: &Site) -> (i32, Value) {
    let ended = site.verb(&["doctor", "--json"]).end();
    (ended.code.unwrap(), ended.json())
}

/// A check, if it was made.
fn check<'a>(of: &'a Value, step: &str) -> Option<&'a Value> {
    let mut checks = of.as_array().unwrap().iter();
    checks.find(|check| check["check"] == step || check["step"] == step)
}

/// The verdict of a check.
#[track_caller]
fn verdict(of: &Value, step: &str) -> String {
    let check = check(of, step).unwrap_or_else(|| panic!("{step} is missing: {of}"));
    let verdict = check["verdict"].as_str().or(check["result"].as_str());
    verdict.unwrap().to_owned()
}

/// What a check found, and that it says what to do.
#[track_caller]
fn warned(of: &Value, step: &str, found: &str) {
    assert_eq!(verdict(of, step), "warn", "{of}");
    let check = check(of, step).unwrap();
    assert!(check["found"].as_str().unwrap().contains(found), "{check}");
    assert!(!check["remedy"].as_str().unwrap().is_empty(), "{check}");
}

/// What was found and the remedy, to the letter.
#[track_caller]
fn is(of: &Value, step: &str, found: &str, remedy: &str) {
    let check = check(of, step).unwrap_or_else(|| panic!("{step} is missing: {of}"));
    assert_eq!(check["found"], found, "{check:#}");
    assert_eq!(check["remedy"].as_str().unwrap_or_default(), remedy);
}

fn is_sound(database: &Database<'_>) {
    let site = Site::new(database.url());
    let (code, before) = checked(&site);
    assert_eq!(code, 0, "{before}");
    assert_eq!(database.sql("SHOW TABLES"), "", "doctor makes nothing");
    let name = &database.name;
    is(&before, "login", &format!("as root to {name}"), "");
    let tls = "a Unix socket, which no other host can read";
    is(&before, "tls", tls, "");
    is(
        &before,
        "rights",
        &format!("the database \"{name}\" has no tables of tokenrun's yet"),
        "nothing, if its user may make them: the first run does (or tokenrun init, now); else have an \
         administrator run what tokenrun init --print-sql prints",
    );
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
        "stamps",
    ] {
        assert_eq!(verdict(&checks, step), "ok", "{checks}");
    }
    is(
        &checks,
        "rights",
        "the user has all that tokenrun needs",
        "",
    );
    is(
        &checks,
        "stamps",
        "none in the tokens lies in the future",
        "",
    );
    assert!(check(&checks, "proxy").is_none(), "{checks}");
    assert!(check(&checks, "cluster").is_none(), "{checks}");
}

#[test]
fn a_sound_server_is_fine() {
    is_sound(&Server::shared().database());
}

#[test]
fn needs_root_mysql_a_sound_server_is_fine() {
    let server = Server::start_of(Kind::Mysql, &["skip-log-bin"]);
    is_sound(&server.database());
}

#[test]
fn what_can_lose_a_grant_is_said() {
    for (configuration, step, expected) in [
        ("innodb_flush_log_at_trx_commit = 2", "durability", "FAIL"),
        ("innodb_flush_method = nosync", "durability", "FAIL"),
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
        match step {
            "clock" => is(
                &checks,
                step,
                "the server gives statements the time of their start (sysdate-is-now): a swap that waited \
                 would not notice that it is late",
                "start the server without sysdate-is-now",
            ),
            "server" => is(
                &checks,
                step,
                "read_only is on, and no token can be written here",
                "name the server that accepts writes, or all servers that may become it \
                 (mysql://user@db1,db2/database)",
            ),
            _ => {}
        }
    }
}

/// Whether a restart of the server certainly loses nothing, as the tables were made.
fn durable_then(database: &Database<'_>) -> String {
    database.sql("SELECT JSON_EXTRACT(note, '$.durable_then') FROM tokenrun_meta")
}

/// What doctor says about durability counts for what a restart may have forgotten, too.
#[test]
fn a_restart_is_trusted_only_where_commits_are_on_the_disk() {
    for (configuration, durable) in [
        ("", "true"),
        ("innodb_flush_method = nosync", "false"),
        ("innodb_flush_log_at_trx_commit = 2", "false"),
        ("log_bin\nsync_binlog = 1", "false"),
    ] {
        let server = Server::start(&[configuration]);
        let database = server.database();
        let site = Site::new(database.url());
        site.short("a").end().with_code(0);
        assert_eq!(durable_then(&database), durable, "{configuration}");
        // The one that a later look writes, in another clock epoch.
        server.stop(nix::sys::signal::Signal::SIGTERM);
        server.run();
        database.sql("UPDATE tokenrun_meta SET note = JSON_SET(note, '$.epoch', 'x')");
        // It does not wait: where a restart can have lost something, it would observe.
        let looked = site.short("a").start();
        until("the note is of the new clock epoch", || {
            let note = database.sql("SELECT note FROM tokenrun_meta");
            match note.contains("\"epoch\": \"x\"") {
                true => Err(note),
                false => Ok(()),
            }
        });
        looked.signal(nix::sys::signal::Signal::SIGKILL);
        let looked = looked.end();
        assert_eq!(
            durable_then(&database),
            durable,
            "{configuration}: {looked:?}"
        );
    }
}

/// The user who made the procedures has left, or has lost the rights.
#[test]
fn a_fence_that_no_job_can_call_is_told() {
    let database = Server::shared().database();
    let name = &database.name;
    let maker = format!("maker_{name}");
    database.sql(&format!(
        "CREATE USER {maker}; GRANT ALL ON {name}.* TO {maker}"
    ));
    let url = database.url();
    let site = Site::new(url.replace("root@", &format!("{maker}@")));
    site.short("a").end().with_code(0);
    let site = Site::new(url);
    assert!(check(&checked(&site).1, "fence").is_none());
    database.sql(&format!("REVOKE SELECT ON {name}.* FROM {maker}"));
    warned(&checked(&site).1, "fence", "can't call tokenrun_fence");
    database.sql(&format!("DROP USER {maker}"));
    let checks = checked(&site).1;
    warned(&checks, "fence", "does not exist");
    let remedy = check(&checks, "fence").unwrap()["remedy"].clone();
    assert_eq!(
        remedy,
        "have an administrator who stays make the procedures again: run what tokenrun init --print-sql \
         prints, and GRANT EXECUTE on tokenrun_fence again"
    );
}

#[test]
fn a_stamp_of_the_future_is_said() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    site.short("a").end().with_code(0);
    database.sql("UPDATE tokenrun_tokens SET stamped_at = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR");
    warned(&checked(&site).1, "stamps", "in the future");
}

#[test]
fn an_asynchronous_replica_is_seen() {
    let log = ["log_bin", "sync_binlog = 1", "server_id = 1"];
    let primary = Server::start(&log);
    let replica = Server::start(&["server_id = 2"]);
    let database = primary.database();
    let site = Site::new(database.url());
    warned(
        &checked(&site).1,
        "replication",
        "a binary log; replication is asynchronous",
    );
    replica.sql(
        "mysql",
        &format!(
            "CHANGE MASTER TO master_host = '127.0.0.1', master_port = {}, master_user = 'root';
             START SLAVE",
            primary.port()
        ),
    );
    until("the replica is connected", || {
        let connected = database.sql("SHOW STATUS LIKE 'Slaves_connected'");
        match connected.ends_with('1') {
            true => Ok(()),
            false => Err(connected),
        }
    });
    let found = "a replica that is connected; replication is asynchronous";
    warned(&checked(&site).1, "replication", found);
}

/// A free port, and one that stays free beside it.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A run works on a node of a cluster, and the limit is said.
#[test]
fn a_node_of_galera_is_told_by_doctor() {
    assert!(
        Path::new(GALERA).exists(),
        "{GALERA} is missing: install galera-4 (tests/run-all does)"
    );
    let (group, incremental) = (free_port(), free_port());
    let server = Server::start(&[
        "wsrep_on = ON",
        &format!("wsrep_provider = {GALERA}"),
        "wsrep_cluster_address = gcomm://",
        "wsrep_node_address = 127.0.0.1",
        &format!(
            "wsrep_provider_options = \"gmcast.listen_addr=tcp://127.0.0.1:{group};ist.recv_addr=127.0.0.1:{incremental}\""
        ),
        "binlog_format = ROW",
        "innodb_autoinc_lock_mode = 2",
    ]);
    let database = server.database();
    let site = Site::new(database.url());
    super::odd_settings::works(&site);
    warned(&checked(&site).1, "cluster", "Galera, with one node");
    assert_eq!(durable_then(&database), "false", "another node goes on");
    // Nodes of a cluster do not follow a binary log.
    assert!(check(&checked(&site).1, "replication").is_none());
}

#[test]
fn needs_root_mysql_several_primaries_are_told_by_doctor() {
    let port = free_port();
    let server = Server::start_of(
        Kind::Mysql,
        &[
            "server_id = 1",
            "gtid_mode = ON",
            "enforce_gtid_consistency = ON",
            "plugin_load_add = group_replication.so",
            "loose_group_replication_group_name = aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa",
            &format!("loose_group_replication_local_address = 127.0.0.1:{port}"),
            "loose_group_replication_bootstrap_group = ON",
            "loose_group_replication_start_on_boot = OFF",
            "loose_group_replication_single_primary_mode = OFF",
            "loose_group_replication_enforce_update_everywhere_checks = ON",
        ],
    );
    let database = server.database();
    database.sql("START GROUP_REPLICATION");
    let site = Site::new(database.url());
    super::odd_settings::works(&site);
    let found = "Group Replication with several primaries";
    warned(&checked(&site).1, "cluster", found);
}

/// Passes one connection on, and names another session in the login than the server.
fn pass_on(mut client: TcpStream, port: u16) {
    let mut server = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut head = [0; 4];
    server.read_exact(&mut head).unwrap();
    let length = u32::from_le_bytes([head[0], head[1], head[2], 0]);
    let mut hello = vec![0; usize::try_from(length).unwrap()];
    server.read_exact(&mut hello).unwrap();
    let version_ends = hello.iter().position(|byte| *byte == 0).unwrap();
    hello[version_ends + 1] ^= 0x40;
    client.write_all(&head).unwrap();
    client.write_all(&hello).unwrap();
    let mut from_client = client.try_clone().unwrap();
    let mut to_server = server.try_clone().unwrap();
    std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
    std::thread::spawn(move || std::io::copy(&mut server, &mut client));
}

#[test]
fn a_proxy_that_speaks_the_protocol_is_seen() {
    let server = Server::shared();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (own, port) = (listener.local_addr().unwrap().port(), server.port());
    std::thread::spawn(move || {
        for client in listener.incoming() {
            pass_on(client.unwrap(), port);
        }
    });
    let database = server.database();
    let direct = Site::new(database.tcp_url());
    assert!(check(&checked(&direct).1, "proxy").is_none());
    let url = database
        .tcp_url()
        .replace(&format!(":{port}/"), &format!(":{own}/"));
    let checks = checked(&Site::new(url)).1;
    warned(&checks, "proxy", "a proxy answers");
    let remedy = check(&checks, "proxy").unwrap()["remedy"].clone();
    assert_eq!(
        remedy,
        "let the proxy send all statements of tokenrun's user to the server that accepts writes, reads too, \
         and keep each session on one connection (ProxySQL: transaction_persistent, no rules for SELECT); or \
         name the servers themselves in the store"
    );
    let found = format!("connected to 127.0.0.1:{own}");
    is(&checks, "port", &found, "");
    is(&checks, "name", "127.0.0.1 is an address", "");
    is(
        &checks,
        "tls",
        "the connection does not leave this host",
        "",
    );
}
