//! A real etcd cluster of the tests' own.
//!
//! The unit tests compile it as a module here; `tests/` and `benches/` name this file by its path. So it imports
//! nothing of the crate.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

// Several crates name the files by their path.
#[path = "../test_server/members.rs"]
#[allow(clippy::duplicate_mod)]
mod members;
#[path = "../test_server/reserved_port.rs"]
#[allow(clippy::duplicate_mod)]
mod reserved_port;

use self::members::{Members, as_servant, give};
use self::reserved_port::ReservedPort;

/// The ports of one server.
struct Ports {
    client: ReservedPort,
    peer: ReservedPort,
}

/// The files of TLS, in one folder.
const CA: &str = "ca.crt";
const SERVER: [&str; 2] = ["server.crt", "server.key"];
const CLIENT: [&str; 2] = ["client.crt", "client.key"];

/// Servers that form one cluster.
pub(crate) struct Cluster {
    /// Where the certificates are, if clients come by TLS and with a certificate of their own.
    tls: Option<PathBuf>,
    options: Vec<String>,
    ports: Vec<Ports>,
    members: Members,
}

impl Deref for Cluster {
    type Target = Members;

    fn deref(&self) -> &Members {
        &self.members
    }
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
        let ports = |_| Ports {
            client: ReservedPort::take(),
            peer: ReservedPort::take(),
        };
        let cluster = Self {
            tls,
            options: options.iter().map(ToString::to_string).collect(),
            ports: (0..count).map(ports).collect(),
            members: Members::new("etcd", count),
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
        let ports = &self.ports[index];
        let here = |port: &ReservedPort| format!("http://127.0.0.1:{}", port.number());
        let all = self.ports.iter().enumerate();
        let all: Vec<_> = all
            .map(|(index, it)| format!("n{index}={}", here(&it.peer)))
            .collect();
        let mut command = as_servant(program("etcd"));
        let mut client = here(&ports.client);
        if let Some(tls) = &self.tls {
            client = client.replace("http:", "https:");
            let file = |name: &str| tls.join(name).display().to_string();
            command.arg(format!("--cert-file={}", file(SERVER[0])));
            command.arg(format!("--key-file={}", file(SERVER[1])));
            command.arg(format!("--trusted-ca-file={}", file(CA)));
            command.arg("--client-cert-auth");
        }
        command
            .arg(format!("--name=n{index}"))
            .arg(format!("--data-dir={}", self.data(index).display()))
            .arg(format!("--listen-client-urls={client}"))
            .arg(format!("--advertise-client-urls={client}"))
            .arg(format!("--listen-peer-urls={}", here(&ports.peer)))
            .arg(format!(
                "--initial-advertise-peer-urls={}",
                here(&ports.peer)
            ))
            .arg(format!("--initial-cluster={}", all.join(",")))
            .args([
                "--heartbeat-interval=50",
                "--election-timeout=500",
                "--logger=zap",
            ])
            .args(unsynced())
            .args(&self.options)
            .args(options)
            .env_clear();
        self.start_by(index, &mut command);
    }

    /// Waits until a majority answers.
    pub(crate) fn until_led(&self) {
        let answers = || self.etcdctl_at(&self.ports, "2s", &["get", "x"]).is_some();
        self.wait_until("an answer", answers);
    }

    /// The server that leads.
    pub(crate) fn leader(&self) -> Option<usize> {
        (0..self.count()).find(|index| {
            let words = ["endpoint", "status", "--write-out=fields"];
            let said = self.etcdctl_at(std::slice::from_ref(&self.ports[*index]), "2s", &words);
            let said = said.unwrap_or_default();
            let field = |name: &str| {
                let mut lines = said.lines();
                lines.find_map(|line| line.strip_prefix(name).map(str::to_owned))
            };
            let leader = field("\"Leader\" :");
            leader.is_some() && leader == field("\"MemberID\" :")
        })
    }

    /// Gives the only server, which is stopped, the data of a snapshot.
    pub(crate) fn restore(&self, snapshot: &Path) {
        self.forget();
        let peer = format!("http://127.0.0.1:{}", self.ports[0].peer.number());
        let data = self.data(0);
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
        give(&data);
    }

    /// The port of a server.
    pub(crate) fn port(&self, index: usize) -> u16 {
        self.ports[index].client.number()
    }

    /// The servers, as etcdctl takes them.
    pub(crate) fn endpoints(&self) -> String {
        endpoints(&self.ports)
    }

    /// The URL of a store of a test's own, on all servers.
    pub(crate) fn url(&self) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        format!("etcd://{}/t{number}", self.endpoints())
    }

    /// What etcdctl prints for a command, if it succeeds.
    pub(crate) fn etcdctl(&self, words: &[&str]) -> Option<String> {
        self.etcdctl_at(&self.ports, "30s", words)
    }

    fn etcdctl_at(&self, ports: &[Ports], limit: &str, words: &[&str]) -> Option<String> {
        let mut command = Command::new(program("etcdctl"));
        command.env_clear().env("ETCDCTL_API", "3");
        let mut ends = endpoints(ports);
        if let Some(tls) = &self.tls {
            ends = ends.replace("127.0.0.1", "https://localhost");
            command.env("ETCDCTL_CACERT", tls.join(CA));
            command.env("ETCDCTL_CERT", tls.join(CLIENT[0]));
            command.env("ETCDCTL_KEY", tls.join(CLIENT[1]));
        }
        let output = command
            .arg(format!("--endpoints={ends}"))
            .arg(format!("--dial-timeout={limit}"))
            .arg(format!("--command-timeout={limit}"))
            .args(words)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    }
}

fn endpoints(ports: &[Ports]) -> String {
    let all = ports
        .iter()
        .map(|it| format!("127.0.0.1:{}", it.client.number()));
    all.collect::<Vec<_>>().join(",")
}

/// What makes a server's syncs return at once: no library can, for its calls do not go through libc. A slow disk would
/// fail tests with short time-outs, and no test cuts the power. Benches have the server as it is.
fn unsynced() -> Option<&'static str> {
    cfg!(test).then_some("--unsafe-no-fsync")
}
