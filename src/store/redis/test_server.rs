//! A real Redis server of the tests' own, in a temporary directory. It ends when the process that
//! started it does, however that ends: another process waits for that.
//!
//! The unit tests compile it as a module here; `tests/` and `benches/` name this file by its path. So
//! it imports nothing of the crate.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, geteuid};

// Several crates name the files by their path.
#[path = "../test_server/folder.rs"]
#[allow(clippy::duplicate_mod)]
mod folder;
#[path = "../test_server/leap.rs"]
#[allow(clippy::duplicate_mod)]
mod leap;
#[path = "../test_server/reserved_port.rs"]
#[allow(clippy::duplicate_mod)]
mod reserved_port;

use self::leap::Leap;
use self::reserved_port::ReservedPort;

/// How long a server may take to start.
const START: Duration = Duration::from_secs(20);

/// A server that runs, or was stopped.
pub(crate) struct Server {
    folder: PathBuf,
    port: ReservedPort,
    configuration: Vec<String>,
    leap: Option<Leap>,
    child: Mutex<Option<Child>>,
    /// When its other end sees the end of this pipe, the server is killed.
    _lifeline: ChildStdin,
    keeper: Child,
}

/// A program of Redis's or Valkey's on the PATH; `TOKENRUN_TEST_REDIS` names another folder.
pub(crate) fn program(name: &str) -> PathBuf {
    let folder = std::env::var_os("TOKENRUN_TEST_REDIS").into_iter();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = folder
        .map(PathBuf::from)
        .chain(std::env::split_paths(&path));
    let names = [name.to_owned(), name.replace("redis", "valkey")];
    let found = folders.find_map(|folder| {
        let paths = names.iter().map(|name| folder.join(name));
        paths.into_iter().find(|path| path.exists())
    });
    found.unwrap_or_else(|| panic!("{name} is missing: install redis-server (tests/run-all does)"))
}

/// The user that the server runs as, where this is root.
fn servant() -> Option<User> {
    if !geteuid().is_root() {
        return None;
    }
    let named = |name| User::from_name(name).ok().flatten();
    named("redis").or_else(|| named("nobody"))
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
    command.current_dir("/").env("LC_ALL", "C");
    command.stdin(Stdio::null());
    command
}

impl Server {
    /// The one that all tests of a program share.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Server> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&[]))
    }

    /// A server of a test's own, without persistence, with these lines of configuration.
    pub(crate) fn start(configuration: &[&str]) -> Self {
        let server = Self::prepare(configuration);
        server.launch();
        server
    }

    /// A server whose wall clock the test sets, by this library (`tests/programs/leap.c`).
    pub(crate) fn start_leaping(configuration: &[&str], library: &Path) -> Self {
        let mut server = Self::prepare(configuration);
        server.leap = Some(Leap::new(library, &server.folder));
        server.launch();
        server
    }

    /// Sets the clock of such a server by so many seconds from the right time, and waits until it has noticed.
    pub(crate) fn leap(&self, seconds: i64) {
        self.leap.as_ref().unwrap().set(seconds);
        self.wait_until("the leap", || {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            let ahead = self.time() - i64::try_from(now.as_secs()).unwrap();
            (ahead - seconds).abs() < 60
        });
    }

    /// The time of its own that it has read last, in seconds.
    fn time(&self) -> i64 {
        let info = self.cli(&["INFO", "server"]);
        let mut lines = info.lines();
        let micros = lines.find_map(|line| line.strip_prefix("server_time_usec:"));
        micros.unwrap().trim().parse::<i64>().unwrap() / 1_000_000
    }

    /// A server that is not started yet.
    pub(crate) fn prepare(configuration: &[&str]) -> Self {
        let folder = folder::create("redis", servant().as_ref());
        let port = ReservedPort::take();
        // Before the server, so that it never outlives this process.
        let script = format!(
            "read line; kill -KILL $(cat '{folder}/pid'); rm -rf '{folder}'",
            folder = folder.display()
        );
        let mut keeper = Command::new("/bin/sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            _lifeline: keeper.stdin.take().unwrap(),
            keeper,
            folder,
            port,
            configuration: configuration.iter().map(ToString::to_string).collect(),
            leap: None,
            child: Mutex::new(None),
        }
    }

    /// Starts it, on the data that its directory has, and waits until it answers.
    pub(crate) fn launch(&self) {
        self.launch_under(&[]);
    }

    /// Launches the server by a program that executes it; that program's words come first.
    pub(crate) fn launch_under(&self, under: &[&str]) {
        self.spawn(under);
        self.wait_until("an answer", || self.answers());
    }

    /// Starts it, and does not wait until it has loaded its data.
    pub(crate) fn launch_without_waiting(&self) {
        self.spawn(&[]);
    }

    fn spawn(&self, under: &[&str]) {
        let folder = self.folder.display();
        let base = [
            format!("port {}", self.port.number()),
            "bind 127.0.0.1".into(),
            format!("unixsocket {folder}/socket"),
            "unixsocketperm 777".into(),
            format!("dir {folder}"),
            format!("pidfile {folder}/pid"),
            format!("logfile {folder}/log"),
            "save \"\"".into(),
            "daemonize no".into(),
            "enable-debug-command yes".into(),
            "repl-diskless-sync-delay 0".into(),
        ];
        let lines = base.iter().chain(&self.configuration);
        let text = lines.map(|line| format!("{line}\n")).collect::<String>();
        let file = self.folder.join("conf");
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
        let plain = server_command(&program("redis-server"));
        let words = [plain.get_program()].into_iter().chain(plain.get_args());
        let words: Vec<_> = words.map(std::ffi::OsStr::to_owned).collect();
        let under = under.iter().map(|word| std::ffi::OsString::from(*word));
        let words: Vec<_> = under.chain(words).collect();
        let child = Command::new(&words[0])
            .args(&words[1..])
            .arg(&file)
            .current_dir("/")
            .env("LC_ALL", "C")
            .envs(self.leap.iter().flat_map(Leap::variables))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::fs::write(self.folder.join("pid"), child.id().to_string()).unwrap();
        *self.child.lock().unwrap() = Some(child);
    }

    /// True if it answers, even if only with an error.
    fn answers(&self) -> bool {
        std::os::unix::net::UnixStream::connect(self.socket()).is_ok()
            && !["Could not connect", "LOADING"]
                .iter()
                .any(|no| self.try_cli(&["PING"]).contains(no))
    }

    /// Waits for something that happens soon.
    pub(crate) fn wait_until(&self, what: &str, mut happened: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !happened() {
            let log = || std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(begun.elapsed() < START, "no {what}: {}", log());
            // A look may start a process: what takes long is looked at less often.
            let pause = begun.elapsed() / 20;
            std::thread::sleep(pause.clamp(Duration::from_millis(5), Duration::from_millis(50)));
        }
    }

    fn signal(&self, signal: Signal) {
        let id = self.child.lock().unwrap().as_ref().unwrap().id();
        kill(Pid::from_raw(i32::try_from(id).unwrap()), signal).unwrap();
    }

    /// Kills it, as a power cut does.
    pub(crate) fn kill(&self) {
        if let Some(mut child) = self.child.lock().unwrap().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Removes the data of the server, which is stopped.
    pub(crate) fn forget(&self) {
        let _ = std::fs::remove_dir_all(self.folder.join("appendonlydir"));
        let _ = std::fs::remove_file(self.folder.join("dump.rdb"));
    }

    /// Stops it in the middle of whatever it does.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Kills it and starts it again.
    pub(crate) fn restart(&self) {
        self.kill();
        self.launch();
    }

    /// Makes it follow another server, and waits until it has all of its data.
    pub(crate) fn follow(&self, master: &Self) {
        self.cli(&["REPLICAOF", "127.0.0.1", &master.port.number().to_string()]);
        self.wait_until("replication", || {
            self.cli(&["INFO", "replication"])
                .contains("master_link_status:up")
        });
    }

    /// Waits until this master counts a replica as near enough for `min-replicas-to-write`.
    pub(crate) fn until_a_replica_is_near(&self) {
        self.wait_until("a replica that is near", || {
            self.cli(&["INFO", "replication"])
                .contains("min_slaves_good_slaves:1")
        });
    }

    /// Ends its following: it accepts writes from now on.
    pub(crate) fn promote(&self) {
        self.cli(&["REPLICAOF", "NO", "ONE"]);
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port.number()
    }

    /// The server's URL over the Unix socket.
    pub(crate) fn url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    /// The server's URL over TCP.
    pub(crate) fn tcp_url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port.number())
    }

    /// A prefix of a test's own.
    pub(crate) fn prefix() -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        format!("t{}", NUMBER.fetch_add(1, Ordering::Relaxed))
    }

    /// What redis-cli prints for a command.
    pub(crate) fn cli(&self, words: &[&str]) -> String {
        let text = self.try_cli(words);
        assert!(
            !text.starts_with("ERR") && !text.contains("Could not connect"),
            "{words:?}: {text}"
        );
        text
    }

    /// The output of a command of the client, errors too.
    pub(crate) fn try_cli(&self, words: &[&str]) -> String {
        let output = Command::new(program("redis-cli"))
            .env_remove("REDISCLI_AUTH")
            .arg("-s")
            .arg(self.socket())
            .args(words)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).trim().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
        self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Independent servers, of which a majority is one store.
pub(crate) struct Quorum(pub(crate) Vec<Server>);

impl Quorum {
    /// Those that all tests of a program share.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Quorum> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(3))
    }

    /// So many servers, without persistence.
    pub(crate) fn start(count: usize) -> Self {
        Self((0..count).map(|_| Server::start(&[])).collect())
    }

    /// The store of these servers with this prefix.
    pub(crate) fn url(&self, prefix: &str) -> String {
        let hosts = self.0.iter().map(|it| format!("127.0.0.1:{}", it.port()));
        let hosts: Vec<String> = hosts.collect();
        format!("redis://{}/0?quorum&prefix={prefix}", hosts.join(","))
    }

    /// How many have joined the store with this prefix, since they were started.
    pub(crate) fn joined(&self, prefix: &str) -> usize {
        let is_sure = |server: &&Server| {
            let info = server.cli(&["INFO", "server"]);
            let run = info.lines().find_map(|line| line.strip_prefix("run_id:"));
            let member = server.cli(&["HGET", &format!("{{{prefix}}}:member"), "process"]);
            !member.trim().is_empty() && run.is_some_and(|run| run.starts_with(member.trim()))
        };
        self.0.iter().filter(is_sure).count()
    }
}
