//! A Redis server, with a network to each node; the process that keeps both and carries out the
//! orders for faults.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};
use std::time::Duration;

use super::database::Database;
use super::keeping::{Kept, obey, ports};
use super::log::Log;
use super::postgres::Postgres;
use super::proxy::Proxy;
use super::redis_server::Server;
use super::world::node_name;

/// The first word of this program as the one that keeps a Redis server.
const CAUSE: &str = "--cause-redis";

const KILLED: &str = "server killed";
const EMPTIED: &str = "server killed and started without its data";
const FROZEN: &str = "server frozen";
const CUT_OFF: &str = "node cut off";
const NO_ANSWERS: &str = "answers to a node held back";
const RESET: &str = "connections reset";
const PROMOTED: &str = "replica promoted that was cut off before";

/// Everything that can go wrong. After a new start nothing is granted for some seconds, so that
/// these come less often.
const TROUBLES: [&str; 11] = [
    KILLED, EMPTIED, FROZEN, FROZEN, CUT_OFF, CUT_OFF, NO_ANSWERS, NO_ANSWERS, RESET, RESET,
    PROMOTED,
];

/// How long it takes to start, to copy and to move to a server.
const MOVING: Duration = Duration::from_secs(10);

/// Each write is on the disk before its answer.
const CONFIGURATION: [&str; 2] = ["appendonly yes", "appendfsync always"];

/// A server, seen from every node through a network of its own.
pub(crate) struct Redis(Postgres);

impl Redis {
    /// Starts it. An operator says that nothing was lost.
    pub(crate) fn new(folder: &Path, nodes: usize, program: &Path) -> Self {
        let this = Self(Postgres::kept_by(CAUSE, folder, nodes));
        let incarnation = incarnation(this.0.port(&node_name(0)));
        let url = this.url(&node_name(0));
        let mut settle = Command::new(program);
        settle.args(["settle", "--yes", &incarnation, "--store", &url]);
        assert!(settle.status().unwrap().success());
        this
    }
}

/// The incarnation of the server behind this port.
fn incarnation(port: &str) -> String {
    let mut server = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    server.write_all(b"INFO server\r\n").unwrap();
    let lines = BufReader::new(server).lines().map(Result::unwrap);
    let mut of_run = lines.filter_map(|line| Some(line.strip_prefix("run_id:")?[..16].to_owned()));
    of_run.next().unwrap()
}

impl Database for Redis {
    fn url(&self, node: &str) -> String {
        format!("redis://127.0.0.1:{}", self.0.port(node))
    }

    fn faults(&self) -> &'static [&'static str] {
        &TROUBLES
    }

    fn loses(&self, fault: &str, length: Duration) -> Option<Duration> {
        matches!(fault, EMPTIED | PROMOTED).then_some(length + MOVING)
    }

    fn forgets(&self, fault: &str) -> bool {
        fault == EMPTIED
    }

    fn share(&self) -> u64 {
        15
    }

    fn begin(&mut self, fault: &str, length: Duration) {
        self.0.begin(fault, length);
    }

    fn waits_for_the_stopped(&self) -> bool {
        false
    }

    fn mend(&mut self) {
        self.0.mend();
    }

    fn settle(&mut self) {
        self.0.settle();
    }

    fn keeper(&self) -> Option<i32> {
        self.0.keeper()
    }

    fn locks(&self) -> PathBuf {
        self.0.locks()
    }

    /// A server that was started anew is observed for the longest takeover-after; from then on, a
    /// session waits for a run whose silence began before that.
    fn patience(&self) -> Duration {
        Duration::from_secs(12)
    }
}

/// Runs as this process, and never returns, if the words are its own.
pub(crate) fn cause_faults(words: &[String]) {
    let [what, folder, nodes] = words else {
        return;
    };
    if what != CAUSE {
        return;
    }
    let server = Server::start(&CONFIGURATION);
    let proxies = (0..nodes.parse().unwrap()).map(|_| Proxy::to(server.port()));
    let mut keeper = Keeper {
        proxies: proxies.collect(),
        log: Log::new(&Path::new(folder).join("server.log")),
        replica: None,
        server,
    };
    let ports = ports(&keeper.proxies);
    obey(&mut keeper, &ports);
    drop(keeper);
    exit(0);
}

struct Keeper {
    server: Server,
    /// What is about to be promoted.
    replica: Option<Server>,
    proxies: Vec<Proxy>,
    log: Log,
}

impl Kept for Keeper {
    fn begin(&mut self, fault: &str, node: usize) {
        match fault {
            KILLED | EMPTIED => self.server.kill(),
            FROZEN => self.server.freeze(),
            CUT_OFF => self.proxies[node].hole(true),
            NO_ANSWERS => self.proxies[node].keep_answers(true),
            PROMOTED => {
                let replica = Server::start(&CONFIGURATION);
                replica.follow(&self.server);
                // It keeps what it has, and follows nobody.
                replica.cli(&["REPLICAOF", "127.0.0.1", "1"]);
                self.replica = Some(replica);
            }
            _ => self.proxies.iter().for_each(Proxy::reset),
        }
    }

    fn end(&mut self, fault: &str, node: usize) {
        match fault {
            KILLED => self.server.launch(),
            EMPTIED => {
                self.server.forget();
                self.server.launch();
            }
            FROZEN => self.server.thaw(),
            CUT_OFF => self.proxies[node].hole(false),
            NO_ANSWERS => self.proxies[node].keep_answers(false),
            PROMOTED => self.promote(),
            _ => {}
        }
    }

    fn repeats(&self, fault: &str) -> bool {
        fault == RESET
    }

    fn loses(&self, fault: &str) -> bool {
        fault == PROMOTED
    }

    fn log(&mut self) -> &mut Log {
        &mut self.log
    }
}

impl Keeper {
    /// The master is gone, and what the replica has not received is lost.
    fn promote(&mut self) {
        let Some(replica) = self.replica.take() else {
            return;
        };
        self.server.kill();
        replica.promote();
        let port = replica.port();
        self.server = replica;
        self.proxies.iter().for_each(|proxy| proxy.turn_to(port));
    }
}
