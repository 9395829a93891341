//! Clients without an answer because a transaction has locked the tables: what they leave behind in
//! the server.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use postgres::{Client, NoTls};

use super::pooler::Pooler;
use super::server::{Database, Server};
use super::site::Site;
use crate::support::{Run, until, until_dead, within};

const WAITERS: usize = 8;

const SHORT: [&str; 4] = [
    "--heartbeat=500ms",
    "--takeover-after=5s",
    "--kill-grace=500ms",
    "--store-timeout=500ms",
];

/// An administrator's view, and the lock that blocks all clients.
struct Tables {
    watch: Client,
    lock: Client,
}

impl Tables {
    fn of(database: &Database<'_>) -> Self {
        let connect = || Client::connect(&database.tcp_url(), NoTls).unwrap();
        Self {
            watch: connect(),
            lock: connect(),
        }
    }

    fn lock(&mut self) {
        let lock = "BEGIN; LOCK TABLE tokenrun.tokens IN ACCESS EXCLUSIVE MODE";
        self.lock.batch_execute(lock).unwrap();
    }

    fn unlock(&mut self) {
        self.lock.batch_execute("ROLLBACK").unwrap();
    }

    /// How many of the server's processes wait for a lock.
    fn blocked(&mut self) -> usize {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        let count: i64 = self.watch.query_one(sql, &[]).unwrap().get(0);
        usize::try_from(count).unwrap()
    }
}

/// Runs that wait, each of which has a process in the server that is blocked.
fn waiting(site: &Site, tables: &mut Tables, timing: &[&str]) -> Vec<Run> {
    let run = |n| site.run(&format!("w{n}")).with(&["--wait"]).with(timing);
    let runs = (0..WAITERS).map(|n| run(n).start()).collect();
    until("all are blocked", || match tables.blocked() {
        blocked if blocked < WAITERS => Err(blocked.to_string()),
        _ => Ok(()),
    });
    runs
}

fn kill(runs: Vec<Run>) {
    for run in runs {
        run.signal(Signal::SIGKILL);
        until_dead(run.pid());
    }
}

/// How long server processes stay blocked after their clients are gone.
fn gone_after(tables: &mut Tables) -> Duration {
    let killed = Instant::now();
    while tables.blocked() > 0 && killed.elapsed() < Duration::from_secs(4) {
        std::thread::sleep(Duration::from_millis(20));
    }
    killed.elapsed()
}

/// Whatever is in between: as long as the tables are locked, each client has one process at most.
fn one_process_for_each_client(server: &Server, database: &Database<'_>, site: &Site) {
    site.short("a").end().with_code(0);
    let mut tables = Tables::of(database);
    tables.lock();
    let runs = waiting(site, &mut tables, &SHORT);
    let refused = || {
        let log = std::fs::read_to_string(server.log()).unwrap();
        log.matches("canceling statement due to").count()
    };
    until("each was refused several times", || {
        let blocked = tables.blocked();
        assert!(blocked <= WAITERS, "{blocked} for {WAITERS} clients");
        let refused = refused();
        if refused >= 6 * WAITERS {
            Ok(())
        } else {
            Err(refused.to_string())
        }
    });
    kill(runs);
    within(Duration::from_secs(2), || {
        let runs = waiting(site, &mut tables, &SHORT);
        kill(runs);
        gone_after(&mut tables)
    });
    tables.unlock();
    site.short("a").end().with_code(0);
}

#[test]
fn locked_tables_block_one_process_for_each_client_and_none_of_the_dead() {
    let server = Server::start(&[]);
    let database = server.database();
    one_process_for_each_client(&server, &database, &Site::new(database.url()));
}

#[test]
fn behind_a_pooler_too_locked_tables_block_one_process_for_each_client() {
    let server = Server::start(&[]);
    let database = server.database();
    let pooler = Pooler::start(&server);
    let (port, name) = (pooler.port, &database.name);
    let site = Site::new(format!("postgres://postgres@127.0.0.1:{port}/{name}"));
    one_process_for_each_client(&server, &database, &site);
}

/// A call of ten seconds leaves nothing behind for ten seconds.
#[test]
fn the_server_forgets_a_client_that_is_killed_in_a_long_call() {
    let server = Server::start(&[]);
    let database = server.database();
    let site = Site::new(database.url());
    site.short("a").end().with_code(0);
    let mut tables = Tables::of(&database);
    tables.lock();
    within(Duration::from_secs(2), || {
        let runs = waiting(&site, &mut tables, &[]);
        kill(runs);
        gone_after(&mut tables)
    });
}

#[test]
fn a_lock_that_ends_in_time_is_waited_for() {
    let server = Server::start(&[]);
    let database = server.database();
    let site = Site::new(database.url());
    site.short("a").end().with_code(0);
    let mut tables = Tables::of(&database);
    tables.lock();
    let run = site.short("a").start();
    until("it was refused twice, and asks again", || {
        let log = std::fs::read_to_string(server.log()).unwrap();
        let refused = log.matches("due to lock timeout").count();
        if refused >= 2 { Ok(()) } else { Err(log) }
    });
    tables.unlock();
    assert_eq!(run.end().with_code(0).messages(), [""; 0]);
}

#[test]
fn a_lock_that_lasts_is_named_and_a_job_goes_on_beside_it() {
    let server = Server::start(&[]);
    let database = server.database();
    let site = Site::new(database.url());
    let timing = [
        "--heartbeat=200ms",
        "--takeover-after=40s",
        "--store-timeout=3s",
    ];
    let run = site.made().run("a").with(&timing).start();
    site.store.until_begun("a");
    let mut tables = Tables::of(&database);
    tables.lock();
    run.until_says("locked");
    let ended = site.short("b").with(&["--store-timeout=3s"]).end();
    ended
        .with_code(69)
        .says(&["locked", "55P03", "was not started"]);
    tables.unlock();
    run.until_says("can be used again");
    site.store.go(4);
    assert_eq!(run.end().with_code(4).other_messages().len(), 2);
}

/// From now on each commit waits for a standby that is not there.
fn without_standby(server: &Server, database: &Database<'_>) {
    database.sql("ALTER SYSTEM SET synchronous_standby_names = 'absent'");
    server.ctl(&["reload"]);
    let names = || database.sql("SHOW synchronous_standby_names");
    until("commits wait for a standby", || match names().as_str() {
        "absent" => Ok(()),
        other => Err(other.to_owned()),
    });
}

/// Commits that wait for a standby.
const COMMITS: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";

/// What is committed can't be taken back, so the server's limits don't end that wait: then a run
/// would count as granted that no standby knows of. Nor does each try leave a process behind.
#[test]
fn a_grant_that_waits_for_a_standby_is_no_grant_and_blocks_one_process() {
    let server = Server::start(&[]);
    let database = server.database();
    let site = Site::new(database.url());
    site.short("a").end().with_code(0);
    without_standby(&server, &database);
    for _ in 0..3 {
        let ended = site.short("a").with(&SHORT).with(&["--wait=2s"]).end();
        assert!(matches!(ended.code, Some(69 | 75)), "{ended:?}");
        assert_eq!(database.sql(COMMITS), "1");
    }
    // Before that its result is unknown.
    database.sql("ALTER SYSTEM RESET synchronous_standby_names");
    server.ctl(&["reload"]);
    let state = || database.sql("SELECT state FROM tokenrun.tokens");
    until("the grant is there", || match state().as_str() {
        "running" => Ok(()),
        other => Err(other.to_owned()),
    });
}

/// A position in the queue is not worth a wait for a standby.
#[test]
fn a_waiter_leaves_no_commit_behind_that_waits_for_a_standby() {
    let server = Server::start(&[]);
    let database = server.database();
    let site = Site::new(database.url());
    let timing = ["--heartbeat=10s", "--takeover-after=60s"];
    let holder = site.run("a").with(&timing).start();
    site.store.until_begun("a");
    without_standby(&server, &database);
    for _ in 0..3 {
        let run = site.short("b").with(&["--store-timeout=5s", "--wait=2s"]);
        run.end().with_code(75);
    }
    let commits: u32 = database.sql(COMMITS).parse().unwrap();
    assert!(
        commits <= 1,
        "the holder's heartbeat at most, not {commits}"
    );
    drop(holder);
}

/// Whatever fails for one group would fail for the next, perhaps after a long wait.
#[test]
fn an_act_on_several_groups_stops_at_a_store_that_takes_no_writes() {
    let server = Server::start(&[]);
    let database = server.database();
    let site = Site::new(database.tcp_url());
    for group in ["a", "z"] {
        site.short_in(group).end().with_code(0);
    }
    let mut admin = Client::connect(&database.tcp_url(), NoTls).unwrap();
    let mut set = |value: &str| {
        let name = &database.name;
        let sql = format!("ALTER DATABASE {name} SET default_transaction_read_only = {value}");
        admin.batch_execute(&sql).unwrap();
    };
    set("on");
    let both = ["pause", "-g", "a", "-g", "z", "--json"];
    let pause = site.verb(&both).end().with_code(69);
    pause.tells(&["read-only", "1 group was not acted on"]);
    assert_eq!(pause.json().as_array().unwrap().len(), 0);
    set("off");
    assert_eq!(
        site.verb(&both)
            .end()
            .with_code(0)
            .json()
            .as_array()
            .unwrap()
            .len(),
        2
    );
}
