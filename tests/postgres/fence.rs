//! The fence in the job's own transaction: a call of the function blocks a takeover until the
//! transaction ends, and a job that lost the token can't go on.

use postgres::{Client, NoTls};

use super::server::{Database, Server};
use super::site::Site;
use crate::support::{Ended, Line, until};

const FENCE: &str = "SELECT tokenrun.tokenrun_fence($1, $2)";

fn client(database: &Database<'_>) -> Client {
    Client::connect(&database.tcp_url(), NoTls).unwrap()
}

fn pid(client: &mut impl postgres::GenericClient) -> i32 {
    let row = client.query_one("SELECT pg_backend_pid()", &[]);
    row.unwrap().get(0)
}

fn fence(database: &Database<'_>) -> i64 {
    let text = database.sql("SELECT fence FROM tokenrun.tokens");
    text.parse().unwrap()
}

/// What a grant and a heartbeat change.
fn row(database: &Database<'_>) -> String {
    database.sql("SELECT state, fence, session, version FROM tokenrun.token_status")
}

fn run(site: &Site, client: &str) -> Line {
    let fast = ["--heartbeat=200ms", "--kill-grace=500ms"];
    site.run(client).with(&fast)
}

/// A holder whose tokenrun was killed: what is left of it is the test's own transaction.
fn dead_holder(site: &Site, database: &Database<'_>) -> i64 {
    let held = run(site, "a").start();
    site.store.until_begun("a");
    let fence = fence(database);
    held.signal(nix::sys::signal::Signal::SIGKILL);
    held.end();
    site.store.until_job_gone();
    fence
}

/// A refusal that has these words.
#[track_caller]
fn assert_told(ended: &Ended, words: &[&str]) {
    assert_eq!(ended.code, Some(75), "{ended:?}");
    for word in words {
        assert!(
            ended.stderr.contains(word),
            "{word:?} is missing: {ended:?}"
        );
    }
}

#[track_caller]
fn assert_stale(error: &postgres::Error) {
    let shown = error.as_db_error().unwrap();
    assert!(shown.message().contains("is stale"), "{shown}");
    assert_eq!(shown.code().code(), "55000");
}

/// How many wait for a lock in this database.
fn queued(watcher: &mut Client) -> i64 {
    let count = "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
        WHERE NOT granted AND datname = current_database()";
    watcher.query_one(count, &[]).unwrap().get(0)
}

#[test]
fn a_zombies_transaction_holds_a_takeover_off_until_it_ends() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    let fence = dead_holder(&site, &database);
    let mut zombie = client(&database);
    let mut inside = zombie.transaction().unwrap();
    inside.execute(FENCE, &[&"job", &fence]).unwrap();
    let zombies_pid = pid(&mut inside);
    let before = row(&database);

    let mut refused = site.short("b").start();
    let mut watcher = client(&database);
    while !refused.has_ended() {
        assert_eq!(queued(&mut watcher), 0, "a takeover waits for the lock");
    }
    let held = "held by a transaction of the earlier run, pid ";
    assert_told(&refused.end(), &[&format!("{held}{zombies_pid} ")]);

    inside.commit().unwrap();
    // A swap that was left behind would have been the next to get the lock.
    watcher
        .batch_execute("BEGIN; LOCK TABLE tokenrun.tokens; COMMIT")
        .unwrap();
    assert_eq!(row(&database), before, "a token was granted to a ghost");

    site.short("b").end().with_code(0);
    assert_stale(&zombie.execute(FENCE, &[&"job", &fence]).unwrap_err());
}

#[test]
fn every_transaction_that_holds_it_off_is_named() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    let fence = dead_holder(&site, &database);
    let (mut one, mut two) = (client(&database), client(&database));
    let (mut one, mut two) = (one.transaction().unwrap(), two.transaction().unwrap());
    for both in [&mut one, &mut two] {
        both.execute(FENCE, &[&"job", &fence]).unwrap();
    }
    let pids = [pid(&mut one).to_string(), pid(&mut two).to_string()];
    assert_told(&site.short("b").end(), &[&pids[0], &pids[1]]);
    // The other one still does.
    one.rollback().unwrap();
    assert_told(&site.short("b").end(), &[&pids[1]]);
    two.rollback().unwrap();
    site.short("b").end().with_code(0);
}

#[test]
fn heartbeats_and_the_release_pass_a_jobs_transaction() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    let held = run(&site, "a").start();
    site.store.until_begun("a");
    let mut job = client(&database);
    let mut inside = job.transaction().unwrap();
    inside.execute(FENCE, &[&"job", &fence(&database)]).unwrap();
    let mut last = row(&database);
    for n in 0..5 {
        until(&format!("heartbeat {n} passes"), || {
            let now = row(&database);
            if now == last {
                return Err(now);
            }
            last = now;
            Ok(())
        });
    }
    site.store.go(0);
    let ended = held.end().with_code(0);
    assert!(!ended.stderr.contains("can't be used"), "{ended:?}");
    assert!(row(&database).starts_with("free|"));
    // Acts of operators pass too, except those that change the fence.
    for words in [["pause", "-g", "job"], ["resume", "-g", "job"]] {
        site.verb(&words).end().with_code(0);
    }
    assert_told(
        &site.verb(&["fence", "raise", "-g", "job"]).end(),
        &["held by a transaction"],
    );
    site.short("b").end().with_code(75);
    inside.commit().unwrap();
    site.short("b").end().with_code(0);
}

/// A transaction of one snapshot sees the row as it was; the lock shows the change.
#[test]
fn a_transaction_of_one_snapshot_is_not_fooled_by_it() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    for (level, goes_on) in [
        ("REPEATABLE READ", true),
        ("SERIALIZABLE", true),
        ("REPEATABLE READ", false),
        ("SERIALIZABLE", false),
    ] {
        let held = run(&site, "a").start();
        site.store.until_begun("a");
        let fence = fence(&database);
        let mut job = client(&database);
        job.batch_execute(&format!("BEGIN ISOLATION LEVEL {level}; SELECT 1"))
            .unwrap();
        if goes_on {
            let seen = row(&database);
            until("a heartbeat is written", || match row(&database) {
                now if now == seen => Err(now),
                _ => Ok(()),
            });
            job.execute(FENCE, &[&"job", &fence]).unwrap();
            site.store.go(0);
            held.end().with_code(0);
        } else {
            site.store.go(0);
            held.end().with_code(0);
            site.short("b").end().with_code(0);
            let error = job.execute(FENCE, &[&"job", &fence]).unwrap_err();
            let code = error.code().unwrap().code();
            assert_eq!(code, "40001", "{level}: {error}");
        }
        job.batch_execute("ROLLBACK").unwrap();
        std::fs::remove_file(site.file("log")).unwrap();
    }
}

#[test]
fn only_the_fence_of_the_present_run_is_valid() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    let held = run(&site, "a").start();
    site.store.until_begun("a");
    let now = fence(&database);
    let mut job = client(&database);
    job.execute(FENCE, &[&"job", &now]).unwrap();
    for (group, fence) in [("job", now - 1), ("job", now + 1), ("other", now)] {
        assert_stale(&job.execute(FENCE, &[&group, &fence]).unwrap_err());
    }
    let nothing: Option<i64> = None;
    assert_stale(&job.execute(FENCE, &[&"job", &nothing]).unwrap_err());
    // An operator took it away: the old job may still run, and can't commit.
    site.verb(&["release", "--force", "-g", "job"])
        .end()
        .with_code(0);
    assert_stale(&job.execute(FENCE, &[&"job", &now]).unwrap_err());
    held.end().with_code(76);
}

/// The SQL that is printed makes a role that may call the function and nothing else.
#[test]
fn a_jobs_role_needs_no_right_but_to_call_it() {
    let server = Server::start(&[]);
    let database = server.database();
    let site = Site::new(database.url());
    let printed = site.verb(&["init", "--print-sql"]).end().with_code(0);
    database.sql(&printed.stdout);
    database.sql("CREATE ROLE app LOGIN IN ROLE tokenrun_job; CREATE ROLE other LOGIN");
    let held = run(&site, "a").start();
    site.store.until_begun("a");
    let fence = fence(&database);
    let url = |role: &str| database.tcp_url().replace("postgres@", &format!("{role}@"));
    let mut app = Client::connect(&url("app"), NoTls).unwrap();
    app.execute(FENCE, &[&"job", &fence]).unwrap();
    let mut other = Client::connect(&url("other"), NoTls).unwrap();
    let denied = |error: postgres::Error| error.code().unwrap().code().to_owned();
    let error = other.execute(FENCE, &[&"job", &fence]).unwrap_err();
    assert_eq!(denied(error), "42501");
    for forbidden in [
        "SELECT * FROM tokenrun.tokens",
        "SELECT * FROM tokenrun.tokens FOR KEY SHARE",
        "UPDATE tokenrun.tokens SET state = 'free'",
        "SELECT * FROM tokenrun.runs",
        "CREATE TABLE tokenrun.x ()",
    ] {
        let error = app.batch_execute(forbidden).unwrap_err();
        assert_eq!(denied(error), "42501", "{forbidden}");
    }
    // The function has its owner's rights: a table of the caller's own is not what it reads.
    app.batch_execute("CREATE TEMP TABLE tokens (token_group text, fence bigint, state text)")
        .unwrap();
    assert_stale(&app.execute(FENCE, &[&"x", &fence]).unwrap_err());
    site.store.go(0);
    held.end().with_code(0);
}
