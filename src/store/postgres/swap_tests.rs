//! Tests that need a real server: locks, durability, its own clock, its own tables.

use std::time::{Duration, Instant};

use ::postgres::{Client, NoTls};

use super::test_server::{Database, Server};
use super::{PostgresStore, settings};
use crate::store::conformance::acts::act_on;
use crate::store::conformance::{claim, version};
use crate::store::sql::swap::LOCKED_FOR;
use crate::store::{Marks, Queue, Reading, Records, Tokens, Trouble};
use crate::token::operator::Act;
use crate::token::record::fixture::{SUCCESS, run_of};
use crate::token::swap::{grant, heartbeat, release};
use crate::token::{
    ClockEpoch, Fence, GrantKind, GroupName, ResourceName, Row, RunRecord, SessionId, StoreTime,
    Swap, Swapped, Waiter,
};

const TIMEOUT: Duration = Duration::from_secs(10);

fn store(database: &Database<'_>) -> PostgresStore {
    PostgresStore::new(settings(&database.url(), "test").unwrap(), TIMEOUT)
}

/// A connection of the test's own.
fn client(database: &Database<'_>) -> Client {
    Client::connect(&database.tcp_url(), NoTls).unwrap()
}

fn grant_to(store: &mut PostgresStore, client: &str, n: u64) -> Row {
    let claim = claim("g", client, &format!("s{n}"));
    let reading = store.read(&claim.group).unwrap();
    let row = reading.row.as_ref();
    let swap = grant(&claim, GrantKind::Bind, row, &reading.now, version(n));
    let Swapped::Done(_) = store.swap(&swap).unwrap() else {
        panic!("the grant should have happened");
    };
    store.read(&claim.group).unwrap().row.unwrap()
}

#[test]
fn a_takeover_waits_a_moment_for_a_jobs_transaction() {
    let database = Server::shared().database();
    let mut store = store(&database);
    let held = grant_to(&mut store, "a", 1);
    for _ in 0..20 {
        let mut job = client(&database);
        job.batch_execute("BEGIN").unwrap();
        let fence = "SELECT tokenrun.tokenrun_fence($1, $2)";
        job.execute(fence, &[&"g", &held.fence.0]).unwrap();
        let reading = store.read(&held.group).unwrap();
        let (row, now) = (reading.row.as_ref(), &reading.now);
        let take = grant(
            &claim("g", "b", "s2"),
            GrantKind::Takeover,
            row,
            now,
            version(2),
        );
        let began = Instant::now();
        let ending = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            job.batch_execute("COMMIT").unwrap();
            began.elapsed()
        });
        let taken = store.swap(&take);
        let lasted = ending.join().unwrap();
        match taken {
            Ok(taken) => return assert!(matches!(taken, Swapped::Done(_)), "{taken:?}"),
            // On a busy machine the transaction may last longer than a takeover waits.
            Err(error) => {
                assert_eq!(error.trouble, Trouble::Held, "{error}");
                assert!(lasted >= LOCKED_FOR, "{lasted:?}");
            }
        }
    }
    panic!("each transaction lasted longer than a takeover waits");
}

#[test]
fn a_jobs_transaction_blocks_a_takeover_and_lets_heartbeats_pass() {
    let database = Server::shared().database();
    let mut store = store(&database);
    let held = grant_to(&mut store, "a", 1);
    let mut job = client(&database);
    let mut inside = job.transaction().unwrap();
    let fence = "SELECT tokenrun.tokenrun_fence($1, $2)";
    inside.execute(fence, &[&"g", &held.fence.0]).unwrap();
    let pid: i32 = inside
        .query_one("SELECT pg_backend_pid()", &[])
        .unwrap()
        .get(0);

    let now = store.read(&held.group).unwrap().now;
    let beat = heartbeat(&held, version(2), now.until(TIMEOUT));
    assert!(matches!(store.swap(&beat).unwrap(), Swapped::Done(_)));

    let reading = store.read(&held.group).unwrap();
    let other = claim("g", "b", "s3");
    let take = grant(
        &other,
        GrantKind::Takeover,
        reading.row.as_ref(),
        &reading.now,
        version(3),
    );
    let error = store.swap(&take).unwrap_err();
    assert_eq!(error.trouble, Trouble::Held);
    let words = format!("held by a transaction of the earlier run, pid {pid} ");
    assert!(error.to_string().contains(&words), "{error}");

    inside.commit().unwrap();
    assert!(matches!(store.swap(&take).unwrap(), Swapped::Done(_)));
    let stale = job.execute(fence, &[&"g", &held.fence.0]).unwrap_err();
    let error = stale.as_db_error().unwrap();
    assert!(error.message().contains("is stale"), "{error}");
    assert_eq!(error.code().code(), "55000");
}

#[test]
fn a_schema_may_have_any_name() {
    let database = Server::shared().database();
    let own = Server::start(&[]);
    for (n, name) in (1..).zip([
        "a$token_group $1",
        "{schema} {now} {schema_text}",
        "q\"'\\-- ",
        // A text that ends a quotation by dollars.
        "a$do$ b$$ c$do_$",
    ]) {
        let mut settings = settings(&database.url(), "test").unwrap();
        settings.schema = name.to_owned();
        let mut store = PostgresStore::new(settings, TIMEOUT);
        let held = grant_to(&mut store, "a", n);
        let now = store.read(&held.group).unwrap().now;
        let beat = heartbeat(&held, version(n + 10), now.until(TIMEOUT));
        assert!(
            matches!(store.swap(&beat).unwrap(), Swapped::Done(_)),
            "{name}"
        );
        // The script for an administrator.
        let other = own.database();
        other.sql(&super::creation(name));
        let made = "SELECT count(*) FROM pg_class JOIN pg_namespace AS it ON it.oid = relnamespace
            WHERE relname = 'tokens' AND nspname NOT LIKE 'pg_%'";
        assert_eq!(other.sql(made), "1", "{name}");
    }
}

/// A request that was not sent has not happened.
#[test]
fn nothing_has_happened_where_no_server_could_be_reached() {
    let group = GroupName::new("g").unwrap();
    let trouble = |url: &str| {
        let settings = settings(url, "test").unwrap();
        let mut store = PostgresStore::new(settings, Duration::from_millis(200));
        store.read(&group).unwrap_err().trouble
    };
    assert_eq!(trouble("postgres://u@127.0.0.1:1/d"), Trouble::Refused);
    // A server that never answers a login.
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mute = mute.local_addr().unwrap();
    assert_eq!(trouble(&format!("postgres://u@{mute}/d")), Trouble::Refused);
}

/// Every answered write must be on the disk: each kind by itself.
#[test]
fn an_answered_write_is_on_the_disk_even_where_other_commits_are_not() {
    // What the server writes of its own accord, every 15 s for replicas, is not flushed.
    let server = Server::start(&[
        "wal_writer_delay = 10s",
        "synchronous_commit = off",
        "wal_level = minimal",
        "max_wal_senders = 0",
        "autovacuum = off",
    ]);
    let database = server.database();
    let mut store = store(&database);
    let written = "SELECT pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn()";
    let assert_written = |what: &str| {
        assert_eq!(database.sql(written), "t", "{what}");
        // Otherwise the next one would show nothing. The server may just have written what there was, which it does every
        // ten seconds.
        let is_left = (0..3).any(|_| {
            database.sql("SELECT pg_logical_emit_message(false, 'test', 'x')");
            database.sql(written) == "f"
        });
        assert!(is_left, "{what}");
    };
    let mut numbers = 1..;
    let mut next = || version(numbers.next().unwrap());
    for (n, has_key) in [(1, false), (2, true), (3, false), (4, true)] {
        let mut claim = claim("g", "a", &format!("s{n}"));
        claim.about.once_key = has_key.then(|| format!("key {n}"));
        let reading = store.read(&claim.group).unwrap();
        let (row, now) = (reading.row.as_ref(), &reading.now);
        let taken = grant(&claim, GrantKind::Bind, row, now, next());
        assert!(matches!(store.swap(&taken).unwrap(), Swapped::Done(_)));
        assert_written(if n == 1 { "the first grant" } else { "a grant" });
        let mut held = store.read(&claim.group).unwrap().row.unwrap();
        let beat = heartbeat(&held, next(), now.until(TIMEOUT));
        assert!(matches!(store.swap(&beat).unwrap(), Swapped::Done(_)));
        assert_written("a heartbeat");
        held.version = beat.version();
        let run = RunRecord {
            once_key: claim.about.once_key.clone(),
            ..run_of(&held).ended(SUCCESS)
        };
        if n <= 2 {
            let over = release(&held, run, next(), now.until(TIMEOUT));
            assert!(matches!(store.swap(&over).unwrap(), Swapped::Done(_)));
        } else {
            store.record(&run).unwrap();
        }
        let how = if n <= 2 { "an end" } else { "a late record" };
        assert_written(&format!("{how}, with a key: {has_key}"));
    }
    let group = GroupName::new("g").unwrap();
    for (n, act) in (100..).zip([Act::Release { force: true }, Act::Forget("key 2".into())]) {
        let Reading { row, now, .. } = store.read(&group).unwrap();
        let (swap, _) = act_on(&row.unwrap(), &act, &now, n);
        assert!(matches!(store.swap(&swap).unwrap(), Swapped::Done(_)));
        assert_written(act.word());
    }
    let resource = ResourceName::new("resource").unwrap();
    for fence in [1, 2] {
        store.advance(&resource, Fence(fence)).unwrap();
        assert_written("a resource's mark");
    }
}

#[test]
fn the_epoch_is_written_as_every_version_of_this_program_has_written_it() {
    let database = Server::shared().database();
    let mut store = store(&database);
    let held = grant_to(&mut store, "a", 1);
    let written = "SELECT to_char(pg_postmaster_start_time() AT TIME ZONE 'UTC',
            'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')
        || ' ' || left(pg_walfile_name(pg_current_wal_lsn()), 8)";
    assert_eq!(held.stamped.epoch.0, database.sql(written));
    assert_eq!(
        Some(&held.stamped.epoch),
        held.document.granted_epoch.as_ref()
    );
    let waiter = Waiter {
        session: SessionId::new("s2").unwrap(),
        client: held.client_bound().unwrap().clone(),
        failback: false,
    };
    let now = store.read(&held.group).unwrap().now;
    let joined = store.join(&held.group, &waiter, &now.until(TIMEOUT), None);
    let queue = joined.unwrap().queue;
    assert_eq!(queue[0].epoch.0, database.sql(written));
}

#[test]
fn a_swap_in_another_epoch_has_expired() {
    let database = Server::shared().database();
    let mut store = store(&database);
    let held = grant_to(&mut store, "a", 1);
    let now = store.read(&held.group).unwrap().now;
    let (started, timeline) = now.epoch.0.split_once(' ').unwrap();
    for other in [
        format!("{started} 7FFFFFFF"),
        format!("2001-01-01T00:00:00.000001Z {timeline}"),
        format!("{started}  {timeline}"),
        timeline.to_owned(),
        format!(" {timeline}"),
        String::new(),
    ] {
        let elsewhere = StoreTime {
            epoch: ClockEpoch(other.clone()),
            ..now.clone()
        };
        let beat = heartbeat(&held, version(2), elsewhere.until(TIMEOUT));
        let answer = store.swap(&beat).unwrap();
        assert!(matches!(answer, Swapped::Expired(_)), "{other:?}");
    }
    assert_eq!(store.read(&held.group).unwrap().row, Some(held));
}

/// The waiters are notified of this swap of the row that is held.
fn assert_notifies(
    what: &str,
    database: &Database<'_>,
    n: u64,
    make: impl FnOnce(&Row, &StoreTime) -> Swap,
) {
    let mut holder = store(database);
    let mut waiter = store(database);
    let held = grant_to(&mut holder, "a", n * 10);
    let session = SessionId::new(&format!("w{n}")).unwrap();
    let in_queue = Waiter {
        session: session.clone(),
        client: held.client_bound().unwrap().clone(),
        failback: false,
    };
    let now = waiter.read(&held.group).unwrap().now;
    let joined = waiter.join(&held.group, &in_queue, &now.until(TIMEOUT), None);
    let now = joined.unwrap().now;
    let notifier = waiter.notifier().unwrap();
    let Swapped::Done(_) = holder.swap(&make(&held, &now)).unwrap() else {
        panic!("the swap should have happened");
    };
    assert!(notifier.signals_within(TIMEOUT), "{what}");
    waiter.leave(&held.group, &session).unwrap();
}

#[test]
fn the_end_of_a_run_and_each_act_notify_the_waiters() {
    let database = Server::shared().database();
    for (n, once_key) in [(1, None), (2, Some("key".to_owned()))] {
        let what = format!("once: {once_key:?}");
        assert_notifies(&what, &database, n, |held, now| {
            let limit = now.until(TIMEOUT);
            let run = RunRecord {
                once_key,
                ..run_of(held).ended(SUCCESS)
            };
            release(held, run, version(n * 10 + 1), limit)
        });
    }
    let acts = [
        Act::Release { force: true },
        Act::Resume(None),
        Act::Forget("key".into()),
    ];
    for (n, act) in (3..).zip(acts) {
        assert_notifies(act.word(), &database, n, |held, now| {
            act_on(held, &act, now, n * 10 + 1).0
        });
    }
}

#[test]
fn heartbeats_are_updates_in_place() {
    // Of its own: while a session of another test has an old snapshot, old rows keep their place.
    let server = Server::start(&[]);
    let database = server.database();
    let mut store = store(&database);
    let mut held = grant_to(&mut store, "a", 1);
    for n in 2..200 {
        let now = store.read(&held.group).unwrap().now;
        let beat = heartbeat(&held, version(n), now.until(TIMEOUT));
        assert!(matches!(store.swap(&beat).unwrap(), Swapped::Done(_)));
        held.version = version(n);
        held.document.session_version = Some(version(n));
    }
    drop(store);
    // The server counts at the end of a session.
    let mut counted = String::new();
    for _ in 0..2_000 {
        counted = database.sql(
            "SELECT n_tup_upd || ' ' || n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'tokens'",
        );
        if counted.starts_with("198") {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let (all, hot) = counted.split_once(' ').unwrap();
    assert_eq!(all, "198");
    assert!(hot.parse::<u32>().unwrap() > 190, "{counted}");
}

#[test]
fn an_empty_database_is_no_error_for_fifty_at_once() {
    let database = Server::shared().database();
    let found: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..50)
            .map(|_| scope.spawn(|| store(&database).read(&GroupName::new("g").unwrap())))
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for reading in found {
        assert_eq!(reading.unwrap().row, None);
    }
}

#[test]
fn tables_for_newer_programs_are_refused_except_to_a_holder() {
    let database = Server::shared().database();
    let mut holder = store(&database);
    let held = grant_to(&mut holder, "a", 1);
    database.sql(
        "UPDATE tokenrun.meta SET version = '4', oldest_reader = '4'; ALTER TABLE tokenrun.tokens ADD new text DEFAULT 'x'",
    );
    let error = store(&database).read(&held.group).unwrap_err();
    assert_eq!(error.trouble, Trouble::Misconfigured);
    assert!(error.to_string().contains("version 4 or later"), "{error}");
    let now = holder.read(&held.group).unwrap().now;
    let beat = heartbeat(&held, version(2), now.until(TIMEOUT));
    assert!(matches!(holder.swap(&beat).unwrap(), Swapped::Done(_)));
}

#[test]
fn a_restart_of_the_server_is_another_epoch_and_costs_one_connection() {
    let server = Server::start(&[]);
    let database = server.database();
    let mut store = store(&database);
    let held = grant_to(&mut store, "a", 1);
    let before = store.read(&held.group).unwrap().now;
    server.ctl(&["-w", "-m", "fast", "restart"]);
    // A closed connection is noticed before anything is sent.
    let after = store.read(&held.group).unwrap().now;
    assert_ne!(before.epoch, after.epoch);
    let beat = heartbeat(&held, version(2), before.until(TIMEOUT));
    assert_eq!(
        std::mem::discriminant(&store.swap(&beat).unwrap()),
        std::mem::discriminant(&Swapped::Expired(after))
    );
}

#[test]
fn a_row_that_was_edited_by_hand_is_not_guessed_at() {
    let database = Server::shared().database();
    let mut store = store(&database);
    let held = grant_to(&mut store, "a", 1);
    for (change, words) in [
        ("document = document - 'run'", "contradict"),
        ("state = 'x'", "\"x\""),
        ("fence = -1", "negative"),
        ("fence = 9223372036854775807", "no grant reaches"),
        ("stamped_at = 'infinity'", "9999"),
        ("stamped_at = '-infinity'", "1970"),
        (
            r#"document = document || '{"last_outcome": "fine"}'"#,
            "last_outcome",
        ),
        ("client_bound = E'a\\nb'", "control"),
    ] {
        database.sql(&format!(
            "CREATE TABLE kept AS TABLE tokenrun.tokens; UPDATE tokenrun.tokens SET {change}"
        ));
        let error = store.read(&held.group).unwrap_err();
        assert_eq!(error.trouble, Trouble::Misconfigured, "{change}");
        assert!(error.to_string().contains(words), "{change}: {error}");
        database.sql(
            "DELETE FROM tokenrun.tokens; INSERT INTO tokenrun.tokens TABLE kept; DROP TABLE kept",
        );
    }
}

#[test]
fn a_role_that_may_not_make_tables_gets_a_remedy() {
    let database = Server::shared().database();
    database.sql(&format!("CREATE ROLE poor_{} LOGIN", database.name));
    let url = database
        .url()
        .replace("postgres@", &format!("poor_{}@", database.name));
    let mut store = PostgresStore::new(settings(&url, "test").unwrap(), TIMEOUT);
    let error = store.read(&GroupName::new("g").unwrap()).unwrap_err();
    assert_eq!(error.trouble, Trouble::Denied);
    assert!(error.to_string().contains("init --print-sql"), "{error}");
}
