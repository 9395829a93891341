//! A real etcd cluster of the tests' own, in a temporary directory. It ends when the process that started it does,
//! however that ends: another process waits for that.
//!
//! The unit tests compile it as a module here; `tests/` and `benches/` name this file by its path. So it imports
//! nothing of the crate.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, geteuid};

// Several crates name the file by its path.
#[path = "../test_server/reserved_port.rs"]
#[allow(clippy::duplicate_mod)]
mod reserved_port;

use self::reserved_port::ReservedPort;

/// How long a cluster may take to answer.
const START: Duration = Duration::from_secs(30);

/// One server, running or stopped.
struct Member {
    client: ReservedPort,
    peer: ReservedPort,
    child: Mutex<Option<Child>>,
}

/// The files of TLS, in one folder.
const CA: &str = "ca.crt";
const SERVER: [&str; 2] = ["server.crt", "server.key"];
const CLIENT: [&str; 2] = ["client.crt", "client.key"];

/// Servers that form one cluster.
pub(crate) struct Cluster {
    folder: PathBuf,
    /// Where the certificates are, if clients come by TLS and with a certificate of their own.
    tls: Option<PathBuf>,
    options: Vec<String>,
    members: Vec<Member>,
    /// When its other end sees the end of this pipe, the servers are killed.
    _lifeline: ChildStdin,
    keeper: Child,
}

/// A program of etcd's on the PATH; `TOKENRUN_TEST_ETCD` names another folder.
pub(crate) fn program(name: &str) -> PathBuf {
    let folder = std::env::var_os("TOKENRUN_TEST_ETCD").into_iter();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = folder
        .map(PathBuf::from)
        .chain(std::env::split_paths(&path));
    let found = folders.find_map(|folder| Some(folder.join(name)).filter(|path| path.exists()));
    found.unwrap_or_else(|| panic!("{name} is missing: install etcd (tests/run-all does)"))
}

/// The user that the servers run as, where this is root.
fn servant() -> Option<User> {
    let user = || User::from_name("nobody").ok().flatten();
    geteuid().is_root().then(user).flatten()
}

impl Cluster {
    /// The server that all tests of a program share.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(1))
    }

    /// A cluster of so many servers.
    pub(crate) fn start(count: usize) -> Self {
        Self::start_with(count, None, &[])
    }

    /// A server for clients that come by TLS, with certificates of the same authority as its own.
    pub(crate) fn start_secured(certificates: &Path) -> Self {
        Self::start_with(1, Some(certificates.to_owned()), &[])
    }

    /// A server with these options.
    pub(crate) fn start_as(options: &[&str]) -> Self {
        Self::start_with(1, None, options)
    }

    fn start_with(count: usize, tls: Option<PathBuf>, options: &[&str]) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("tokenrun-etcd-")
            .tempdir()
            .unwrap()
            .keep();
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
        if let Some(user) = servant() {
            chown(&folder, Some(user.uid.as_raw()), Some(user.gid.as_raw())).unwrap();
        }
        // Before the servers, so that none outlives this process.
        let script = format!(
            "read line; for pid in '{folder}'/pid-*; do kill -KILL $(cat $pid); done; rm -rf '{folder}'",
            folder = folder.display()
        );
        let mut keeper = Command::new("/bin/sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let member = |_| Member {
            client: ReservedPort::take(),
            peer: ReservedPort::take(),
            child: Mutex::new(None),
        };
        let cluster = Self {
            _lifeline: keeper.stdin.take().unwrap(),
            keeper,
            folder,
            tls,
            options: options.iter().map(ToString::to_string).collect(),
            members: (0..count).map(member).collect(),
        };
        for index in 0..count {
            cluster.launch(index);
        }
        cluster.until_led();
        cluster
    }

    /// Starts a server on the data that it has.
    pub(crate) fn launch(&self, index: usize) {
        self.launch_with(index, &[]);
    }

    /// Starts a server that goes on alone with the data that it has.
    pub(crate) fn launch_alone(&self, index: usize) {
        self.launch_with(index, &["--force-new-cluster"]);
    }

    fn launch_with(&self, index: usize, options: &[&str]) {
        let member = &self.members[index];
        let here = |port: &ReservedPort| format!("http://127.0.0.1:{}", port.number());
        let all = self.members.iter().enumerate();
        let all: Vec<_> = all
            .map(|(index, it)| format!("n{index}={}", here(&it.peer)))
            .collect();
        let folder = self.folder.display();
        let log = std::fs::File::create(self.folder.join(format!("log-{index}"))).unwrap();
        let etcd = program("etcd");
        let mut command = match servant() {
            None => Command::new(etcd),
            Some(user) => {
                let mut command = Command::new("setpriv");
                command
                    .arg(format!("--reuid={}", user.uid))
                    .arg(format!("--regid={}", user.gid));
                command.arg("--clear-groups").arg(etcd);
                command
            }
        };
        let mut client = here(&member.client);
        if let Some(tls) = &self.tls {
            client = client.replace("http:", "https:");
            let file = |name: &str| tls.join(name).display().to_string();
            command.arg(format!("--cert-file={}", file(SERVER[0])));
            command.arg(format!("--key-file={}", file(SERVER[1])));
            command.arg(format!("--trusted-ca-file={}", file(CA)));
            command.arg("--client-cert-auth");
        }
        let child = command
            .arg(format!("--name=n{index}"))
            .arg(format!("--data-dir={folder}/data-{index}"))
            .arg(format!("--listen-client-urls={client}"))
            .arg(format!("--advertise-client-urls={client}"))
            .arg(format!("--listen-peer-urls={}", here(&member.peer)))
            .arg(format!(
                "--initial-advertise-peer-urls={}",
                here(&member.peer)
            ))
            .arg(format!("--initial-cluster={}", all.join(",")))
            .args([
                "--heartbeat-interval=50",
                "--election-timeout=500",
                "--logger=zap",
            ])
            .args(&self.options)
            .args(options)
            .current_dir("/")
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        std::fs::write(
            self.folder.join(format!("pid-{index}")),
            child.id().to_string(),
        )
        .unwrap();
        *member.child.lock().unwrap() = Some(child);
    }

    /// Waits for something that happens soon.
    pub(crate) fn wait_until(&self, what: &str, mut happened: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !happened() {
            let log = || std::fs::read_to_string(self.folder.join("log-0")).unwrap_or_default();
            assert!(begun.elapsed() < START, "no {what}: {}", log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until a majority answers.
    pub(crate) fn until_led(&self) {
        self.wait_until("an answer", || self.etcdctl(&["get", "x"]).is_some());
    }

    /// The server that leads.
    pub(crate) fn leader(&self) -> Option<usize> {
        (0..self.members.len()).find(|index| {
            let words = ["endpoint", "status", "--write-out=fields"];
            let said = self.etcdctl_at(std::slice::from_ref(&self.members[*index]), &words);
            let said = said.unwrap_or_default();
            let field = |name: &str| {
                let mut lines = said.lines();
                lines.find_map(|line| line.strip_prefix(name).map(str::to_owned))
            };
            let leader = field("\"Leader\" :");
            leader.is_some() && leader == field("\"MemberID\" :")
        })
    }

    /// Removes the data of all servers, which are stopped.
    pub(crate) fn forget(&self) {
        for index in 0..self.members.len() {
            let _ = std::fs::remove_dir_all(self.folder.join(format!("data-{index}")));
        }
    }

    /// Gives the only server, which is stopped, the data of a snapshot.
    pub(crate) fn restore(&self, snapshot: &Path) {
        self.forget();
        let peer = format!("http://127.0.0.1:{}", self.members[0].peer.number());
        let data = self.folder.join("data-0");
        let words = [
            "snapshot".to_owned(),
            "restore".to_owned(),
            snapshot.display().to_string(),
            "--name=n0".to_owned(),
            format!("--initial-cluster=n0={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--data-dir={}", data.display()),
        ];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert!(self.etcdctl(&words).is_some());
        if let Some(user) = servant() {
            let mut owned = Command::new("chown");
            owned
                .arg("-R")
                .arg(format!("{}:{}", user.uid, user.gid))
                .arg(&data);
            assert!(owned.status().unwrap().success());
        }
    }

    /// The port of a server.
    pub(crate) fn port(&self, index: usize) -> u16 {
        self.members[index].client.number()
    }

    /// The process of a server that runs.
    pub(crate) fn pid(&self, index: usize) -> u32 {
        let child = self.members[index].child.lock().unwrap();
        child.as_ref().unwrap().id()
    }

    fn signal(&self, index: usize, signal: Signal) {
        let id = i32::try_from(self.pid(index)).unwrap();
        kill(Pid::from_raw(id), signal).unwrap();
    }

    /// Kills a server, as a power cut does.
    pub(crate) fn kill(&self, index: usize) {
        if let Some(mut child) = self.members[index].child.lock().unwrap().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Stops a server in the middle of whatever it does.
    pub(crate) fn freeze(&self, index: usize) {
        self.signal(index, Signal::SIGSTOP);
        let tasks = format!("/proc/{}/task", self.pid(index));
        self.wait_until("a frozen server", || {
            std::fs::read_dir(&tasks).unwrap().all(|task| {
                let stat = task.and_then(|it| std::fs::read_to_string(it.path().join("stat")));
                stat.is_ok_and(|text| text.contains(") T "))
            })
        });
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self, index: usize) {
        self.signal(index, Signal::SIGCONT);
    }

    /// The servers, as etcdctl takes them.
    pub(crate) fn endpoints(&self) -> String {
        endpoints(&self.members)
    }

    /// The URL of a store of a test's own, on all servers.
    pub(crate) fn url(&self) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        format!("etcd://{}/t{number}", self.endpoints())
    }

    /// What etcdctl prints for a command, if it succeeds.
    pub(crate) fn etcdctl(&self, words: &[&str]) -> Option<String> {
        self.etcdctl_at(&self.members, words)
    }

    fn etcdctl_at(&self, members: &[Member], words: &[&str]) -> Option<String> {
        let mut command = Command::new(program("etcdctl"));
        command.env_clear().env("ETCDCTL_API", "3");
        let mut ends = endpoints(members);
        if let Some(tls) = &self.tls {
            ends = ends.replace("127.0.0.1", "https://localhost");
            command.env("ETCDCTL_CACERT", tls.join(CA));
            command.env("ETCDCTL_CERT", tls.join(CLIENT[0]));
            command.env("ETCDCTL_KEY", tls.join(CLIENT[1]));
        }
        let output = command
            .arg(format!("--endpoints={ends}"))
            .args(["--dial-timeout=2s", "--command-timeout=2s"])
            .args(words)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    }
}

fn endpoints(members: &[Member]) -> String {
    let all = members
        .iter()
        .map(|it| format!("127.0.0.1:{}", it.client.number()));
    all.collect::<Vec<_>>().join(",")
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
        for index in 0..self.members.len() {
            self.kill(index);
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
