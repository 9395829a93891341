//! How long a token takes from one job to the next that waits in line, next to `flock`
//! and, where it is installed, `etcdctl lock`; and what an idle waiter costs.
//!
//! `cargo bench --bench handover` prints two tables. A hand-over is the time from the last
//! line of one job to the first line of the next, by the jobs' own clocks.

#![allow(clippy::expect_used, clippy::unwrap_used)]

// The fixture for the tests; not all of it is used here.
#[allow(dead_code, unused_imports, clippy::panic)]
#[path = "../tests/support/postgres.rs"]
mod server;

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use server::{Database, Server};

/// Hand-overs per line; the first tenth is not counted.
const TIMES: usize = 200;

/// For how long an idle waiter is watched.
const IDLE: Duration = Duration::from_secs(20);

/// What the jobs run: the time when it begins, a while in which the next gets into line,
/// the time when it ends. In the shell itself, as precisely as bash can.
const JOB: &str = "echo b $EPOCHREALTIME >> \"$0\"; sleep 0.06; echo e $EPOCHREALTIME >> \"$0\"";

fn main() {
    let folder = Folder::new();
    let server = Server::start(&[]);
    let database = server.database();
    println!("{TIMES} hand-overs each, in ms\n");
    println!("| from one job to the next | median | p95 | bound |");
    println!("|---|---|---|---|");
    let sqlite = folder.file("tokens.db");
    let sqlite = sqlite.to_str().unwrap();
    let postgres = url(&database);
    handover("tokenrun, SQLite", "5", &folder, || tokenrun(sqlite));
    handover("tokenrun, PostgreSQL", "8", &folder, || tokenrun(&postgres));
    let lock = folder.file("lock");
    handover("flock", "", &folder, || {
        let mut command = Command::new("flock");
        command.arg(&lock);
        command
    });
    if let Some(etcd) = Etcd::start(&folder) {
        handover("etcdctl lock", "", &folder, || etcd.lock());
    }
    println!("\n| an idle waiter for {IDLE:?} | share of a processor | bound |");
    println!("|---|---|---|");
    idle("SQLite", sqlite);
    idle("PostgreSQL", &postgres);
}

fn url(database: &Database) -> String {
    database.url()
}

fn tokenrun(store: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tokenrun"));
    command.args(["-q", "-s", store, "-g", "g", "--keep=0", "--wait", "--"]);
    command
}

/// Three at a time: one runs, and two are in line.
fn handover(what: &str, bound: &str, folder: &Folder, tool: impl Fn() -> Command) {
    let log = folder.file("log");
    let _ = fs::remove_file(&log);
    let start = || -> Child {
        let mut command = tool();
        command.args(["bash", "-c", JOB]).arg(&log);
        command.stdin(Stdio::null()).spawn().expect("it starts")
    };
    let mut running: std::collections::VecDeque<Child> = (0..3).map(|_| start()).collect();
    for _ in 0..TIMES + TIMES / 10 {
        // They come in the order of their arrival; where they do not, the last may have
        // ended already.
        let mut first = running.pop_front().expect("three run");
        // The next one starts while a job runs: its own start is no part of a hand-over.
        let status = first.wait().expect("it ends");
        std::thread::sleep(Duration::from_millis(25));
        running.push_back(start());
        assert!(status.success(), "{what}");
    }
    for mut child in running {
        child.wait().expect("it ends");
    }
    let text = fs::read_to_string(&log).expect("the jobs wrote");
    let times: Vec<(&str, f64)> = text.lines().map(stamp).collect();
    let mut gaps: Vec<f64> = times
        .windows(2)
        .filter(|pair| pair[0].0 == "e" && pair[1].0 == "b")
        .map(|pair| (pair[1].1 - pair[0].1) * 1_000.0)
        .skip(TIMES / 10)
        .collect();
    assert!(
        gaps.len() >= TIMES,
        "{what}: jobs overlap: {} gaps",
        gaps.len()
    );
    gaps.sort_by(f64::total_cmp);
    let (median, p95) = (gaps[gaps.len() / 2], gaps[gaps.len() * 95 / 100]);
    println!("| {what} | {median:.1} | {p95:.1} | {bound} |");
}

fn stamp(line: &str) -> (&str, f64) {
    let (word, time) = line.split_once(' ').expect("two words");
    (word, time.replace(',', ".").parse().expect("a time"))
}

/// Supervisor and guard together, by the kernel's account of both.
fn idle(what: &str, store: &str) {
    let mut holder = start_job(tokenrun(store).args(["sh", "-c", "echo; read line"]));
    let mut waiter = tokenrun(store).arg("true").spawn().expect("it starts");
    std::thread::sleep(Duration::from_secs(3));
    let pids: Vec<u32> = std::iter::once(waiter.id())
        .chain(children(waiter.id()))
        .collect();
    let used = || -> f64 { pids.iter().map(|pid| processor_seconds(*pid)).sum() };
    let before = used();
    std::thread::sleep(IDLE);
    let share = (used() - before) / IDLE.as_secs_f64();
    println!("| {what} | {:.3} % | 0.1 % |", share * 100.0);
    drop(holder.stdin.take());
    holder.wait().expect("it ends");
    waiter.wait().expect("it ends");
}

fn start_job(command: &mut Command) -> Child {
    use std::io::Read as _;
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = piped.spawn().expect("it starts");
    let out = child.stdout.as_mut().expect("a pipe");
    out.read_exact(&mut [0]).expect("it holds");
    child
}

/// All threads' time, to the nanosecond: /proc/PID/stat counts in hundredths of a second.
fn processor_seconds(pid: u32) -> f64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("/proc shows threads");
    let nanos = tasks.map(|task| {
        let path = task.expect("a thread").path().join("schedstat");
        let text = fs::read_to_string(path).unwrap_or_default();
        text.split(' ')
            .next()
            .and_then(|n| n.parse::<f64>().ok())
            .unwrap_or(0.0)
    });
    nanos.sum::<f64>() / 1e9
}

fn children(of: u32) -> Vec<u32> {
    let path = format!("/proc/{of}/task/{of}/children");
    let text = fs::read_to_string(path).expect("/proc shows children");
    text.split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// A server of its own, if etcd is installed.
struct Etcd {
    child: Child,
    endpoint: String,
}

impl Etcd {
    fn start(folder: &Folder) -> Option<Self> {
        let (client, peer) = (free_port(), free_port());
        let endpoint = format!("http://127.0.0.1:{client}");
        let peer = format!("http://127.0.0.1:{peer}");
        let child = Command::new("etcd")
            .arg("--data-dir")
            .arg(folder.file("etcd"))
            .args(["--listen-client-urls", &endpoint])
            .args(["--advertise-client-urls", &endpoint])
            .args(["--listen-peer-urls", &peer])
            .args(["--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let etcd = Self { child, endpoint };
        for _ in 0..100 {
            let health = etcd
                .client()
                .args(["endpoint", "health"])
                .stderr(Stdio::null())
                .stdout(Stdio::null())
                .status();
            match health {
                Ok(status) if status.success() => return Some(etcd),
                Ok(_) => std::thread::sleep(Duration::from_millis(100)),
                Err(_) => return None,
            }
        }
        None
    }

    fn client(&self) -> Command {
        let mut command = Command::new("etcdctl");
        command
            .env("ETCDCTL_API", "3")
            .args(["--endpoints", &self.endpoint]);
        command
    }

    fn lock(&self) -> Command {
        let mut command = self.client();
        command.args(["lock", "g", "--"]);
        command
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // It is this bench's own child.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it has one").port()
}

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("tokenrun-handover-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
