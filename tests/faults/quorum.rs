//! Three servers of etcd, ZooKeeper or Redis that are one store, with a network from each node to each; the process that
//! keeps them and carries out the orders for faults.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};
use std::time::Duration;

use tokenrun::store::open::Opening;
use tokenrun::store::url::StoreUrl;

use super::database::Database;
use super::etcd_server;
use super::keeping::{Kept, obey, ports};
use super::log::Log;
use super::postgres::Postgres;
use super::programs;
use super::proxy::Proxy;
use super::redis_server;
use super::world::node_name;
use super::zookeeper_server;

/// Servers that form one store.
pub(crate) trait Cluster {
    fn port(&self, index: usize) -> u16;
    fn leader(&self) -> Option<usize>;
    fn until_led(&self);
    fn kill(&self, index: usize);
    fn freeze(&self, index: usize);
    fn thaw(&self, index: usize);
    fn forget(&self, index: usize);
    fn launch(&self, index: usize);

    /// Sets a server's clock by so many seconds.
    fn leap(&self, index: usize, seconds: i64) {
        unreachable!("no fault sets the clock of server {index} by {seconds} s");
    }
}

macro_rules! cluster {
    ($server:ident) => {
        impl Cluster for $server::Cluster {
            fn port(&self, index: usize) -> u16 {
                Self::port(self, index)
            }

            fn leader(&self) -> Option<usize> {
                Self::leader(self)
            }

            fn until_led(&self) {
                Self::until_led(self);
            }

            fn kill(&self, index: usize) {
                (**self).kill(index);
            }

            fn freeze(&self, index: usize) {
                (**self).freeze(index);
            }

            fn thaw(&self, index: usize) {
                (**self).thaw(index);
            }

            fn forget(&self, index: usize) {
                (**self).forget_one(index);
            }

            fn launch(&self, index: usize) {
                Self::launch(self, index);
            }
        }
    };
}

cluster!(etcd_server);
cluster!(zookeeper_server);

/// Independent servers, none of which leads: faults hit one after the other.
struct Equals {
    servers: redis_server::Quorum,
    next: Cell<usize>,
}

/// Each write is on the disk before its answer.
const CONFIGURATION: [&str; 2] = ["appendonly yes", "appendfsync always"];

impl Equals {
    fn start() -> Self {
        let library = programs::build_as("leap", &["-shared", "-fPIC"]);
        let server = || redis_server::Server::start_leaping(&CONFIGURATION, &library);
        Self {
            servers: redis_server::Quorum((0..SERVERS).map(|_| server()).collect()),
            next: Cell::new(0),
        }
    }
}

impl Cluster for Equals {
    fn port(&self, index: usize) -> u16 {
        self.servers.0[index].port()
    }

    fn leader(&self) -> Option<usize> {
        Some(self.next.replace((self.next.get() + 1) % SERVERS))
    }

    /// Servers that have started anew join the others at the next request.
    fn until_led(&self) {
        let url = StoreUrl::parse(&self.servers.url(PREFIX)).unwrap();
        let opening = Opening {
            timeout: MOVING,
            limit: MOVING,
            application: "faults",
            state: None,
        };
        let mut store = url.open(&opening, &mut |_| {}).unwrap().store;
        self.servers.0[0].wait_until("a majority that has joined", || {
            store.list().is_ok() && self.servers.joined(PREFIX) == SERVERS
        });
    }

    fn kill(&self, index: usize) {
        self.servers.0[index].kill();
    }

    fn freeze(&self, index: usize) {
        self.servers.0[index].freeze();
    }

    fn thaw(&self, index: usize) {
        self.servers.0[index].thaw();
    }

    fn forget(&self, index: usize) {
        self.servers.0[index].forget();
    }

    fn launch(&self, index: usize) {
        self.servers.0[index].launch();
    }

    fn leap(&self, index: usize, seconds: i64) {
        self.servers.0[index].leap(seconds);
    }
}

/// Servers of one kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    scheme: &'static str,
    /// What comes after the servers in the URL.
    tail: &'static str,
    /// The first word of this program as the one that keeps the servers.
    cause: &'static str,
    troubles: &'static [&'static str],
}

pub(crate) const ETCD: Kind = Kind {
    scheme: "etcd",
    tail: "/faults",
    cause: "--cause-etcd",
    troubles: &OF_ONE_THAT_LEADS,
};

pub(crate) const ZOOKEEPER: Kind = Kind {
    scheme: "zk",
    cause: "--cause-zookeeper",
    ..ETCD
};

/// Independent servers of Redis.
pub(crate) const QUORUM: Kind = Kind {
    scheme: "redis",
    tail: "/0?quorum&prefix=faults",
    cause: "--cause-quorum",
    troubles: &OF_EQUALS,
};

const PREFIX: &str = "faults";
const SERVERS: usize = 3;

const LEADER_KILLED: &str = "leader killed";
const ONE_KILLED: &str = "a server killed";
const ONE_EMPTIED: &str = "a server killed and started without its data";
const ONE_FROZEN: &str = "a server frozen";
const ONE_CUT_OFF: &str = "a server cut off";
const AHEAD: &str = "a server's clock set by an hour";
const BEHIND: &str = "a server's clock set back by an hour";
const LEADER_FROZEN: &str = "leader frozen";
const MAJORITY_FROZEN: &str = "two servers frozen";
const MAJORITY_KILLED: &str = "two servers killed";
const EMPTIED: &str = "all servers killed and started without their data";
const CUT_OFF: &str = "node cut off";
const NO_ANSWERS: &str = "answers to a node held back";
const RESET: &str = "connections reset";

/// Everything that can go wrong.
const OF_ONE_THAT_LEADS: [&str; 10] = [
    LEADER_KILLED,
    LEADER_FROZEN,
    LEADER_FROZEN,
    ONE_KILLED,
    MAJORITY_FROZEN,
    MAJORITY_KILLED,
    EMPTIED,
    CUT_OFF,
    NO_ANSWERS,
    RESET,
];

/// The same, where no server leads.
const OF_EQUALS: [&str; 14] = [
    ONE_KILLED,
    ONE_EMPTIED,
    ONE_EMPTIED,
    ONE_FROZEN,
    ONE_FROZEN,
    ONE_CUT_OFF,
    AHEAD,
    BEHIND,
    MAJORITY_FROZEN,
    MAJORITY_KILLED,
    EMPTIED,
    CUT_OFF,
    NO_ANSWERS,
    RESET,
];

/// By how many seconds a clock is set.
const LEAP: i64 = 3_600;

/// How long it takes to start the servers, and to elect a leader.
const MOVING: Duration = Duration::from_secs(10);

/// The servers, seen from every node through networks of its own.
pub(crate) struct Quorum {
    kind: Kind,
    kept: Postgres,
    nodes: usize,
}

impl Quorum {
    /// Starts them. An operator says that they are new.
    pub(crate) fn new(kind: Kind, folder: &Path, nodes: usize, program: &Path) -> Self {
        let kept = Postgres::kept_by(kind.cause, folder, nodes * SERVERS);
        let this = Self { kind, kept, nodes };
        let mut init = Command::new(program);
        init.args(["init", "--store", &this.url(&node_name(0))]);
        assert!(init.output().unwrap().status.success());
        this
    }
}

impl Database for Quorum {
    fn url(&self, node: &str) -> String {
        let index = (0..self.nodes).find(|index| node_name(*index) == node);
        let first = index.unwrap() * SERVERS;
        let ports = (first..first + SERVERS).map(|network| self.kept.port(&node_name(network)));
        let hosts: Vec<String> = ports.map(|port| format!("127.0.0.1:{port}")).collect();
        format!(
            "{}://{}{}",
            self.kind.scheme,
            hosts.join(","),
            self.kind.tail
        )
    }

    fn faults(&self) -> &'static [&'static str] {
        self.kind.troubles
    }

    fn loses(&self, fault: &str, length: Duration) -> Option<Duration> {
        (fault == EMPTIED).then_some(length + MOVING)
    }

    fn forgets(&self, fault: &str) -> bool {
        fault == EMPTIED
    }

    fn share(&self) -> u64 {
        15
    }

    fn begin(&mut self, fault: &str, length: Duration) {
        self.kept.begin(fault, length);
    }

    fn waits_for_the_stopped(&self) -> bool {
        false
    }

    fn mend(&mut self) {
        self.kept.mend();
    }

    fn settle(&mut self) {
        self.kept.settle();
    }

    fn keeper(&self) -> Option<i32> {
        self.kept.keeper()
    }

    fn locks(&self) -> PathBuf {
        self.kept.locks()
    }

    /// Another leader knows the age of no heartbeat before it, and servers without their data are observed.
    fn patience(&self) -> Duration {
        Duration::from_secs(14)
    }
}

/// Runs as this process, and never returns, if the words are its own.
pub(crate) fn cause_faults(words: &[String]) {
    let [what, folder, networks] = words else {
        return;
    };
    let cluster: Box<dyn Cluster> = match what.as_str() {
        it if it == ETCD.cause => Box::new(etcd_server::Cluster::start(SERVERS)),
        it if it == ZOOKEEPER.cause => Box::new(zookeeper_server::Cluster::start(SERVERS)),
        it if it == QUORUM.cause => Box::new(Equals::start()),
        _ => return,
    };
    let networks: usize = networks.parse().unwrap();
    let proxies = (0..networks).map(|network| Proxy::to(cluster.port(network % SERVERS)));
    let mut keeper = Keeper {
        proxies: proxies.collect(),
        log: Log::new(&Path::new(folder).join("server.log")),
        hindered: Vec::new(),
        cluster,
    };
    let ports = ports(&keeper.proxies);
    obey(&mut keeper, &ports);
    drop(keeper);
    exit(0);
}

struct Keeper {
    cluster: Box<dyn Cluster>,
    /// The servers that the present fault has hit.
    hindered: Vec<usize>,
    proxies: Vec<Proxy>,
    log: Log,
}

impl Keeper {
    /// The networks of a network's node.
    fn of_node(&self, network: usize) -> &[Proxy] {
        let first = network / SERVERS * SERVERS;
        &self.proxies[first..first + SERVERS]
    }

    /// The networks of all nodes to the servers that are hit.
    fn of_hindered(&self) -> impl Iterator<Item = &Proxy> {
        let all = self.proxies.iter().enumerate();
        let hit = all.filter(|(network, _)| self.hindered.contains(&(network % SERVERS)));
        hit.map(|(_, proxy)| proxy)
    }

    fn leap(&self, seconds: i64) {
        let hit = self.hindered.iter();
        hit.for_each(|it| self.cluster.leap(*it, seconds));
    }

    /// The server that leads, and then the others.
    fn leader_first(&self) -> Vec<usize> {
        let leader = self.cluster.leader().unwrap_or(0);
        (0..SERVERS).map(|step| (leader + step) % SERVERS).collect()
    }
}

impl Kept for Keeper {
    fn begin(&mut self, fault: &str, node: usize) {
        let servers = self.leader_first();
        self.hindered = match fault {
            LEADER_KILLED | LEADER_FROZEN | ONE_EMPTIED | ONE_FROZEN | ONE_CUT_OFF | AHEAD
            | BEHIND => servers[..1].to_vec(),
            ONE_KILLED => servers[1..2].to_vec(),
            MAJORITY_FROZEN | MAJORITY_KILLED => servers[..2].to_vec(),
            EMPTIED => servers,
            _ => Vec::new(),
        };
        let of_node = self.of_node(node);
        match fault {
            CUT_OFF => of_node.iter().for_each(|it| it.hole(true)),
            NO_ANSWERS => of_node.iter().for_each(|it| it.keep_answers(true)),
            RESET => self.proxies.iter().for_each(Proxy::reset),
            LEADER_FROZEN | ONE_FROZEN | MAJORITY_FROZEN => {
                self.hindered.iter().for_each(|it| self.cluster.freeze(*it));
            }
            ONE_CUT_OFF => self.of_hindered().for_each(|it| it.hole(true)),
            AHEAD => self.leap(LEAP),
            BEHIND => self.leap(-LEAP),
            _ => self.hindered.iter().for_each(|it| self.cluster.kill(*it)),
        }
    }

    fn end(&mut self, fault: &str, node: usize) {
        let of_node = self.of_node(node);
        match fault {
            CUT_OFF => of_node.iter().for_each(|it| it.hole(false)),
            NO_ANSWERS => of_node.iter().for_each(|it| it.keep_answers(false)),
            RESET => {}
            LEADER_FROZEN | ONE_FROZEN | MAJORITY_FROZEN => {
                self.hindered.iter().for_each(|it| self.cluster.thaw(*it));
            }
            ONE_CUT_OFF => self.of_hindered().for_each(|it| it.hole(false)),
            AHEAD | BEHIND => self.leap(0),
            _ => {
                for server in &self.hindered {
                    if matches!(fault, EMPTIED | ONE_EMPTIED) {
                        self.cluster.forget(*server);
                    }
                    self.cluster.launch(*server);
                }
            }
        }
        self.cluster.until_led();
    }

    fn repeats(&self, fault: &str) -> bool {
        fault == RESET
    }

    fn loses(&self, fault: &str) -> bool {
        fault == EMPTIED
    }

    fn log(&mut self) -> &mut Log {
        &mut self.log
    }
}
