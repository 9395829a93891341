//! A pooler in transaction mode in between, as many sites have.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::server::Server;
use super::site::Site;
use crate::support::until;

/// PgBouncer, with ten connections to the server for all who come.
pub(super) struct Pooler {
    pub(super) process: Child,
    pub(super) port: u16,
}

impl Pooler {
    pub(super) fn start(server: &Server) -> Self {
        let probe = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = probe.local_addr().unwrap().port();
        drop(probe);
        // In the server's own folder, which goes with it.
        let folder = server.socket();
        let file = folder.join(format!("pgbouncer-{port}.ini"));
        let text = format!(
            "[databases]\n* = host={} port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 10\n\
             max_client_conn = 1000\nlogfile = {}/pgbouncer.log\n",
            folder.display(),
            server.port(),
            folder.display()
        );
        // Any user is let in, and becomes the server's.
        let text = text.replace("* = ", "* = user=postgres ");
        std::fs::write(&file, text).unwrap();
        let programs = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"];
        let found = programs.into_iter().find(|path| Path::new(path).exists());
        let found = found.expect("pgbouncer is missing: install it (tests/run-all does)");
        let mut command = Server::command(Path::new(found));
        let quiet = command
            .arg("-q")
            .arg(&file)
            .stderr(Stdio::null())
            .stdout(Stdio::null());
        let process = quiet.spawn().unwrap();
        until("the pooler listens", || {
            TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())
        });
        Self { process, port }
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn two_hundred_runs_at_once_through_a_pool_of_ten() {
    let server = Server::start(&[]);
    let database = server.database();
    let pooler = Pooler::start(&server);
    let url = format!(
        "postgres://postgres@127.0.0.1:{}/{}",
        pooler.port, database.name
    );
    let site = Site::new(url);
    // One that lasts, with many heartbeats meanwhile.
    let timing = [
        "--heartbeat=100ms",
        "--takeover-after=60s",
        "--store-timeout=15s",
    ];
    let lasting = site.run("a").with(&timing).start();
    site.store.until_begun("a");
    let job = ["sh", "-c", "sleep 0.5; exit 7"];
    let runs: Vec<_> = (0..200)
        .map(|n| {
            site.in_group(&format!("g{n}"), "a")
                .with(&timing)
                .job(&job)
                .start()
        })
        .collect();
    for run in runs {
        let ended = run.end().with_code(7);
        ended.says_failed();
    }
    let count = "SELECT count(*) FROM tokenrun.runs WHERE outcome = 'failed'";
    assert_eq!(database.sql(count), "200");
    let most = "SELECT count(*) <= 10 FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> 'psql'";
    assert_eq!(database.sql(most), "t");
    site.store.go(4);
    let ended = lasting.end().with_code(4);
    ended.says_failed();
}

/// A notification reaches any server connection of the pooler, so a waiter also looks by itself, at
/// least every second.
#[test]
fn waiters_through_a_pooler_run_in_order_and_within_a_second() {
    let server = Server::start(&[]);
    let database = server.database();
    let pooler = Pooler::start(&server);
    let site = Site::new(format!(
        "postgres://postgres@127.0.0.1:{}/{}",
        pooler.port, database.name
    ));
    let places =
        || database.sql("SELECT document ->> 'client' FROM tokenrun.waiters ORDER BY position");
    let mut last = site.run("holder").start();
    site.store.until_begun("holder");
    let names = ["b", "a", "c"];
    let mut runs = Vec::new();
    for (n, name) in names.iter().enumerate() {
        runs.push(site.run(name).with(&["--wait"]).start());
        until("it is in the queue", || {
            let line = places();
            (line.lines().count() == n + 1).then_some(()).ok_or(line)
        });
    }
    assert_eq!(places(), "b\na\nc");
    // Notifications do not wake them: they look by themselves.
    let mut took = Vec::new();
    for (name, run) in names.iter().zip(runs) {
        site.store.go(0);
        last.end().with_code(0);
        let released = Instant::now();
        site.store.until_begun(name);
        took.push(released.elapsed());
        site.short("late").end().with_code(75);
        last = run;
    }
    site.store.go(0);
    last.end().with_code(0);
    // A busy machine may be late once.
    took.sort();
    assert!(took[1] < Duration::from_millis(1_800), "{took:?}");
    assert_eq!(places(), "");
    let held = site.run("another").start();
    site.store.until_begun("another");
    let begun = Instant::now();
    site.short("b").with(&["--wait=3s"]).end().with_code(75);
    assert!(begun.elapsed() >= Duration::from_secs(3));
    site.store.go(0);
    held.end().with_code(0);
    site.store.assert_no_overlap();
}
