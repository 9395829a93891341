//! The fence in the job's own transaction: a call of the procedure blocks a takeover until the
//! transaction ends, and a job that lost the token can't go on. And what an error leaves behind.

use nix::sys::signal::Signal;

use super::client::Client;
use super::server::{Database, Server};
use super::site::Site;
use crate::support::{Line, until};

fn run(site: &Site, client: &str) -> Line {
    let fast = ["--heartbeat=200ms", "--kill-grace=500ms"];
    site.run(client).with(&fast)
}

fn fence(database: &Database<'_>) -> String {
    database.sql("SELECT fence FROM tokenrun_tokens")
}

fn version(database: &Database<'_>) -> String {
    database.sql("SELECT version FROM tokenrun_tokens")
}

/// A user of the job's own, who may call the procedure and nothing else.
fn job_client(database: &Database<'_>) -> Client {
    let user = format!("app_{}", database.name);
    database.sql(&format!(
        "CREATE USER {user}; GRANT EXECUTE ON PROCEDURE {}.tokenrun_fence TO {user}",
        database.name
    ));
    Client::of(database, &user)
}

#[test]
fn a_zombies_transaction_holds_a_takeover_off_until_it_ends() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    let held = run(&site, "a").start();
    site.store.until_begun("a");
    let fence = fence(&database);
    held.signal(Signal::SIGKILL);
    held.end();
    site.store.until_job_gone();

    let mut zombie = job_client(&database);
    let call = format!("CALL tokenrun_fence('job', {fence})");
    assert_eq!(zombie.say(&format!("BEGIN; {call}")), "");
    let before = version(&database);
    let refused = site.short("b").end().with_code(75);
    let held = "held by a transaction of the earlier run";
    assert!(refused.stderr.contains(held), "{refused:?}");
    assert_eq!(version(&database), before, "a token was granted to a ghost");
    assert_eq!(zombie.say("COMMIT"), "");
    site.short("b").end().with_code(0);
    let stale = zombie.say(&call);
    assert!(
        stale.contains("45000") && stale.contains("is stale"),
        "{stale}"
    );
    let denied = zombie.say("SELECT * FROM tokenrun_tokens");
    assert!(denied.contains("denied"), "{denied}");
}

#[test]
fn heartbeats_pass_a_job_that_holds_the_fence() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    let held = run(&site, "a").start();
    site.store.until_begun("a");
    let mut job = job_client(&database);
    job.say(&format!(
        "BEGIN; CALL tokenrun_fence('job', {})",
        fence(&database)
    ));
    for _ in 0..3 {
        let before = version(&database);
        until("a heartbeat is written", || {
            let now = version(&database);
            if now == before { Err(now) } else { Ok(()) }
        });
    }
    job.say("COMMIT");
    site.store.go(0);
    held.end().with_code(0);
}

/// A transaction that is older than a takeover fails, whatever its snapshot shows.
#[test]
fn an_old_snapshot_does_not_pass_a_takeover() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    site.short("a").end().with_code(0);
    let old = fence(&database);
    let mut job = Client::of(&database, "root");
    job.say("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; BEGIN");
    job.say("SELECT * FROM tokenrun_tokens");
    let held = run(&site, "b").start();
    site.store.until_begun("b");
    let stale = job.say(&format!("CALL tokenrun_fence('job', {old})"));
    assert!(stale.contains("is stale"), "{stale}");
    site.store.go(0);
    held.end().with_code(0);
}

/// A client that stands still after an error: its transaction has ended with the error.
#[test]
fn an_error_in_a_swap_leaves_no_lock_behind() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    site.short("a").end().with_code(0);
    let mut frozen = Client::of(&database, "root");
    let before = version(&database);
    // The run has no client: its row is refused after the token's was written.
    let failed = frozen.say(&format!(
        "SET @tokenrun_epoch = 'x', autocommit = 0;
         CALL tokenrun_swap('job', {before}, 1, 1, 'free', NULL, NULL, 0, '{{}}', '2999-01-01', 'x', 1,
             NULL, NULL, NULL, NULL, 1, 's', NULL, 'failed', '2020-01-01', '2020-01-01', '{{}}', 1,
             NULL, NULL)"
    ));
    assert!(failed.contains("cannot be null"), "{failed}");
    assert_eq!(version(&database), before);
    site.short("b").end().with_code(0);
}

/// A swap that is sent late is late by the server's clock, even while it runs.
#[test]
fn a_swap_of_another_session_of_a_proxy_expires() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    site.short("a").end().with_code(0);
    let mut other = Client::of(&database, "root");
    let before = version(&database);
    for (epoch, expiry) in [
        ("NULL", "2999-01-01"),
        ("'x'", "2000-01-01"),
        ("'y'", "2999-01-01"),
    ] {
        let answer = other.say(&format!(
            "SET @tokenrun_epoch = {epoch};
             CALL tokenrun_swap('job', {before}, 1, 1, 'free', NULL, NULL, 0, '{{}}', '{expiry}', 'x',
                 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL)"
        ));
        assert!(answer.starts_with("expired"), "{answer}");
    }
    assert_eq!(version(&database), before);
}
