//! A real ZooKeeper ensemble of the tests' own.
//!
//! The unit tests compile it as a module here; `tests/` and `benches/` name this file by its path. So it imports
//! nothing of the crate.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::ops::Deref;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

// Several crates name the files by their path.
#[path = "../test_server/leap.rs"]
#[allow(clippy::duplicate_mod)]
mod leap;
#[path = "../test_server/members.rs"]
#[allow(clippy::duplicate_mod)]
mod members;
#[path = "../test_server/reserved_port.rs"]
#[allow(clippy::duplicate_mod)]
mod reserved_port;

use self::leap::Leap;
use self::members::{Members, as_servant, give};
use self::reserved_port::ReservedPort;

/// Where Debian's package has the server.
const SERVER: &str = "/usr/share/java/zookeeper.jar";

/// The server, and what it needs for TLS and does not name itself.
const CLASSES: &str = "/usr/share/java/zookeeper.jar:/usr/share/java/netty-codec.jar:/usr/share/java/netty-resolver.jar:/usr/share/java/netty-transport-native-unix-common.jar";

/// A tick of the servers: a session lives for 2 to 20 of them.
const TICK_MS: u32 = 250;

/// The ports of one server: for clients, for the others, for elections, and for clients by TLS.
struct Ports([ReservedPort; 4]);

/// Servers that form one ensemble.
pub(crate) struct Cluster {
    ports: Vec<Ports>,
    members: Members,
    /// Lines of the configuration file.
    lines: String,
    leap: Option<Leap>,
}

impl Deref for Cluster {
    type Target = Members;

    fn deref(&self) -> &Members {
        &self.members
    }
}

impl Cluster {
    /// The server that all tests of a program share. It writes to no disk in time.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| Self::start_with(1, "forceSync=no\n"))
    }

    /// An ensemble of so many servers.
    pub(crate) fn start(count: usize) -> Self {
        Self::start_with(count, "")
    }

    /// A server whose wall clock the test sets, by this library.
    pub(crate) fn start_leaping(library: &Path) -> Self {
        let members = Members::new("zookeeper", 1);
        let leap = Leap::new(library, members.folder());
        Self::start_in(members, "", Some(leap))
    }

    /// Sets the clock of such a server by so many seconds.
    pub(crate) fn leap(&self, seconds: i64) {
        self.leap.as_ref().unwrap().set(seconds);
    }

    /// An ensemble with more lines in its configuration.
    pub(crate) fn start_with(count: usize, lines: &str) -> Self {
        Self::start_in(Members::new("zookeeper", count), lines, None)
    }

    fn start_in(members: Members, lines: &str, leap: Option<Leap>) -> Self {
        let count = members.count();
        assert!(
            Path::new(SERVER).exists(),
            "{SERVER} is missing: install zookeeper (tests/run-all does)"
        );
        let ports = |_| Ports([0; 4].map(|_| ReservedPort::take()));
        let ensemble = Self {
            ports: (0..count).map(ports).collect(),
            members,
            lines: lines.to_owned(),
            leap,
        };
        for index in 0..count {
            ensemble.launch(index);
        }
        ensemble.until_led();
        ensemble
    }

    /// A server that clients also reach by TLS, with certificates of the same authority as its own.
    pub(crate) fn start_secured(certificates: &Path) -> Self {
        let read = |name: &str| std::fs::read_to_string(certificates.join(name)).unwrap();
        let store = certificates.join("server.pem");
        std::fs::write(&store, read("server.key") + &read("server.crt")).unwrap();
        let lines = format!(
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
             ssl.keyStore.location={}\nssl.keyStore.type=PEM\n\
             ssl.trustStore.location={}\nssl.trustStore.type=PEM\n\
             secureClientPortAddress=127.0.0.1\n",
            store.display(),
            certificates.join("ca.crt").display(),
        );
        Self::start_with(1, &lines)
    }

    /// The port of the first server for TLS.
    pub(crate) fn secure_port(&self) -> u16 {
        self.ports[0].0[3].number()
    }

    /// True if clients also reach the server by TLS.
    fn is_secured(&self) -> bool {
        self.lines.contains("secure")
    }

    /// Starts a server on the data that it has.
    pub(crate) fn launch(&self, index: usize) {
        let data = self.data(index);
        std::fs::create_dir_all(&data).unwrap();
        std::fs::write(data.join("myid"), (index + 1).to_string()).unwrap();
        let mut text = format!(
            "tickTime={TICK_MS}\ninitLimit=20\nsyncLimit=8\ndataDir={}\nclientPort={}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n{}",
            data.display(),
            self.port(index),
            self.lines,
        );
        if self.is_secured() {
            text.push_str(&format!("secureClientPort={}\n", self.secure_port()));
        }
        if self.count() > 1 {
            for (index, Ports([_, peer, election, _])) in self.ports.iter().enumerate() {
                text.push_str(&format!(
                    "server.{}=127.0.0.1:{}:{}\n",
                    index + 1,
                    peer.number(),
                    election.number()
                ));
            }
        }
        let config = self.folder().join(format!("config-{index}"));
        std::fs::write(&config, text).unwrap();
        give(&data);
        let mut command = as_servant("java");
        command.envs(self.leap.iter().flat_map(Leap::variables));
        command
            .args([
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-Xmx256m",
                "-cp",
                CLASSES,
            ])
            .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain")
            .arg(config);
        self.start_by(index, &mut command);
    }

    /// What a server says of itself.
    fn said(&self, index: usize) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port(index))).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
        stream.write_all(b"srvr").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Waits until each server that runs takes requests.
    pub(crate) fn until_led(&self) {
        self.wait_until("an answer", || {
            let says = |index: usize| self.said(index).is_some_and(|it| it.contains("\nMode: "));
            let enough = (0..self.count()).filter(|index| says(*index)).count() > self.count() / 2;
            // A server opens its port for TLS after the other one.
            enough
                && (!self.is_secured()
                    || TcpStream::connect(("127.0.0.1", self.secure_port())).is_ok())
        });
    }

    /// The server that leads.
    pub(crate) fn leader(&self) -> Option<usize> {
        let leads =
            |text: String| text.contains("\nMode: leader") || text.contains("\nMode: standalone");
        (0..self.count()).find(|index| self.said(*index).is_some_and(leads))
    }

    /// The port of a server.
    pub(crate) fn port(&self, index: usize) -> u16 {
        self.ports[index].0[0].number()
    }

    /// The servers, as a URL names them.
    pub(crate) fn servers(&self) -> String {
        let all = (0..self.count()).map(|index| format!("127.0.0.1:{}", self.port(index)));
        all.collect::<Vec<_>>().join(",")
    }

    /// The URL of a store of a test's own, on all servers.
    pub(crate) fn url(&self) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        format!("zk://{}/t{number}", self.servers())
    }
}
