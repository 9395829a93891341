//! What a run costs on PostgreSQL, as a ratio to `psql -Xc 'select 1'` in the same run.
//!
//! `cargo bench --bench postgres` prints a table. Each line is the median of interleaved
//! pairs: what else the machine does slows both sides of a pair. Each begins when the server's
//! process of the one before has ended, which takes the server longer than the client: else a
//! run would be slowed by what psql has left, and psql by what the run has left. The server is one
//! of the bench's own, on a disk that it waits for (`fsync` is on). It ends with the bench,
//! however that ends.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod common;
// The fixture for the tests; not all of it is used here.
#[allow(dead_code, unused_imports, clippy::panic)]
#[path = "../src/store/postgres/test_server.rs"]
mod server;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use common::processes::timed;
use common::{Folder, median, milliseconds};
use server::{Server, program};

/// Pairs per line; the first tenth is not counted.
const PAIRS: usize = 300;

const PASSWORD: &str = "a-password-of-usual-length";

fn main() {
    let folder = Folder::new("postgres");
    let tokenrun = folder.tokenrun();
    let server = Server::start(&["fsync = on"]);
    let ca = secure(&server, folder.path());
    println!("{PAIRS} interleaved pairs each; medians in ms; the ratio is to psql\n");
    println!("| a run of `true` | tokenrun | psql | ratio | bound | aim |");
    println!("|---|---|---|---|---|---|");
    let socket = server.socket().display().to_string();
    let port = server.port();
    let tls = format!("host=localhost port={port} user=scram dbname=postgres");
    for (what, place, [bound, aim]) in [
        (
            "Unix socket, trust",
            format!("host={socket} port={port} user=postgres dbname=postgres"),
            ["1.1", "1.0"],
        ),
        (
            "TLS (`require`), SCRAM",
            format!("{tls} sslmode=require"),
            ["0.75", "0.7"],
        ),
        (
            "TLS (`verify-full`), SCRAM",
            format!("{tls} sslmode=verify-full sslrootcert={}", ca.display()),
            ["0.65", "0.6"],
        ),
    ] {
        let [ours, theirs] = pairs(&server, &tokenrun, &place);
        let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
        println!(
            "| {what} | {:.2} | {:.2} | {ratio:.2} | {bound} | {aim} |",
            milliseconds(ours),
            milliseconds(theirs)
        );
    }
}

/// Lets in over TLS by SCRAM alone, over the Unix socket without asking. Returns the
/// certificate to trust.
fn secure(server: &Server, folder: &Path) -> PathBuf {
    let words = "req -x509 -newkey rsa:2048 -nodes -days 9 -subj /CN=localhost \
                 -addext subjectAltName=DNS:localhost -keyout server.key -out server.crt";
    let made = Command::new("openssl")
        .args(words.split_whitespace())
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("openssl is missing: install it");
    assert!(made.status.success(), "{made:?}");
    let data = server.data();
    for (name, mode) in [("server.crt", "644"), ("server.key", "600")] {
        // The server reads no key of another user's: it is its own user who writes it.
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let mut command = Server::command(Path::new("sh"));
        command.args(["-c", "printf %s \"$1\" > \"$2\"; chmod \"$3\" \"$2\"", "sh"]);
        command.arg(text).arg(data.join(name)).arg(mode);
        assert!(command.status().expect("sh starts").success());
    }
    let hba = "local all all trust\nhostssl all scram 127.0.0.1/32 scram-sha-256\n";
    std::fs::write(data.join("pg_hba.conf"), hba).unwrap();
    let role = format!("CREATE ROLE scram LOGIN SUPERUSER PASSWORD '{PASSWORD}'");
    server.sql("postgres", &role);
    server.sql("postgres", "ALTER SYSTEM SET ssl = on");
    server.ctl(&["reload"]);
    let is_secure = || server.sql("postgres", "SHOW ssl") == "on";
    while !is_secure() {
        std::thread::sleep(Duration::from_millis(20));
    }
    folder.join("server.crt")
}

fn pairs(server: &Server, tokenrun: &Path, place: &str) -> [Duration; 2] {
    let ours = || {
        let mut command = Command::new(tokenrun);
        command.args(["-q", "-s", place, "-g", "g", "--", "true"]);
        command
    };
    let theirs = || {
        // The program itself: Debian's on the PATH is a wrapper in Perl.
        let mut command = Command::new(program("psql"));
        command.args(["-Xc", "select 1", place]);
        command
    };
    let mut times = [Vec::new(), Vec::new()];
    for pair in 0..PAIRS + PAIRS / 10 {
        let pair_times = [ours(), theirs()].map(|command| {
            until_no_client_is_served(server);
            timed(plain(command), true)
        });
        for (times, time) in times.iter_mut().zip(pair_times) {
            if pair >= PAIRS / 10 {
                times.push(time);
            }
        }
    }
    times.map(median)
}

/// Waits until the server has no process of a client any more.
fn until_no_client_is_served(server: &Server) {
    let pid = server.pid();
    let children = format!("/proc/{pid}/task/{pid}/children");
    loop {
        let pids = std::fs::read_to_string(&children).expect("a kernel that tells children");
        let serves = |pid: &str| {
            let title = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let title = String::from_utf8_lossy(&title).into_owned();
            ["postgres: postgres ", "postgres: scram "]
                .iter()
                .any(|client| title.starts_with(client))
        };
        if !pids.split_whitespace().any(serves) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// With nothing of this process's environment.
fn plain(mut command: Command) -> Command {
    command.env_clear().env("PATH", "/usr/bin:/bin");
    command
        .env("HOME", "/nonexistent")
        .env("PGPASSWORD", PASSWORD);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}
