//! A server that hangs, dies, comes back or is cut off, with a job running and with none.

use nix::sys::signal::Signal;

use super::proxy::Proxy;
use super::server::{Database, Kind, Server};
use super::site::Site;
use crate::support::until;

on_both!(
    a_running_group_is_refused_and_a_dead_holder_is_taken_over,
    waiters_get_the_token_in_order_of_arrival,
    a_frozen_server_ends_no_wait_but_its_time_out,
    a_job_is_ended_in_time_when_the_server_stays_frozen,
    a_run_goes_on_unharmed_when_the_server_is_back_in_time,
    a_killed_server_that_comes_back_is_another_epoch_and_the_run_goes_on,
    a_copy_of_the_data_on_another_server_is_observed_first,
    a_cut_network_ends_the_job_in_time_and_a_late_request_grants_nothing,
    a_reset_connection_is_made_again,
    nothing_blocked_stays_in_the_server_after_its_client,
    a_read_only_server_grants_nothing_and_the_other_one_is_found,
    a_server_that_becomes_read_only_takes_no_heartbeat,
    too_many_connections_are_no_reason_to_start,
    a_user_without_a_free_connection_waits_for_one,
);

fn epoch(database: &Database<'_>) -> String {
    database.sql("SELECT clock_epoch FROM tokenrun_tokens")
}

#[test]
fn nothing_is_started_without_a_server() {
    let site = Site::new("mysql://u@127.0.0.1:1/d");
    site.short("a")
        .end()
        .with_code(69)
        .says(&["127.0.0.1:1", "refused", "was not started"]);
    let site = Site::new("mysql://u@localhost/d?socket=/nowhere");
    site.short("a")
        .end()
        .with_code(69)
        .says(&["/nowhere", "was not started"]);
}

fn a_running_group_is_refused_and_a_dead_holder_is_taken_over(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let site = Site::new(database.url());
    site.made();
    let held = site.run("a").hasty().start();
    site.store.until_begun("a");
    let refused = site.short("b").hasty().end().with_code(75);
    refused.says(&["is held by a"]);
    held.signal(Signal::SIGKILL);
    held.end();
    site.store.until_job_gone();
    site.short("b")
        .hasty()
        .with(&["--wait=30s"])
        .end()
        .with_code(0);
    let history = site.verb(&["history", "--json"]).end().json();
    let outcomes: Vec<_> = (0..2).map(|n| history[n]["outcome"].clone()).collect();
    assert_eq!(outcomes, ["succeeded", "unknown"]);
    site.store.assert_no_overlap();
}

fn waiters_get_the_token_in_order_of_arrival(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let site = Site::new(database.url());
    let held = site.run("a").start();
    site.store.until_begun("a");
    let mut waiting = Vec::new();
    for (count, client) in [(1, "b"), (2, "c")] {
        waiting.push(site.run(client).with(&["--wait=60s"]).start());
        until("it is in the queue", || {
            let found = database.sql("SELECT count(*) FROM tokenrun_waiters");
            if found == count.to_string() {
                Ok(())
            } else {
                Err(found)
            }
        });
    }
    for client in ["b", "c"] {
        site.store.go(0);
        site.store.until_begun(client);
    }
    site.store.go(0);
    held.end().with_code(0);
    for run in waiting {
        run.end().with_code(0);
    }
    assert_eq!(database.sql("SELECT count(*) FROM tokenrun_waiters"), "0");
    site.store.assert_no_overlap();
}

fn a_frozen_server_ends_no_wait_but_its_time_out(kind: Kind) {
    let server = Server::start_of(kind, &[]);
    let database = server.database();
    let site = Site::new(database.tcp_url());
    site.short("a").end().with_code(0);
    server.signal(Signal::SIGSTOP);
    let ended = site.short("a").hasty().end();
    server.signal(Signal::SIGCONT);
    ended
        .with_code(69)
        .says(&["no answer within", "127.0.0.1:", "was not started"]);
}

fn a_job_is_ended_in_time_when_the_server_stays_frozen(kind: Kind) {
    let server = Server::start_of(kind, &[]);
    let database = server.database();
    let site = Site::new(database.url());
    site.made();
    let run = site.run("a").hasty().start();
    site.store.until_begun("a");
    server.signal(Signal::SIGSTOP);
    site.store.until_job_gone();
    // It is still frozen: the job went without it.
    server.signal(Signal::SIGCONT);
    let ended = run.end().with_code(76);
    assert!(ended.stderr.contains("can't be used"), "{ended:?}");
    site.run("b").hasty().job(&["true"]).end();
    site.store.assert_no_overlap();
}

fn a_run_goes_on_unharmed_when_the_server_is_back_in_time(kind: Kind) {
    let server = Server::start_of(kind, &[]);
    let database = server.database();
    let site = Site::new(database.url());
    let run = site
        .made()
        .run("a")
        .with(&[
            "--heartbeat=200ms",
            "--takeover-after=40s",
            "--store-timeout=2s",
        ])
        .start();
    site.store.until_begun("a");
    server.signal(Signal::SIGSTOP);
    run.until_says("can't be used: server");
    server.signal(Signal::SIGCONT);
    run.until_says("can be used again");
    site.store.go(4);
    run.end().with_code(4);
}

fn a_killed_server_that_comes_back_is_another_epoch_and_the_run_goes_on(kind: Kind) {
    let server = Server::start_of(kind, &["skip-log-bin"]);
    let database = server.database();
    let site = Site::new(database.url());
    let run = site
        .made()
        .run("a")
        .with(&[
            "--heartbeat=200ms",
            "--takeover-after=40s",
            "--store-timeout=1s",
        ])
        .start();
    site.store.until_begun("a");
    let before = epoch(&database);
    // The epoch contains the second in which the server was started.
    until("the second of its start is over", || {
        match database.sql("SHOW GLOBAL STATUS LIKE 'Uptime'").as_str() {
            "Uptime\t0" => Err("0".to_owned()),
            _ => Ok(()),
        }
    });
    server.stop(Signal::SIGKILL);
    server.run();
    until("a heartbeat is of the new clock epoch", || {
        let now = epoch(&database);
        if now == before { Err(now) } else { Ok(()) }
    });
    site.short("b").end().with_code(75);
    site.store.go(0);
    run.end().with_code(0);
    // Its commits are durable and no other server follows: it has forgotten nothing.
    site.short("b").end().with_code(0);
}

/// Clause 0: what a server with another id has not seen may have been granted elsewhere.
fn a_copy_of_the_data_on_another_server_is_observed_first(kind: Kind) {
    let first = Server::start_of(kind, &[]);
    let database = first.database();
    let site = Site::new(database.url());
    site.made();
    site.short("a").hasty().end().with_code(0);
    first.stop(Signal::SIGTERM);
    let folder = Server::folder_of(kind);
    let from = first.socket().with_file_name("data");
    let mut copy = std::process::Command::new("cp");
    copy.arg("-a").arg(from).arg(folder.join("data"));
    assert!(copy.status().unwrap().success());
    let second = Server::start_in(kind, folder, &[]);
    let url = database.url().replace(
        &*first.socket().display().to_string(),
        &second.socket().display().to_string(),
    );
    let copied = Site::new(url);
    let observed = copied.short("a").hasty().end().with_code(0);
    assert!(
        observed.stderr.contains("may have forgotten"),
        "{observed:?}"
    );
    let known = copied.short("a").hasty().end().with_code(0);
    assert!(!known.stderr.contains("may have forgotten"), "{known:?}");
}

fn a_cut_network_ends_the_job_in_time_and_a_late_request_grants_nothing(kind: Kind) {
    let server = Server::shared_of(kind);
    let database = server.database();
    let proxy = Proxy::to(server.port());
    let port = format!(":{}/", server.port());
    let cut = Site::new(
        database
            .tcp_url()
            .replace(&port, &format!(":{}/", proxy.port)),
    );
    let site = Site::new(database.url());
    site.made();
    let run = cut.run("a").hasty().start();
    cut.store.until_begun("a");
    proxy.hole(true);
    cut.store.until_job_gone();
    site.short("b")
        .hasty()
        .with(&["--wait=30s"])
        .end()
        .with_code(0);
    proxy.hole(false);
    run.end().with_code(76);
    assert_eq!(database.sql("SELECT state FROM tokenrun_tokens"), "free");
}

fn a_reset_connection_is_made_again(kind: Kind) {
    let server = Server::shared_of(kind);
    let database = server.database();
    let proxy = Proxy::to(server.port());
    let port = format!(":{}/", server.port());
    let site = Site::new(
        database
            .tcp_url()
            .replace(&port, &format!(":{}/", proxy.port)),
    );
    let fast = ["--heartbeat=200ms", "--takeover-after=40s"];
    let run = site.run("a").with(&fast).start();
    site.store.until_begun("a");
    for _ in 0..3 {
        let before = proxy.accepted();
        proxy.reset();
        until("it connects again", || {
            let now = proxy.accepted();
            if now > before {
                Ok(())
            } else {
                Err(now.to_string())
            }
        });
    }
    site.store.go(0);
    run.end().with_code(0);
}

/// What a killed client has asked for is gone from the server soon: whether it waits for a table or for a row.
fn nothing_blocked_stays_in_the_server_after_its_client(kind: Kind) {
    let server = Server::start_of(kind, &[]);
    let database = server.database();
    let site = Site::new(database.url());
    site.short("a").end().with_code(0);
    let row = "BEGIN; INSERT INTO tokenrun_tokens
        SELECT 'new', version, fence, state, client_bound, expected_client, stamped_at, clock_epoch,
            document, pruning_note FROM tokenrun_tokens";
    for (lock, group) in [("LOCK TABLES tokenrun_tokens WRITE", "job"), (row, "new")] {
        let mut locker = super::client::Client::of(&database, "root");
        assert_eq!(locker.say(lock), "");
        let others = "SELECT count(*) FROM information_schema.processlist WHERE command = 'Query' \
                      AND info LIKE '%tokenrun\\_%' AND info NOT LIKE '%processlist%'";
        let runs: Vec<_> = (0..5).map(|_| site.short_in(group).start()).collect();
        until("they wait", || {
            let count = database.sql(others);
            if count == "5" { Ok(()) } else { Err(count) }
        });
        for run in runs {
            run.signal(Signal::SIGKILL);
            run.end();
        }
        let killed = std::time::Instant::now();
        until("nothing of them is left", || {
            let count = database.sql(others);
            if count == "0" { Ok(()) } else { Err(count) }
        });
        let late = killed.elapsed();
        assert!(late < std::time::Duration::from_secs(2), "{late:?}");
    }
}

fn a_read_only_server_grants_nothing_and_the_other_one_is_found(kind: Kind) {
    let server = Server::start_of(kind, &["read_only = ON"]);
    let database = server.database();
    // Its administrator may write there all the same, and tokenrun does not.
    let alone = Site::new(database.tcp_url());
    alone
        .short("a")
        .end()
        .with_code(69)
        .says(&["read-only", "was not started"]);
    assert_eq!(database.sql("SHOW TABLES"), "");
    let other = Server::shared_of(kind);
    other.sql(
        "mysql",
        &format!("CREATE DATABASE IF NOT EXISTS both_{}", database.name),
    );
    let both = Site::new(format!(
        "mysql://root@127.0.0.1:{},127.0.0.1:{}/both_{}",
        server.port(),
        other.port(),
        database.name
    ));
    database.sql(&format!("CREATE DATABASE both_{}", database.name));
    both.short("a").end().with_code(0);
}

/// A server that becomes read-only under its connections: the holder goes to the other one.
fn a_server_that_becomes_read_only_takes_no_heartbeat(kind: Kind) {
    let server = Server::start_of(kind, &[]);
    let database = server.database();
    let site = Site::new(database.url());
    let fast = ["--heartbeat=200ms", "--takeover-after=40s"];
    let run = site.run("a").with(&fast).start();
    site.store.until_begun("a");
    database.sql(match kind {
        Kind::Mariadb => "SET GLOBAL read_only = ON",
        Kind::Mysql => "SET GLOBAL super_read_only = ON",
    });
    run.until_says("read-only");
    // A session that was set up before: an administrator's may write there all the same.
    let mut session = super::client::Client::of(&database, "root");
    let nothing = |count| vec!["NULL"; count].join(", ");
    for call in [
        format!("CALL tokenrun_swap({})", nothing(29)),
        format!("CALL tokenrun_note({})", nothing(8)),
    ] {
        let refused = session.say(&call);
        assert!(refused.contains("the server is read-only"), "{refused}");
    }
    database.sql("SET GLOBAL read_only = OFF");
    run.until_says("can be used again");
    site.store.go(0);
    run.end().with_code(0);
}

fn too_many_connections_are_no_reason_to_start(kind: Kind) {
    let server = Server::start_of(kind, &["max_connections = 10"]);
    let database = server.database();
    database.sql(&format!(
        "CREATE USER u; GRANT ALL ON {}.* TO u",
        database.name
    ));
    let site = Site::new(database.url().replace("root@", "u@"));
    site.short("a").end().with_code(0);
    let holders: Vec<_> = (0..10)
        .map(|_| super::client::Client::of(&database, "u"))
        .map(|mut client| {
            client.id();
            client
        })
        .collect();
    site.short("b")
        .end()
        .with_code(69)
        .says(&["Too many connections", "was not started"]);
    drop(holders);
}

fn a_user_without_a_free_connection_waits_for_one(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let user = format!("few_{}", database.name);
    database.sql(&format!(
        "CREATE USER {user} WITH MAX_USER_CONNECTIONS 2; GRANT ALL ON {}.* TO {user}",
        database.name
    ));
    let site = Site::new(database.url().replace("root@", &format!("{user}@")));
    site.short("a").end().with_code(0);
    let mut holders = [(); 2].map(|()| super::client::Client::of(&database, &user));
    for holder in &mut holders {
        holder.id();
    }
    let words = ["max_user_connections", "was not started"];
    site.short("b").end().with_code(69).says(&words);
    let waiting = site.short("b").with(&["--wait=60s"]).start();
    waiting.until_says("max_user_connections");
    drop(holders);
    waiting.end().with_code(0);
}
