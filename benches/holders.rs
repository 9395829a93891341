//! A thousand holders at once, through PgBouncer with 20 connections to the server.
//!
//! `cargo bench --bench holders` starts a thousand tokenruns, one after another, each with a job
//! that does nothing; then watches them for three minutes: how old a heartbeat becomes (by the
//! rows and the server's clock), what the server and the pooler take of the processors, what
//! memory a run takes. Then every job ends, and every run must have succeeded. Another
//! number of holders and of seconds may be given: `cargo bench --bench holders -- 100 30`.
//!
//! Nothing outlives it, however it ends: the jobs end with a pipe of this process's, and the
//! kernel ends pooler and supervisors with it.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod common;
// The fixture for the tests; not all of it is used here.
#[allow(dead_code, unused_imports, clippy::panic)]
#[path = "../src/store/postgres/test_server.rs"]
mod server;

use std::fs;
use std::io::{PipeWriter, pipe};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::Folder;
use postgres::{Client, NoTls};
use server::{Database, Server};

/// How long a holder may be silent: tokenrun's default.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// How late a heartbeat may be, in seconds.
const LATE: f64 = 2.0;

/// What a supervisor with its guard may take, in MiB.
const MEMORY: f64 = 8.0;

/// How often the rows are looked at. A heartbeat may have been later than was seen, by this.
const LOOK: Duration = Duration::from_millis(100);

/// They do not start all at once, as nodes do not.
const BETWEEN_STARTS: Duration = Duration::from_millis(25);

/// How long all holders may take to get, or to release, a token.
const PATIENCE: Duration = Duration::from_secs(90);

/// Of how many runs the memory is looked at.
const LOOKED_AT: usize = 50;

fn main() {
    let numbers: Vec<usize> = std::env::args()
        .filter_map(|word| word.parse().ok())
        .collect();
    let count = numbers.first().copied().unwrap_or(1_000);
    let watched = Duration::from_secs(numbers.get(1).map_or(180, |&seconds| seconds as u64));
    let folder = Folder::new("holders");
    let tokenrun = folder.tokenrun();
    let server = Server::start(&["fsync = on"]);
    let database = server.database();
    let pooler = Pooler::start(&server);
    let store = format!(
        "postgres://postgres@127.0.0.1:{}/{}",
        pooler.port, database.name
    );
    let mut watch = Watch::new(&server, &database, &pooler);
    // The first one makes the tables.
    assert!(
        run(&tokenrun, &store, "first", Stdio::null())
            .wait()
            .unwrap()
            .success()
    );
    let (reader, writer) = pipe().expect("a pipe");
    let mut holders: Vec<Child> = Vec::new();
    let mut alone = 0.0;
    for number in 0..count {
        if number == 1 {
            // While nothing of the program is shared with others.
            watch.until_held(1);
            alone = memory(&holders)[0];
        }
        let stdin = reader.try_clone().expect("a descriptor");
        holders.push(run(&tokenrun, &store, &format!("g{number}"), stdin.into()));
        std::thread::sleep(BETWEEN_STARTS);
    }
    drop(reader);
    watch.until_held(count);
    let seen = watch.watch(count, watched);
    let memory = memory(&holders);
    let ended = end(&mut watch, holders, writer);
    report(count, watched, &seen, (alone, &memory), ended);
}

/// A job that lasts as long as its standard input.
fn run(tokenrun: &Path, store: &str, group: &str, stdin: Stdio) -> Child {
    // Should this process be killed, so is the supervisor; then its guard ends the job.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(tokenrun);
    command.args(["-s", store, "-g", group, "--", "cat"]);
    command.stdin(stdin).stdout(Stdio::null());
    command.spawn().expect("setpriv starts (util-linux)")
}

struct Pooler {
    process: Child,
    port: u16,
}

impl Pooler {
    fn start(server: &Server) -> Self {
        let probe = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = probe.local_addr().unwrap().port();
        drop(probe);
        // In the server's own folder, which goes with it.
        let folder = server.socket();
        let file = folder.join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = user=postgres host={} port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n\
             default_pool_size = 20\nmax_client_conn = 3000\nlogfile = {}/pgbouncer.log\n",
            folder.display(),
            server.port(),
            folder.display()
        );
        fs::write(&file, text).expect("a file");
        let programs = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"];
        let found = programs.into_iter().find(|path| Path::new(path).exists());
        let found = found.expect("pgbouncer is missing: install it");
        // The signal for a parent's death comes after the change of user, which clears it.
        let mut command = Server::command(Path::new("setpriv"));
        command.args([
            "--pdeathsig",
            "KILL",
            "prlimit",
            "--nofile=4096",
            found,
            "-q",
        ]);
        let quiet = command
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = quiet.spawn().expect("it starts");
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < PATIENCE, "the pooler does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { process, port }
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Looks at the rows over a connection of its own, which is not counted.
struct Watch {
    client: Client,
    /// The server's process for that connection.
    own: u32,
    postmaster: u32,
    pooler: u32,
}

/// The measurements while all holders held.
struct Seen {
    /// The greatest age of a heartbeat, in seconds.
    oldest: f64,
    /// The most and the least that held at once.
    held: [i64; 2],
    /// How many rows were written.
    beats: i64,
    /// The processors' seconds of the server's processes.
    server: f64,
    pooler: f64,
    took: f64,
}

impl Watch {
    fn new(server: &Server, database: &Database<'_>, pooler: &Pooler) -> Self {
        let mut client = Client::connect(&database.url(), NoTls).expect("it connects");
        let own: i32 = client
            .query_one("SELECT pg_backend_pid()", &[])
            .unwrap()
            .get(0);
        Self {
            client,
            own: own.cast_unsigned(),
            postmaster: server.pid().cast_unsigned(),
            pooler: pooler.process.id(),
        }
    }

    /// How many hold, and the age of the oldest heartbeat in seconds.
    fn look(&mut self) -> (i64, f64) {
        let text = "SELECT count(*), \
                    coalesce(max(extract(epoch FROM clock_timestamp() - stamped_at)), 0)::float8 \
                    FROM tokenrun.tokens WHERE state = 'running'";
        let row = self
            .client
            .query_one(text, &[])
            .expect("the server answers");
        (row.get(0), row.get(1))
    }

    fn until_held(&mut self, count: usize) {
        let begun = Instant::now();
        while self.look().0 < count as i64 {
            assert!(begun.elapsed() < PATIENCE, "not everybody got a token");
            std::thread::sleep(LOOK);
        }
    }

    /// How many rows were written, by the server's statistics.
    fn writes(&mut self) -> i64 {
        // They are sent from time to time, and when a server's process is idle.
        std::thread::sleep(Duration::from_secs(2));
        let text = "SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'tokens'";
        self.client.query_one(text, &[]).unwrap().get(0)
    }

    fn watch(&mut self, count: usize, watched: Duration) -> Seen {
        let writes = self.writes();
        let (server, pooler) = (self.server_seconds(), processor_seconds(self.pooler));
        let begun = Instant::now();
        let (mut oldest, mut held) = (0.0_f64, [count as i64; 2]);
        while begun.elapsed() < watched {
            let (now_held, age) = self.look();
            oldest = oldest.max(age);
            held = [held[0].min(now_held), held[1].max(now_held)];
            std::thread::sleep(LOOK);
        }
        // Each for the same time, the wait for the statistics included.
        let beats = self.writes() - writes;
        Seen {
            oldest,
            held,
            beats,
            server: self.server_seconds() - server,
            pooler: processor_seconds(self.pooler) - pooler,
            took: begun.elapsed().as_secs_f64(),
        }
    }

    /// All of the server's processes, but the one that serves this watch.
    fn server_seconds(&self) -> f64 {
        let children = children(self.postmaster);
        let others = children.into_iter().filter(|pid| *pid != self.own);
        let all = others.chain([self.postmaster]);
        all.map(processor_seconds).sum()
    }
}

/// How many ended well, by their exit code and by the store.
fn end(watch: &mut Watch, holders: Vec<Child>, writer: PipeWriter) -> [i64; 4] {
    drop(writer);
    let mut well = 0;
    for mut holder in holders {
        well += i64::from(holder.wait().expect("it ends").success());
    }
    let mut number = |text: &str| -> i64 { watch.client.query_one(text, &[]).unwrap().get(0) };
    let succeeded =
        "SELECT count(*) FROM tokenrun.runs WHERE outcome = 'succeeded' AND token_group <> 'first'";
    let lost = "SELECT sum(losses)::bigint FROM tokenrun.token_status";
    let takeovers = "SELECT sum(takeovers)::bigint FROM tokenrun.token_status";
    [well, number(succeeded), number(lost), number(takeovers)]
}

fn report(
    count: usize,
    watched: Duration,
    seen: &Seen,
    (alone, memory): (f64, &[f64]),
    ended: [i64; 4],
) {
    let [well, succeeded, lost, takeovers] = ended;
    let late = seen.oldest + LOOK.as_secs_f64() - HEARTBEAT.as_secs_f64();
    let cost = seen.server / seen.beats as f64;
    let both = (seen.server + seen.pooler) / seen.beats as f64;
    let processors = std::thread::available_parallelism().unwrap().get();
    println!(
        "{count} holders for {watched:?}, 20 connections to the server, {processors} processors\n"
    );
    println!("| what | | bound |\n|---|---|---|");
    println!(
        "| that held, least and most | {}, {} | {count} |",
        seen.held[0], seen.held[1]
    );
    println!(
        "| runs that ended with 0; that the store says succeeded | {well}; {succeeded} | {count} |"
    );
    println!("| lost tokens; takeovers | {lost}; {takeovers} | 0; 0 |");
    println!("| the latest heartbeat, at most | {late:.2} s late | {LATE} s |");
    let worst = memory.last().copied().unwrap_or_default();
    let median = memory.get(memory.len() / 2).copied().unwrap_or_default();
    println!(
        "| PSS of a supervisor with its guard, where they are alone | {alone:.1} MiB | {MEMORY} MiB |"
    );
    println!(
        "| the same among the others, median and most | {median:.1}, {worst:.1} MiB | {MEMORY} MiB |"
    );
    println!(
        "| heartbeats | {} in {:.0} s, {:.0} a second | |",
        seen.beats,
        seen.took,
        seen.beats as f64 / seen.took
    );
    println!(
        "| the server, of one processor | {:.1} % | |",
        100.0 * seen.server / seen.took
    );
    println!(
        "| the pooler, of one processor | {:.1} % | |",
        100.0 * seen.pooler / seen.took
    );
    println!(
        "| a heartbeat, in the server | {:.2} ms of a processor | |",
        1e3 * cost
    );
    println!(
        "| a heartbeat, with the pooler | {:.2} ms of a processor | |",
        1e3 * both
    );
    let carried = |share: f64| share * processors as f64 / both * HEARTBEAT.as_secs_f64();
    println!(
        "| holders that half of {processors} processors carry, by that cost | {:.0} | |",
        carried(0.5)
    );
    let all_well = [well, succeeded, seen.held[0]]
        .iter()
        .all(|n| *n == count as i64);
    let no_loss = lost == 0 && takeovers == 0;
    assert!(
        all_well && no_loss && late <= LATE && worst.max(alone) <= MEMORY,
        "a bound is missed"
    );
}

/// Of the first ones, sorted, in MiB.
fn memory(holders: &[Child]) -> Vec<f64> {
    let sum = |holder: &Child| {
        let guard = children(holder.id()).first().copied().expect("a guard");
        (pss_kib(holder.id()) + pss_kib(guard)) / 1024.0
    };
    let mut sums: Vec<f64> = holders.iter().take(LOOKED_AT).map(sum).collect();
    sums.sort_by(f64::total_cmp);
    sums
}

fn pss_kib(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("/proc shows memory");
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let number = line.expect("a line").trim().trim_end_matches(" kB");
    number.parse().expect("a number")
}

fn children(of: u32) -> Vec<u32> {
    let path = format!("/proc/{of}/task/{of}/children");
    let text = fs::read_to_string(path).expect("/proc shows children");
    text.split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// To the nanosecond. A process that has ended is not counted: none does meanwhile, but for
/// the server's own helpers.
fn processor_seconds(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    let nanos = text
        .split(' ')
        .next()
        .and_then(|word| word.parse::<f64>().ok());
    nanos.unwrap_or_default() / 1e9
}
