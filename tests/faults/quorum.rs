//! Three servers of etcd or ZooKeeper, with a network from each node to each; the process that keeps them and carries
//! out the orders for faults.

use std::path::{Path, PathBuf};
use std::process::{Command, exit};
use std::time::Duration;

use super::database::Database;
use super::etcd_server;
use super::keeping::{Kept, obey, ports};
use super::log::Log;
use super::postgres::Postgres;
use super::proxy::Proxy;
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
    fn forget(&self);
    fn launch(&self, index: usize);
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

            fn forget(&self) {
                (**self).forget();
            }

            fn launch(&self, index: usize) {
                Self::launch(self, index);
            }
        }
    };
}

cluster!(etcd_server);
cluster!(zookeeper_server);

/// The scheme of each kind, and the first word of this program as the one that keeps its servers.
pub(crate) const ETCD: [&str; 2] = ["etcd", "--cause-etcd"];
pub(crate) const ZOOKEEPER: [&str; 2] = ["zk", "--cause-zookeeper"];

const SERVERS: usize = 3;

const LEADER_KILLED: &str = "leader killed";
const ONE_KILLED: &str = "a server killed";
const LEADER_FROZEN: &str = "leader frozen";
const MAJORITY_FROZEN: &str = "two servers frozen";
const MAJORITY_KILLED: &str = "two servers killed";
const EMPTIED: &str = "all servers killed and started without their data";
const CUT_OFF: &str = "node cut off";
const NO_ANSWERS: &str = "answers to a node held back";
const RESET: &str = "connections reset";

/// Everything that can go wrong.
const TROUBLES: [&str; 10] = [
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

/// How long it takes to start the servers, and to elect a leader.
const MOVING: Duration = Duration::from_secs(10);

/// The servers, seen from every node through networks of its own.
pub(crate) struct Quorum {
    scheme: &'static str,
    kept: Postgres,
    nodes: usize,
}

impl Quorum {
    /// Starts them. An operator says that they are new.
    pub(crate) fn new(
        [scheme, cause]: [&'static str; 2],
        folder: &Path,
        nodes: usize,
        program: &Path,
    ) -> Self {
        let kept = Postgres::kept_by(cause, folder, nodes * SERVERS);
        let this = Self {
            scheme,
            kept,
            nodes,
        };
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
        format!("{}://{}/faults", self.scheme, hosts.join(","))
    }

    fn faults(&self) -> &'static [&'static str] {
        &TROUBLES
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
        it if it == ETCD[1] => Box::new(etcd_server::Cluster::start(SERVERS)),
        it if it == ZOOKEEPER[1] => Box::new(zookeeper_server::Cluster::start(SERVERS)),
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
            LEADER_KILLED | LEADER_FROZEN => servers[..1].to_vec(),
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
            LEADER_FROZEN | MAJORITY_FROZEN => {
                self.hindered.iter().for_each(|it| self.cluster.freeze(*it));
            }
            _ => self.hindered.iter().for_each(|it| self.cluster.kill(*it)),
        }
    }

    fn end(&mut self, fault: &str, node: usize) {
        let of_node = self.of_node(node);
        match fault {
            CUT_OFF => of_node.iter().for_each(|it| it.hole(false)),
            NO_ANSWERS => of_node.iter().for_each(|it| it.keep_answers(false)),
            RESET => {}
            LEADER_FROZEN | MAJORITY_FROZEN => {
                self.hindered.iter().for_each(|it| self.cluster.thaw(*it));
            }
            _ => {
                if fault == EMPTIED {
                    self.cluster.forget();
                }
                self.hindered.iter().for_each(|it| self.cluster.launch(*it));
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
