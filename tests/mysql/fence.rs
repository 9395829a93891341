//! The fence in the job's own transaction: a call of the procedure blocks a takeover until the
//! transaction ends, and a job that lost the token can't go on. And what an error leaves behind.

use nix::sys::signal::Signal;

use super::client::Client;
use super::server::{Database, Kind, Server};
use super::site::Site;
use crate::support::{Line, until};

on_both!(
    a_zombies_transaction_holds_a_takeover_off_until_it_ends,
    heartbeats_pass_a_job_that_holds_the_fence,
    the_fence_of_a_run_that_is_over_is_stale,
    a_release_waits_for_no_transaction_of_the_job,
    a_transaction_that_would_give_the_fence_up_is_refused,
    a_fence_in_a_table_without_locks_of_rows_is_refused,
    an_old_snapshot_does_not_pass_a_takeover,
    an_error_in_a_swap_leaves_no_lock_behind,
    a_swap_of_another_session_of_a_proxy_expires,
);

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

fn a_zombies_transaction_holds_a_takeover_off_until_it_ends(kind: Kind) {
    let database = Server::shared_of(kind).database();
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

fn heartbeats_pass_a_job_that_holds_the_fence(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let site = Site::new(database.url());
    let held = run(&site, "a").start();
    site.store.until_begun("a");
    let mut job = job_client(&database);
    for begin in [
        "BEGIN",
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; BEGIN",
        "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE; BEGIN",
        "SET autocommit = 0",
    ] {
        let call = format!("{begin}; CALL tokenrun_fence('job', {})", fence(&database));
        assert_eq!(job.say(&call), "", "{begin}");
        for _ in 0..2 {
            let before = version(&database);
            until("a heartbeat is written", || {
                let now = version(&database);
                if now == before { Err(now) } else { Ok(()) }
            });
        }
        assert_eq!(job.say("COMMIT"), "");
    }
    site.store.go(0);
    held.end().with_code(0);
}

fn call(fence: impl std::fmt::Display) -> String {
    format!("CALL tokenrun_fence('job', {fence})")
}

fn the_fence_of_a_run_that_is_over_is_stale(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let site = Site::new(database.url());
    let held = run(&site, "a").start();
    site.store.until_begun("a");
    let mut job = job_client(&database);
    let stale = |job: &mut Client, call: &str| {
        let answer = job.say(call);
        assert!(answer.contains("is stale"), "{call}: {answer}");
    };
    let now: i64 = fence(&database).parse().unwrap();
    assert_eq!(job.say(&call(now)), "");
    stale(&mut job, &call(now - 1));
    stale(&mut job, &call(now + 1));
    stale(&mut job, &call("NULL"));
    stale(&mut job, &format!("CALL tokenrun_fence('other', {now})"));
    site.store.go(0);
    held.end().with_code(0);
    stale(&mut job, &call(now));
    let kept = database.sql("SELECT fence FROM tokenrun_fences");
    stale(&mut job, &call(kept));

    // An operator took it away, or raised the fence of a token that no run has.
    let held = run(&site, "b").start();
    site.store.until_begun("b");
    let now = fence(&database);
    assert_eq!(job.say(&call(&now)), "");
    let acts: [&[&str]; 2] = [
        &["release", "--force", "-g", "job"],
        &["fence", "raise", "-g", "job"],
    ];
    for act in acts {
        site.verb(act).end().with_code(0);
        stale(&mut job, &call(&now));
        stale(&mut job, &call(fence(&database)));
    }
    held.end().with_code(76);
}

/// A client of the job whose end the server has not noticed yet.
fn a_release_waits_for_no_transaction_of_the_job(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let site = Site::new(database.url());
    let held = run(&site, "a").start();
    site.store.until_begun("a");
    let mut job = job_client(&database);
    let call = call(fence(&database));
    assert_eq!(job.say(&format!("BEGIN; {call}")), "");
    site.store.go(0);
    let ended = held.end().with_code(0);
    assert!(ended.messages().is_empty(), "{ended:?}");
    assert_eq!(database.sql("SELECT state FROM tokenrun_tokens"), "free");
    let refused = site.short("b").end().with_code(75);
    assert!(
        refused.stderr.contains("held by a transaction"),
        "{refused:?}"
    );
    assert_eq!(job.say("COMMIT"), "");
    site.short("b").end().with_code(0);
    assert!(job.say(&call).contains("is stale"));
}

/// XA PREPARE gives locks of rows that were only read up.
fn a_transaction_that_would_give_the_fence_up_is_refused(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let site = Site::new(database.url());
    let held = run(&site, "a").start();
    site.store.until_begun("a");
    let mut job = job_client(&database);
    let call = call(fence(&database));
    let name = &database.name;
    let refused = job.say(&format!("XA START '{name}'; {call}"));
    assert!(
        refused.contains("does not hold in an XA transaction"),
        "{refused}"
    );
    assert_eq!(
        job.say(&format!("XA END '{name}'; XA ROLLBACK '{name}'")),
        ""
    );
    // No other transaction is disturbed, nor begun.
    assert_eq!(job.say(&call), "");
    database.sql("CREATE TABLE work (n int)");
    let mut job = Client::of(&database, "root");
    assert_eq!(
        job.say(&format!(
            "{call}; BEGIN; INSERT INTO work VALUES (1); {call}; ROLLBACK"
        )),
        ""
    );
    assert_eq!(
        job.say(&format!(
            "SET autocommit = 0; INSERT INTO work VALUES (2); {call}; ROLLBACK"
        )),
        ""
    );
    assert_eq!(job.say("SELECT COUNT(*) FROM work"), "0");
    site.store.go(0);
    held.end().with_code(0);
}

fn a_fence_in_a_table_without_locks_of_rows_is_refused(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let site = Site::new(database.url());
    let held = run(&site, "a").start();
    site.store.until_begun("a");
    let mut job = job_client(&database);
    let call = call(fence(&database));
    assert_eq!(job.say(&call), "");
    database.sql("ALTER TABLE tokenrun_fences ENGINE = MyISAM");
    let refused = job.say(&call);
    assert!(refused.contains("must be InnoDB"), "{refused}");
    database.sql("ALTER TABLE tokenrun_fences ENGINE = InnoDB");
    assert_eq!(job.say(&call), "");
    site.store.go(0);
    held.end().with_code(0);
}

/// A transaction that is older than a takeover fails, whatever its snapshot shows.
fn an_old_snapshot_does_not_pass_a_takeover(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let site = Site::new(database.url());
    site.short("a").end().with_code(0);
    let old = fence(&database);
    let mut job = Client::of(&database, "root");
    job.say("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; BEGIN");
    job.say("SELECT * FROM tokenrun_tokens");
    let held = run(&site, "b").start();
    site.store.until_begun("b");
    let stale = job.say(&format!("CALL tokenrun_fence('job', {old})"));
    // MariaDB 11.6 and newer compares the snapshot itself.
    let is_refused = stale.contains("is stale") || stale.contains("Record has changed");
    assert!(is_refused, "{stale}");
    site.store.go(0);
    held.end().with_code(0);
}

/// A client that stands still after an error: its transaction has ended with the error.
fn an_error_in_a_swap_leaves_no_lock_behind(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let site = Site::new(database.url());
    site.short("a").end().with_code(0);
    let mut frozen = Client::of(&database, "root");
    let before = version(&database);
    // The run has no client: its row is refused after the token's was written.
    let failed = frozen.say(&format!(
        "SET @tokenrun_epoch = 'x', autocommit = 0;
         CALL tokenrun_swap('job', {before}, 1, 1, 'free', NULL, NULL, 0, '{{}}', '2999-01-01', 'x', 1,
             NULL, NULL, NULL, NULL, 1, 's', NULL, 'failed', '2020-01-01', '2020-01-01', '{{}}', 1,
             NULL, NULL, NULL, NULL, 0)"
    ));
    assert!(failed.contains("cannot be null"), "{failed}");
    assert_eq!(version(&database), before);
    site.short("b").end().with_code(0);
}

/// A swap that is sent late is late by the server's clock, even while it runs.
fn a_swap_of_another_session_of_a_proxy_expires(kind: Kind) {
    let database = Server::shared_of(kind).database();
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
                 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, 0)"
        ));
        assert!(answer.starts_with("expired"), "{answer}");
    }
    assert_eq!(version(&database), before);
}
