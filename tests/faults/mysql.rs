//! A MariaDB server, with a network to each node. Both are kept by another process, which has threads, and
//! sees the servers' processes that are left behind.

use std::path::{Path, PathBuf};
use std::process::exit;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokenrun::sys::wait;

use super::database::Database;
use super::keeping::{Kept, obey, ports};
use super::log::Log;
use super::mysql_server::{Kind, Server};
use super::postgres::Postgres;
use super::proxy::Proxy;

/// The first word of this program as the one that keeps a server.
const CAUSE: &str = "--cause-mysql";

const KILLED: &str = "server killed";
const RESTARTED: &str = "server restarted";
const FROZEN: &str = "server frozen";
const CUT_OFF: &str = "node cut off";
const NO_ANSWERS: &str = "answers to a node held back";
const RESET: &str = "connections reset";
const READ_ONLY: &str = "server read-only";
const SESSIONS_KILLED: &str = "sessions killed";
const PROMOTED: &str = "replica promoted that was cut off before";

/// Everything that can go wrong.
const TROUBLES: [&str; 9] = [
    KILLED,
    RESTARTED,
    FROZEN,
    CUT_OFF,
    NO_ANSWERS,
    RESET,
    READ_ONLY,
    SESSIONS_KILLED,
    PROMOTED,
];

/// How long it takes to make a replica, to cut it off, to promote it and to move to it.
const MOVING: Duration = Duration::from_secs(15);

/// How long a replica may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server with a network to each node.
pub(crate) struct Mysql(Postgres);

impl Mysql {
    pub(crate) fn new(folder: &Path, nodes: usize) -> Self {
        Self(Postgres::kept_by(CAUSE, folder, nodes))
    }
}

impl Database for Mysql {
    fn url(&self, node: &str) -> String {
        let port = self.0.port(node);
        format!("mysql://root@127.0.0.1:{port}/jobs")
    }

    fn faults(&self) -> &'static [&'static str] {
        &TROUBLES
    }

    fn loses(&self, fault: &str, length: Duration) -> Option<Duration> {
        (fault == PROMOTED).then_some(length + MOVING)
    }

    fn share(&self) -> u64 {
        self.0.share()
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

    /// A server with a binary log that was restarted is observed first.
    fn patience(&self) -> Duration {
        Duration::from_secs(9)
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
    // Processes of a server that was killed come to this one.
    tokenrun::sys::process::become_subreaper().unwrap();
    let server = start();
    server.sql("mysql", "CREATE DATABASE jobs");
    let proxies = (0..nodes.parse().unwrap()).map(|_| Proxy::to(server.port()));
    let mut keeper = Keeper {
        proxies: proxies.collect(),
        log: Log::new(&Path::new(folder).join("server.log")),
        replica: None,
        server,
    };
    let ports = ports(&keeper.proxies);
    obey(&mut keeper, &ports);
    let said = std::fs::read_to_string(keeper.server.log()).unwrap_or_default();
    keeper.log.say(&format!("what it has written:\n{said}"));
    drop(keeper);
    exit(0);
}

/// A server that another can follow from its beginning on.
fn start() -> Server {
    let folder_number = std::process::id() + u32::try_from(Server::started()).unwrap();
    let id = format!("server_id = {folder_number}");
    let log = ["log_bin", "log_slave_updates", "sync_binlog = 1"];
    let gtids = ["gtid_mode = ON", "enforce_gtid_consistency = ON"];
    match Kind::usual() {
        Kind::Mariadb => Server::start(&[&[id.as_str()], &log[..]].concat()),
        Kind::Mysql => Server::start(&[&[id.as_str()], &log[..], &gtids].concat()),
    }
}

/// How a replica is made: what it follows, what the source has, what the replica waits for, and what it forgets.
fn replication(port: u16) -> [String; 4] {
    let source = "source_host = '127.0.0.1', source_user = 'root'";
    match Kind::usual() {
        Kind::Mariadb => [
            format!(
                "CHANGE MASTER TO {}, master_port = {port}, master_use_gtid = slave_pos; START SLAVE",
                source.replace("source_", "master_")
            ),
            "SELECT @@gtid_binlog_pos".into(),
            "SELECT MASTER_GTID_WAIT".into(),
            "STOP SLAVE; RESET SLAVE ALL".into(),
        ],
        Kind::Mysql => [
            format!(
                "CHANGE REPLICATION SOURCE TO {source}, source_port = {port}, source_auto_position = 1, \
                 get_source_public_key = 1; START REPLICA"
            ),
            "SELECT @@gtid_executed".into(),
            "SELECT WAIT_FOR_EXECUTED_GTID_SET".into(),
            "STOP REPLICA; RESET REPLICA ALL".into(),
        ],
    }
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
            KILLED => self.server.stop(Signal::SIGKILL),
            RESTARTED => self.server.stop(Signal::SIGTERM),
            FROZEN => self.server.signal(Signal::SIGSTOP),
            CUT_OFF => self.proxies[node].hole(true),
            NO_ANSWERS => self.proxies[node].keep_answers(true),
            READ_ONLY => drop(self.server.sql("mysql", "SET GLOBAL read_only = ON")),
            SESSIONS_KILLED => self.kill_sessions(),
            PROMOTED => self.make_a_replica(),
            _ => self.proxies.iter().for_each(Proxy::reset),
        }
    }

    fn end(&mut self, fault: &str, node: usize) {
        match fault {
            KILLED | RESTARTED => self.server.run(),
            FROZEN => self.server.signal(Signal::SIGCONT),
            CUT_OFF => self.proxies[node].hole(false),
            NO_ANSWERS => self.proxies[node].keep_answers(false),
            READ_ONLY => drop(self.server.sql("mysql", "SET GLOBAL read_only = OFF")),
            PROMOTED => self.promote(),
            _ => {}
        }
        let _ = wait::reap(usize::MAX, |_, _| {});
    }

    fn repeats(&self, fault: &str) -> bool {
        matches!(fault, RESET | SESSIONS_KILLED)
    }

    fn loses(&self, fault: &str) -> bool {
        fault == PROMOTED
    }

    fn log(&mut self) -> &mut Log {
        &mut self.log
    }
}

impl Keeper {
    /// In the middle of whatever they do.
    fn kill_sessions(&self) {
        let others = "SELECT id FROM information_schema.processlist WHERE db = 'jobs'";
        for (number, id) in self.server.sql("mysql", others).lines().enumerate() {
            let what = if number % 2 == 0 { "" } else { "QUERY " };
            // It may have ended meanwhile.
            let mut client = self.server.client();
            client.args(["-e", &format!("KILL {what}{id}")]);
            let _ = client.output();
        }
    }

    /// A replica has everything until now, and receives nothing more.
    fn make_a_replica(&mut self) {
        let replica = start();
        let [follow, position, wait, forget] = replication(self.server.port());
        // The server lets it in as the administrator, whose tables it takes over too.
        replica.sql("mysql", &follow);
        let have = self.server.sql("mysql", &position).replace("\\n", "");
        let wait = format!("{wait}('{have}', {})", PATIENCE.as_secs());
        assert_eq!(
            replica.sql("mysql", &wait),
            "0",
            "the replica does not come"
        );
        replica.sql("mysql", &forget);
        self.replica = Some(replica);
    }

    /// The server is gone, and what the replica has not received is lost.
    fn promote(&mut self) {
        let Some(replica) = self.replica.take() else {
            return;
        };
        self.server.stop(Signal::SIGKILL);
        self.server = replica;
        let port = self.server.port();
        self.proxies.iter().for_each(|proxy| proxy.turn_to(port));
    }
}
