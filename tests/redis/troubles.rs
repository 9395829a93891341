//! Servers that refuse or do not answer: a clear line, the right exit code, and jobs that end in
//! time.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use nix::sys::signal::Signal;

use crate::server::Server;
use crate::site::Site;
use crate::support::{signal, until};
use crate::{hand_over, incarnation, key, settled};

#[test]
fn a_server_that_does_not_answer_ends_the_run_in_time_and_others_do_not_wait_for_it() {
    let server = Server::start(&[]);
    let site = settled(&server, &server.url());
    let holder = site.run("a").hasty().start();
    site.store.until_begun("a");
    server.freeze();
    let refused = Site::new(site.url.clone());
    let refused = refused.short("b").hasty().end().with_code(69);
    refused.says(&["no answer within 1s"]);
    holder.end().with_code(76);
    site.store.until_job_gone();
    server.thaw();
    // What was sent meanwhile arrives now, and has expired.
    site.short("a").hasty().with(&["--wait"]).end().with_code(0);
}

#[test]
fn a_short_freeze_is_outlasted() {
    let server = Server::start(&[]);
    let site = settled(&server, &server.tcp_url());
    let holder = site.run("a").hasty().start();
    site.store.until_begun("a");
    server.freeze();
    holder.until_says("no answer within");
    server.thaw();
    holder.until_says("again");
    site.store.go(0);
    holder.end().with_code(0);
}

/// Process 1 loses a signal that it does not expect.
#[test]
fn a_stop_of_process_1_during_its_first_look_is_not_lost() {
    let server = Server::start(&[]);
    let site = settled(&server, &server.url());
    server.freeze();
    let run = site.short("a").with_pid_1().start();
    let supervisor = run.guard();
    until("it looks", || {
        let fds = fs::read_dir(format!("/proc/{supervisor}/fd")).map_err(|it| it.to_string())?;
        let targets = fds.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
        let mut names = targets.map(|it| it.display().to_string());
        let is_connected = names.any(|it| it.starts_with("socket:"));
        is_connected.then_some(()).ok_or_else(|| run.stderr())
    });
    signal(supervisor, Signal::SIGTERM);
    server.thaw();
    run.end().with_code(143);
}

/// The name of the host is looked up on a thread, so that the first look is made there too.
#[test]
fn a_session_that_leaked_is_no_way_in_after_a_later_look() {
    let server = Server::shared();
    let site = settled(server, &server.tcp_url().replace("127.0.0.1", "localhost"));
    let first = site.run("a").start();
    site.store.until_begun("a");
    let status = site.verb(&["status", "--json"]).end().with_code(0).json();
    let session = status[0]["session"].as_str().unwrap().to_owned();
    let leaked = site.run("a").job(&["touch", "ran"]);
    let leaked = leaked.env("TOKENRUN_SESSION", session).end().with_code(75);
    leaked.says(&["is held by a, in an earlier run"]);
    assert!(!site.file("ran").exists());
    site.store.go(0);
    first.end().with_code(0);
}

#[test]
fn a_server_that_is_not_there_is_said() {
    let server = Server::start(&[]);
    let site = Site::new(server.tcp_url());
    server.kill();
    let gone = site.short("a").end().with_code(69);
    gone.says(&["Connection refused"]);
    let nowhere = Site::new("redis+unix:///nowhere/at/all");
    let nowhere = nowhere.short("a").end().with_code(69);
    nowhere.says(&["No such file or directory"]);
}

#[test]
fn a_password_is_needed_or_wrong_and_is_never_shown() {
    let server = Server::start(&["requirepass secret-1"]);
    let without = Site::new(server.url());
    without.short("a").end().with_code(77).says(&["NOAUTH"]);
    let place = server.url().replace("://", "://:secret-2@");
    let wrong = Site::new(place).short("a").end().with_code(77);
    wrong.tells(&["WRONGPASS", "REDISCLI_AUTH"]);
    assert!(!wrong.stderr.contains("secret"), "{wrong:?}");
    let right = Site::new(server.url().replace("://", "://:secret-1@"));
    let run = right.short("a").hasty().end().with_code(0);
    assert!(!run.stderr.contains("secret"), "{run:?}");
    let of_variable = without.verb(&["status"]).env("REDISCLI_AUTH", "secret-1");
    of_variable.end().with_code(0);
    let of_valkey = without.verb(&["status"]).env("VALKEYCLI_AUTH", "secret-1");
    of_valkey.end().with_code(0);
}

/// The least rights, as the guide has them.
pub(crate) const RIGHTS: [&str; 22] = [
    "resetkeys",
    "~{tokenrun}:*",
    "resetchannels",
    "&{tokenrun}:*",
    "-@all",
    "+eval",
    "+info",
    "+time",
    "+hget",
    "+hgetall",
    "+hset",
    "+exists",
    "+del",
    "+incr",
    "+zadd",
    "+zrem",
    "+zrange",
    "+zcard",
    "+publish",
    "+subscribe",
    "+select",
    "+client|setname",
];

fn with_user(server: &Server, without: Option<&str>) -> Site {
    let rights = RIGHTS.iter().filter(|right| Some(**right) != without);
    let words = ["ACL", "SETUSER", "etl", "reset", "on", ">pw"];
    let words: Vec<&str> = words.into_iter().chain(rights.copied()).collect();
    assert_eq!(server.cli(&words), "OK");
    Site::new(server.tcp_url().replace("://", "://etl:pw@"))
}

#[test]
fn a_user_with_the_least_rights_runs_waits_and_keeps_records() {
    let server = Server::start(&[]);
    let site = with_user(&server, None);
    let settled = site.verb(&["settle", "--yes", &incarnation(&server)]).end();
    settled.with_code(0);
    let holder = site.run("a").with(&["--capture"]).start();
    site.store.until_begun("a");
    site.short("c").end().with_code(75);
    let next = site.run("b").with(&["--wait"]).start();
    let list = key(&site, "waiters:job");
    server.wait_until("the waiter", || server.cli(&["ZCARD", &list]) == "1");
    site.verb(&["pause", "--group=job"]).end().with_code(0);
    site.verb(&["resume", "--group=job"]).end().with_code(0);
    site.store.go(0);
    site.store.until_begun("b");
    site.store.go(0);
    holder.end().with_code(0);
    next.end().with_code(0);
    for verb in [&["status"][..], &["history"], &["doctor"]] {
        site.verb(verb).end().with_code(0);
    }
}

#[test]
fn a_user_without_a_right_is_told_which_and_nothing_is_half_done() {
    let server = Server::start(&[]);
    let whole = with_user(&server, None);
    whole
        .verb(&["settle", "--yes", &incarnation(&server)])
        .end()
        .with_code(0);
    whole.short("a").end().with_code(0);
    let before = server.cli(&["HGETALL", &key(&whole, "token:job")]);
    for right in ["+eval", "+info", "+hget", "+hset", "~{tokenrun}:*"] {
        let site = with_user(&server, Some(right));
        let refused = site.short("a").end().with_code(77);
        refused.tells(&["ACL SETUSER"]);
        let after = server.cli(&["HGETALL", &key(&whole, "token:job")]);
        assert_eq!(after, before, "without {right}");
    }
}

/// Waiters also look without a message.
#[test]
fn a_user_without_a_right_to_the_channel_records_its_run() {
    let server = Server::start(&[]);
    let site = with_user(&server, Some("&{tokenrun}:*"));
    let settled = site.verb(&["settle", "--yes", &incarnation(&server)]).end();
    settled.with_code(0);
    hand_over(&server, &site);
}

/// The test takes the right to write from the server's own directory.
#[test]
fn a_server_that_cannot_write_its_data_refuses_and_ends_the_run_in_time() {
    let server = Server::start(&["save 3600 1000000", "stop-writes-on-bgsave-error yes"]);
    let site = settled(&server, &server.url());
    let holder = site.run("a").hasty().start();
    site.store.until_begun("a");
    let closed = fs::Permissions::from_mode(0o555);
    fs::set_permissions(server.folder(), closed).unwrap();
    server.wait_until("a failed save", || {
        let _ = server.try_cli(&["BGSAVE"]);
        server
            .cli(&["INFO", "persistence"])
            .contains("rdb_last_bgsave_status:err")
    });
    let other = Site::new(site.url.clone());
    // It reads, and can't keep the refusal on record.
    other.short("b").hasty().end().with_code(75);
    let elsewhere = other.in_group("other", "b").job(&["true"]).hasty().end();
    elsewhere.with_code(69).says(&["MISCONF"]);
    holder.end().with_code(76).tells(&["MISCONF"]);
}

#[test]
fn a_server_whose_memory_is_full_refuses_and_ends_the_run_in_time() {
    let server = Server::start(&[]);
    let site = settled(&server, &server.url());
    let holder = site.run("a").hasty().start();
    site.store.until_begun("a");
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let other = site.in_group("other", "b").job(&["true"]).hasty().end();
    other.with_code(69).says(&["OOM"]);
    holder.end().with_code(76).tells(&["OOM"]);
}

/// It has removed keys of others, and may remove tokens.
#[test]
fn a_server_that_evicts_keys_is_refused() {
    let server = Server::start(&["maxmemory-policy allkeys-random"]);
    let site = settled(&server, &server.url());
    let holder = site.run("a").hasty().start();
    site.store.until_begun("a");
    server.cli(&["DEBUG", "POPULATE", "20000", "other", "500"]);
    server.cli(&["CONFIG", "SET", "maxmemory", "8mb"]);
    server.wait_until("evictions", || {
        let stats = server.cli(&["INFO", "stats"]);
        stats.contains("evicted_keys:") && !stats.contains("evicted_keys:0")
    });
    let refused = site.in_group("other", "b").job(&["true"]).hasty().end();
    let says = ["allkeys-random", "noeviction", "tokenrun distrust"];
    refused.with_code(78).says(&says);
    // It is not known any more whether a token was removed.
    server.cli(&["CONFIG", "RESETSTAT"]);
    let again = site.in_group("other", "b").job(&["true"]).hasty().end();
    again.with_code(78).says(&says);
    // Keys with a time limit alone: none of tokenrun's has one.
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    server.cli(&["CONFIG", "SET", "maxmemory-policy", "volatile-lru"]);
    let other = site.in_group("third", "b").job(&["true"]).hasty();
    other.with(&["--wait"]).end().with_code(0);
    site.store.go(0);
    let _ = holder.end();
}

/// A server that has removed keys of others and, as this test has it, the token.
#[test]
fn no_waiter_takes_an_evicted_token() {
    const LONG: [&str; 4] = [
        "--takeover-after=60s",
        "--heartbeat=1s",
        "--kill-grace=1s",
        "--store-timeout=1s",
    ];
    let server = Server::start(&["maxmemory-policy volatile-random"]);
    let site = settled(&server, &server.url());
    let other = Site::new(site.url.clone());
    server.cli(&["SET", "other", "1", "EX", "1000"]);
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    server.wait_until("an eviction", || {
        server.cli(&["INFO", "stats"]).contains("evicted_keys:1")
    });
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    let holder = site.run("a").with(&LONG).start();
    site.store.until_begun("a");
    let waiter = other.run("b").with(&LONG).with(&["--wait"]).start();
    let list = key(&site, "waiters:job");
    server.wait_until("the waiter", || server.cli(&["ZCARD", &list]) == "1");
    server.cli(&["CONFIG", "SET", "maxmemory-policy", "allkeys-random"]);
    server.cli(&["DEL", &key(&site, "token:job")]);
    let begun = std::time::Instant::now();
    waiter.end().with_code(78).tells(&["noeviction"]);
    assert!(!other.file("log").exists(), "no job of the waiter's");
    holder.end().with_code(76);
    site.store.until_job_gone();
    let took = begun.elapsed();
    assert!(took < std::time::Duration::from_secs(20), "{took:?}");
}

#[test]
fn a_server_that_is_loading_is_said() {
    let server = Server::start(&[
        "key-load-delay 100000",
        "loading-process-events-interval-bytes 1024",
    ]);
    let site = settled(&server, &server.url());
    server.cli(&["DEBUG", "POPULATE", "1000", "key", "100"]);
    server.cli(&["SAVE"]);
    server.kill();
    server.launch_without_waiting();
    server.wait_until("it loads", || {
        server.try_cli(&["PING"]).starts_with("LOADING")
    });
    site.short("a").end().with_code(69).says(&["LOADING"]);
}

#[test]
fn a_cluster_without_its_slots_is_said() {
    let server = Server::start(&crate::clustered());
    let site = Site::new(server.url());
    site.short("a").end().with_code(69).says(&["CLUSTERDOWN"]);
    // With the one that tokenrun's keys are in, it is a store.
    let slot = server.cli(&["CLUSTER", "KEYSLOT", "{tokenrun}:tokens"]);
    server.cli(&["CLUSTER", "ADDSLOTS", &slot]);
    server.cli(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
    server.wait_until("the slot", || {
        !server
            .try_cli(&["HGET", "{tokenrun}:incarnation", "x"])
            .contains("CLUSTERDOWN")
    });
    site.short("a").hasty().end().with_code(0);
}

#[test]
fn a_key_of_another_program_is_said() {
    let server = Server::shared();
    let site = settled(server, &server.url());
    server.cli(&["SET", &key(&site, "token:job"), "mine"]);
    let refused = site.short("a").end().with_code(78);
    refused.says(&["WRONGTYPE", "another program uses a key of tokenrun's"]);
}

/// A success whose key is not stored would be run again.
#[test]
fn a_success_whose_key_can_not_be_stored_is_not_reported_as_one() {
    let server = Server::shared();
    let site = settled(server, &server.url());
    server.cli(&["SET", &key(&site, "keys:job"), "mine"]);
    let run = site.short("a").hasty().with(&["--once=night"]);
    run.end().with_code(74).tells(&["WRONGTYPE"]);
    server.cli(&["DEL", &key(&site, "keys:job")]);
    // The job runs once more, and its key is done then.
    let run = site.short("a").hasty().with(&["--once=night"]);
    run.end().with_code(0);
    let listed = site.verb(&["once", "list"]).end().with_code(0);
    assert!(listed.stdout.contains("night"), "{listed:?}");
}

/// `status` and `pause --all` find tokens by it.
#[test]
fn a_list_of_tokens_that_was_removed_comes_back_with_the_next_run() {
    let server = Server::shared();
    let site = settled(server, &server.url());
    site.short("a").end().with_code(0);
    let tokens = key(&site, "tokens");
    server.cli(&["DEL", &tokens]);
    site.short("a").end().with_code(0);
    assert_eq!(server.cli(&["ZRANGE", &tokens, "0", "-1"]), "token:job");
}

#[test]
fn a_server_with_too_many_clients_is_said() {
    let server = Server::start(&["maxclients 1"]);
    let _only = std::os::unix::net::UnixStream::connect(server.socket()).unwrap();
    server.wait_until("a client in the only place", || {
        server.try_cli(&["PING"]).contains("max number of clients")
    });
    for url in [server.url(), server.tcp_url()] {
        let site = Site::new(url);
        let refused = site.short("a").end().with_code(69);
        refused.tells(&["max number of clients", "raise maxclients"]);
        let doctor = site.verb(&["doctor"]).end();
        assert!(doctor.stdout.contains("raise maxclients"), "{doctor:?}");
    }
}

/// The act or the run could not be recorded: then it did not happen.
#[test]
fn an_act_that_can_not_be_recorded_leaves_the_token_as_it_was() {
    let server = Server::shared();
    let site = settled(server, &server.url());
    let token = key(&site, "token:job");
    site.short("a").with(&["--keep=5m"]).end().with_code(0);
    let before = server.cli(&["HGETALL", &token]);
    server.cli(&["DEL", &key(&site, "acts:job")]);
    server.cli(&["SET", &key(&site, "acts:job"), "mine"]);
    let pause = site.verb(&["pause", "-g", "job"]).end();
    pause.with_code(78).tells(&["WRONGTYPE"]);
    assert_eq!(server.cli(&["HGETALL", &token]), before);
    server.cli(&["DEL", &key(&site, "acts:job")]);
    let held = site.run("a").with(&["--heartbeat=20s"]).start();
    site.store.until_begun("a");
    let before = server.cli(&["HGETALL", &token]);
    server.cli(&["DEL", &key(&site, "runs:job")]);
    server.cli(&["SET", &key(&site, "runs:job"), "mine"]);
    let freed = site
        .verb(&["release", "--force", "--yes", "-g", "job"])
        .end();
    freed.with_code(78).tells(&["WRONGTYPE"]);
    assert_eq!(server.cli(&["HGETALL", &token]), before);
    server.cli(&["DEL", &key(&site, "runs:job")]);
    site.store.go(0);
    held.end().with_code(0);
}

#[test]
fn a_malformed_waiter_or_token_hides_no_other() {
    let server = Server::shared();
    let site = settled(server, &server.url());
    for group in ["bad", "fine", "worse", "worst"] {
        site.short_in(group).end().with_code(0);
    }
    let waiter = key(&site, "waiter:bad:s");
    server.cli(&["HSET", &waiter, "token_group", "bad", "document", "{"]);
    for list in ["waiters", "waiters:bad"] {
        server.cli(&["ZADD", &key(&site, list), "1", "waiter:bad:s"]);
    }
    server.cli(&["HSET", &key(&site, "token:worse"), "document", "{"]);
    server.cli(&["DEL", &key(&site, "token:worst")]);
    server.cli(&["SET", &key(&site, "token:worst"), "mine"]);
    let status = site.verb(&["status"]).end().with_code(78);
    for words in ["fine", "bad", "worse", "worst"] {
        assert!(status.stdout.contains(words), "{words}: {status:?}");
    }
    let all = site.verb(&["status", "--json"]).end().with_code(78).json();
    let groups = all.as_array().unwrap().iter();
    let groups: Vec<_> = groups.filter_map(|it| it["group"].as_str()).collect();
    assert!(groups.contains(&"fine"), "{all}");
    site.short_in("fine").end().with_code(0);
    site.short_in("worst")
        .end()
        .with_code(78)
        .says(&["WRONGTYPE"]);
}

/// A swap of such a token would conflict for ever.
#[test]
fn a_token_that_was_renamed_or_has_an_odd_version_is_said() {
    let server = Server::shared();
    let site = settled(server, &server.url());
    let token = key(&site, "token:job");
    site.short("a").end().with_code(0);
    let version = server.cli(&["HGET", &token, "version"]);
    server.cli(&[
        "HSET",
        &token,
        "version",
        &format!("+{}", version.trim().trim_start_matches('-')),
    ]);
    site.short("a")
        .end()
        .with_code(78)
        .says(&["version", "in place of"]);
    server.cli(&["HSET", &token, "version", version.trim()]);
    server.cli(&["HSET", &token, "token_group", "other"]);
    site.short("a").end().with_code(78).says(&["was renamed"]);
}

#[test]
fn a_server_that_is_no_redis_is_said() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        use std::io::Write as _;
        for client in listener.incoming() {
            let _ = client
                .unwrap()
                .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let site = Site::new(format!("redis://127.0.0.1:{port}"));
    site.short("a")
        .end()
        .with_code(69)
        .says(&["does not answer as Redis"]);
}
