//! A real MariaDB or MySQL server of the tests' own, in a temporary directory. It ends when the process
//! that started it does, however that ends: another process waits for that.
//!
//! The unit tests compile it as a module here; `tests/` and `benches/` name this file by its path. So
//! it imports nothing of the crate.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

// Several crates name these files by their paths.
#[path = "../test_server/folder.rs"]
#[allow(clippy::duplicate_mod)]
mod folder;
#[path = "test_server/fresh.rs"]
mod fresh;
#[path = "test_server/kind.rs"]
mod kind;
#[path = "../test_server/reserved_port.rs"]
#[allow(clippy::duplicate_mod)]
mod reserved_port;

use self::fresh::Fresh;
use self::kind::servant;
pub(crate) use self::kind::{Kind, program};
use self::reserved_port::ReservedPort;

/// How long a server may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server's own log. MySQL adds an ending to a name that has none.
const LOG: &str = "log.err";

/// The administrator over TCP.
const BY_TCP: &str = "root@'127.0.0.1'";

static STARTED: AtomicUsize = AtomicUsize::new(0);

/// A server that runs.
pub(crate) struct Server {
    folder: PathBuf,
    kind: Kind,
    port: ReservedPort,
    /// When its other end sees the end of this pipe, the server is stopped.
    _lifeline: ChildStdin,
    keeper: Child,
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
    /// The one that all tests of a program share.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Server> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&[]))
    }

    /// How many servers this process has started.
    pub(crate) fn started() -> usize {
        STARTED.load(Ordering::Relaxed)
    }

    /// A server of a test's own, with these lines of configuration.
    pub(crate) fn start(configuration: &[&str]) -> Self {
        STARTED.fetch_add(1, Ordering::Relaxed);
        Self::start_of(Kind::usual(), configuration)
    }

    /// The one of this kind that all tests of a program share.
    pub(crate) fn shared_of(kind: Kind) -> &'static Self {
        static OTHER: OnceLock<Server> = OnceLock::new();
        if kind == Kind::usual() {
            return Self::shared();
        }
        OTHER.get_or_init(|| Self::start_of(kind, &[]))
    }

    /// A started server of this kind.
    pub(crate) fn start_of(kind: Kind, configuration: &[&str]) -> Self {
        let folder = Self::folder_of(kind);
        Fresh::of(kind).copy_to(&folder);
        let server = Self::start_in(kind, folder, configuration);
        if kind == Kind::Mysql {
            // As in MariaDB. A replica has one of its own.
            let user = format!("CREATE USER {BY_TCP}; GRANT ALL ON *.* TO {BY_TCP}");
            server.sql("mysql", &format!("SET sql_log_bin = 0; {user}"));
        }
        server
    }

    /// A folder that the server's user owns.
    pub(crate) fn folder_of(kind: Kind) -> PathBuf {
        let servant = servant();
        match kind {
            Kind::Mariadb => folder::create("my", servant.as_ref()),
            Kind::Mysql => folder::create_in(&kind.root().join("tmp"), "my", servant.as_ref()),
        }
    }

    /// A server on the data that is in this folder.
    pub(crate) fn start_in(kind: Kind, folder: PathBuf, configuration: &[&str]) -> Self {
        let port = ReservedPort::take();
        // Before the server, so that it never outlives this process. The server's own file has its id. In the server's
        // root, for its user may not be able to reach that from here.
        let script = format!(
            "read line; kill -9 $(cat '{folder}/pid'); rm -rf '{folder}'",
            folder = kind.seen(&folder)
        );
        let (keeper, lifeline) = kind.keeper(&script);
        let server = Self {
            _lifeline: lifeline,
            keeper,
            folder,
            kind,
            port,
        };
        server.configure(configuration);
        server.run();
        server
    }

    /// Writes the configuration, which counts from the next start.
    pub(crate) fn configure(&self, own: &[&str]) {
        let folder = self.kind.seen(&self.folder);
        let lines = [
            "[mysqld]".to_owned(),
            format!("datadir = {folder}/data"),
            format!("socket = {folder}/socket"),
            format!("pid-file = {folder}/pid"),
            format!("log-error = {folder}/{LOG}"),
            format!("tmpdir = {folder}"),
            format!("port = {}", self.port.number()),
            "bind-address = 127.0.0.1".into(),
            "max_connections = 150".into(),
            "innodb_buffer_pool_size = 32M".into(),
            "skip-name-resolve".into(),
            match self.kind {
                Kind::Mariadb => String::new(),
                Kind::Mysql => "mysqlx = OFF\nsecure-file-priv = NULL".into(),
            },
            // Tests have a library for it.
            if cfg!(test) {
                String::new()
            } else {
                "innodb_flush_method = nosync".into()
            },
            // Many servers run at once: their files are small.
            match self.kind {
                Kind::Mariadb => "innodb_log_file_size = 16M".into(),
                Kind::Mysql => "innodb_redo_log_capacity = 16M".into(),
            },
        ];
        let own = own.iter().map(ToString::to_string);
        let text: Vec<String> = lines.into_iter().chain(own).collect();
        std::fs::write(self.folder.join("my.cnf"), text.join("\n") + "\n").unwrap();
    }

    /// Starts the server, and waits until it takes connections.
    pub(crate) fn run(&self) {
        self.run_by(match self.kind {
            Kind::Mariadb => self.kind.command("mariadbd"),
            Kind::Mysql => self.kind.command("/usr/sbin/mysqld"),
        });
    }

    fn run_by(&self, mut command: Command) {
        let _ = std::fs::remove_file(self.folder.join("pid"));
        let mut child = command
            .arg(format!(
                "--defaults-file={}",
                self.kind.seen(&self.folder.join("my.cnf"))
            ))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while !self.is_ready() {
            let log = || std::fs::read_to_string(self.log()).unwrap_or_default();
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "the server ended: {}", log());
            assert!(
                begun.elapsed() < PATIENCE,
                "the server does not start: {}",
                log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        // It is waited for, so that it does not stay a zombie.
        std::thread::spawn(move || child.wait());
    }

    /// True if the server takes connections.
    pub(crate) fn is_ready(&self) -> bool {
        // A client costs more than a look at the socket.
        if UnixStream::connect(self.socket()).is_err() {
            return false;
        }
        let mut client = self.client();
        client.args(["-e", "SELECT 1"]);
        let client = client.stdout(Stdio::null()).stderr(Stdio::null());
        client.status().unwrap().success()
    }

    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }

    /// The server's process.
    pub(crate) fn pid(&self) -> Pid {
        let text = std::fs::read_to_string(self.folder.join("pid")).unwrap();
        Pid::from_raw(text.trim().parse().unwrap())
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    /// Ends it with this signal, and waits for its end.
    pub(crate) fn stop(&self, by: Signal) {
        let pid = self.pid();
        kill(pid, by).unwrap();
        let begun = Instant::now();
        while kill(pid, None).is_ok() {
            assert!(begun.elapsed() < PATIENCE, "the server does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// What it has written.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join(LOG)
    }

    /// The path of its Unix socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port.number()
    }

    /// The client, as the administrator over the socket.
    pub(crate) fn client(&self) -> Command {
        let mut client = Command::new(program("mariadb"));
        client
            .env_clear()
            .arg("--no-defaults")
            // A newer client wants a certificate that it knows, or none.
            .args(["-N", "-B", "-u", "root", "--skip-ssl"]);
        client.arg(format!("--socket={}", self.socket().display()));
        client
    }

    /// Runs these statements as the administrator.
    pub(crate) fn sql(&self, database: &str, statements: &str) -> String {
        let mut client = self.client();
        client.args(["-D", database, "-e", statements]);
        done(&mut client).trim().to_owned()
    }

    /// An empty private database, and its connection string.
    pub(crate) fn database(&self) -> Database<'_> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("db{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        self.sql("mysql", &format!("CREATE DATABASE {name}"));
        Database { server: self, name }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The end of the lifeline comes with this process's; a test's own server ends now.
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
        if let Ok(text) = std::fs::read_to_string(self.folder.join("pid"))
            && let Ok(pid) = text.trim().parse()
        {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
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
        let socket = self.server.socket().display().to_string();
        format!("mysql://root@localhost/{}?socket={socket}", self.name)
    }

    /// Over TCP.
    pub(crate) fn tcp_url(&self) -> String {
        let port = self.server.port();
        format!("mysql://root@127.0.0.1:{port}/{}", self.name)
    }

    pub(crate) fn sql(&self, statements: &str) -> String {
        self.server.sql(&self.name, statements)
    }
}
