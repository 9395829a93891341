//! A real PostgreSQL server of the tests' own, in a temporary directory. It ends when the
//! process that started it does, however that ends: another process waits for that.
//!
//! The unit tests compile it as a module here; `tests/` and `benches/` name this file by its path. So
//! it imports nothing of the crate.

use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::unistd::{User, geteuid};

#[path = "../test_server/folder.rs"]
#[allow(clippy::duplicate_mod)]
mod folder;
#[allow(clippy::duplicate_mod)]
#[path = "../test_server/libraries.rs"]
mod libraries;
#[path = "../test_server/reserved_port.rs"]
#[allow(clippy::duplicate_mod)]
mod reserved_port;

use self::libraries::{library, unsynced};
use self::reserved_port::ReservedPort;

/// A server that runs.
pub(crate) struct Server {
    folder: PathBuf,
    port: ReservedPort,
    /// When its other end sees the end of this pipe, the server is stopped.
    _lifeline: ChildStdin,
    keeper: Child,
}

/// A program of PostgreSQL's: on the PATH, or where Debian has it.
pub(crate) fn program(name: &str) -> PathBuf {
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    folders.sort();
    // The newest first; Debian's psql on the PATH is a wrapper in Perl.
    folders.reverse();
    folders.extend(std::env::split_paths(&on_path));
    folders
        .into_iter()
        .map(|folder| folder.join(name))
        .find(|path| path.exists())
        .unwrap_or_else(|| {
            panic!("{name} is missing: install PostgreSQL 15 or newer (tests/run-all does)")
        })
}

/// The user that the server runs as, where this is root.
fn servant() -> Option<User> {
    if !geteuid().is_root() {
        return None;
    }
    let named = |name| User::from_name(name).ok().flatten();
    named("postgres").or_else(|| named("nobody"))
}

/// A command as that user.
fn server_command(program: &Path) -> Command {
    let mut command = match servant() {
        None => Command::new(program),
        Some(user) => {
            let mut command = Command::new("setpriv");
            command
                .arg(format!("--reuid={}", user.uid))
                .arg(format!("--regid={}", user.gid))
                .arg("--clear-groups")
                .arg(program);
            command
        }
    };
    command
        .current_dir("/")
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    if let Some(library) = unsynced() {
        command.env("LD_PRELOAD", library);
    }
    command
}

fn done(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}{errors}");
    text
}

impl Server {
    /// A command as the server's user.
    pub(crate) fn command(program: &Path) -> Command {
        server_command(program)
    }

    /// The one that all tests of a program share.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Server> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&[]))
    }

    /// A server of a test's own, with these lines of configuration.
    pub(crate) fn start(configuration: &[&str]) -> Self {
        let folder = Self::folder();
        let data = folder.join("data");
        done(
            server_command(&program("initdb"))
                .arg("-D")
                .arg(&data)
                .args([
                    "-A",
                    "trust",
                    "-N",
                    "-E",
                    "UTF8",
                    "--locale=C",
                    "-U",
                    "postgres",
                ]),
        );
        Self::start_in(folder, configuration)
    }

    /// A folder that the server's user owns.
    pub(crate) fn folder() -> PathBuf {
        folder::create("pg", servant().as_ref())
    }

    /// A server on the data that is in this folder.
    pub(crate) fn start_in(folder: PathBuf, configuration: &[&str]) -> Self {
        let port = ReservedPort::take();
        configure(&folder, port.number(), configuration);
        // Before the server, so that it never outlives this process.
        let script = format!(
            "read line; '{}' -D '{folder}/data' -m immediate stop; rm -rf '{folder}'",
            program("pg_ctl").display(),
            folder = folder.display()
        );
        let mut keeper = server_command(Path::new("/bin/sh"))
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self {
            _lifeline: keeper.stdin.take().unwrap(),
            keeper,
            folder,
            port,
        };
        server.ctl(&["-w", "start"]);
        server
    }

    /// True if the server takes connections: not while it recovers.
    pub(crate) fn is_ready(&self) -> bool {
        let mut ready = server_command(&program("pg_isready"));
        ready.args([
            "-q",
            "-h",
            "127.0.0.1",
            "-p",
            &self.port.number().to_string(),
        ]);
        ready.status().unwrap().success()
    }

    /// A standby that follows, from a copy of this server's data.
    pub(crate) fn standby(&self) -> Self {
        let folder = Self::folder();
        self.copy_to(&folder);
        Self::start_in(folder, &[&self.upstream(), "hot_standby = on"])
    }

    /// This server, which is stopped, becomes a standby of another: in its old place, with the
    /// other's data.
    pub(crate) fn rejoin(&self, primary: &Self) {
        std::fs::remove_dir_all(self.data()).unwrap();
        primary.copy_to(&self.folder);
        let configuration = [&*primary.upstream(), "hot_standby = on"];
        configure(&self.folder, self.port.number(), &configuration);
        self.ctl(&["-w", "start"]);
    }

    fn copy_to(&self, folder: &Path) {
        let mut copy = server_command(&program("pg_basebackup"));
        copy.args(["-h", "127.0.0.1", "-U", "postgres"]);
        copy.args(["-R", "-X", "stream", "-c", "fast"]);
        copy.args(["-p", &self.port.number().to_string(), "-D"])
            .arg(folder.join("data"));
        done(&mut copy);
    }

    fn upstream(&self) -> String {
        let port = self.port.number();
        format!("primary_conninfo = 'host=127.0.0.1 port={port} user=postgres'")
    }

    /// What pg_ctl does: start, stop, restart, promote, reload.
    pub(crate) fn ctl(&self, words: &[&str]) {
        self.ctl_by(server_command(&program("pg_ctl")), words);
    }

    /// Runs `pg_ctl` by a program that executes it as the server's user; that program's words come
    /// first.
    pub(crate) fn ctl_under(&self, under: &[&str], words: &[&str]) {
        let plain = server_command(&program("pg_ctl"));
        let mut command = Command::new(under[0]);
        command.args(&under[1..]).arg(plain.get_program());
        let environment = plain
            .get_envs()
            .map(|(name, value)| (name, value.unwrap_or_default()));
        command.args(plain.get_args()).envs(environment);
        self.ctl_by(command.current_dir("/").stdin(Stdio::null()), words);
    }

    /// Runs `pg_ctl`; says why if it did not succeed.
    pub(crate) fn try_ctl(&self, words: &[&str]) -> Result<(), String> {
        self.try_ctl_by(&mut server_command(&program("pg_ctl")), words)
    }

    fn ctl_by(&self, mut command: impl std::borrow::BorrowMut<Command>, words: &[&str]) {
        let done = self.try_ctl_by(command.borrow_mut(), words);
        done.unwrap_or_else(|why| panic!("{why}"));
    }

    fn try_ctl_by(&self, command: &mut Command, words: &[&str]) -> Result<(), String> {
        let data = self.data();
        command
            .arg("-D")
            .arg(data)
            .arg("-l")
            .arg(self.log())
            .args(words);
        // Its child, the server, must not keep a pipe of this process's open.
        let status = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        if status.success() {
            return Ok(());
        }
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        Err(format!("{command:?}: {log}"))
    }

    /// What it has written.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Starts it again, with its clock this much off: `+3600s`.
    pub(crate) fn start_with_clock(&self, offset: &str) {
        let faketime = library("faketime/libfaketime.so.1");
        let libraries = [faketime.as_path()].into_iter().chain(unsynced());
        let libraries: Vec<_> = libraries.map(Path::to_string_lossy).collect();
        let preload = format!("LD_PRELOAD={}", libraries.join(":"));
        let clock = format!("FAKETIME={offset}");
        // What a server waits for goes by the monotonic clock, which stays.
        let mut command = server_command(Path::new("env"));
        command.args(["FAKETIME_DONT_FAKE_MONOTONIC=1", &clock, &preload]);
        command.arg(program("pg_ctl"));
        self.ctl_by(command, &["-w", "start"]);
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The directory of its Unix socket.
    pub(crate) fn socket(&self) -> &Path {
        &self.folder
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port.number()
    }

    /// The server's first process.
    pub(crate) fn pid(&self) -> i32 {
        let text = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        text.lines().next().unwrap().parse().unwrap()
    }

    /// Runs these statements with psql, as the administrator.
    pub(crate) fn sql(&self, database: &str, statements: &str) -> String {
        let text = done(
            Command::new(program("psql"))
                .env_clear()
                .args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-h"])
                .arg(&self.folder)
                .args([
                    "-p",
                    &self.port.number().to_string(),
                    "-d",
                    database,
                    "-c",
                    statements,
                ]),
        );
        text.trim().to_owned()
    }

    /// An empty private database, and its connection string.
    pub(crate) fn database(&self) -> Database<'_> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("db{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        Database { server: self, name }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The end of the lifeline comes with this process's; a test's own server ends now.
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
        let mut stop = server_command(&program("pg_ctl"));
        stop.arg("-D")
            .arg(self.data())
            .args(["-m", "immediate", "stop"]);
        let _ = stop.stdout(Stdio::null()).stderr(Stdio::null()).status();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A database of a test's own.
pub(crate) struct Database<'a> {
    pub(crate) server: &'a Server,
    pub(crate) name: String,
}

impl Database<'_> {
    /// Over the Unix socket.
    pub(crate) fn url(&self) -> String {
        let socket = self
            .server
            .socket()
            .display()
            .to_string()
            .replace('/', "%2F");
        format!(
            "postgres://postgres@{socket}:{}/{}",
            self.server.port(),
            self.name
        )
    }

    /// Over TCP.
    pub(crate) fn tcp_url(&self) -> String {
        let port = self.server.port();
        format!("postgres://postgres@127.0.0.1:{port}/{}", self.name)
    }

    pub(crate) fn sql(&self, statements: &str) -> String {
        self.server.sql(&self.name, statements)
    }
}

/// Writes the configuration of the server in this folder.
fn configure(folder: &Path, port: u16, own: &[&str]) {
    let lines = [
        format!("port = {port}"),
        "listen_addresses = '127.0.0.1'".into(),
        format!("unix_socket_directories = '{}'", folder.display()),
        "max_connections = 150".into(),
        // Else a restart may have lost commits, and what follows is observed (clause 0). The tests'
        // server only says so.
        "fsync = on".into(),
        "shared_buffers = 16MB".into(),
    ];
    let own = own.iter().map(ToString::to_string);
    let text: Vec<String> = lines.into_iter().chain(own).collect();
    let file = folder.join("data/postgresql.auto.conf");
    std::fs::write(file, text.join("\n") + "\n").unwrap();
}
