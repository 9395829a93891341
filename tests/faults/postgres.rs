//! A PostgreSQL server, with a network to each node. Both are kept by another process,
//! which has threads, and sees the server's processes that are left behind.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::geteuid;

use super::call::STATE;
use super::database::Database;
use super::job::myself;
use super::keeping::SETTLE;
use super::troubles::{CAUSE, MOVING, TROUBLES, loses_commits};
use super::world::node_name;

/// Where root's state is.
const STATE_OF_ROOT: &str = "/var/lib/tokenrun";

/// A server, seen from every node through a network of its own.
#[derive(Debug)]
pub(crate) struct Postgres {
    locks: PathBuf,
    keeper: Child,
    said: BufReader<ChildStdout>,
    /// A port for each node.
    ports: Vec<(String, String)>,
    /// The node that the next fault of one node hits.
    next: usize,
}

impl Postgres {
    /// Starts it. Its log comes into the folder when it is over.
    pub(crate) fn new(folder: &Path, nodes: usize) -> Self {
        Self::kept_by(CAUSE, folder, nodes)
    }

    /// Starts a server that this program keeps with `word` as its first word.
    pub(crate) fn kept_by(word: &str, folder: &Path, nodes: usize) -> Self {
        let state = folder.join(STATE);
        let of_tokenrun = state.join("tokenrun");
        fs::create_dir_all(&of_tokenrun).unwrap();
        fs::set_permissions(&of_tokenrun, Permissions::from_mode(0o700)).unwrap();
        if geteuid().is_root() {
            stand_in_for_the_state_of_root(&of_tokenrun);
        }
        let mut keeper = Command::new(myself());
        keeper.arg(word).arg(folder).arg(nodes.to_string());
        keeper.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = keeper.spawn().unwrap();
        let mut said = BufReader::new(keeper.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let ports = line.split_ascii_whitespace().map(str::to_owned);
        let ports: Vec<_> = (0..nodes).map(node_name).zip(ports).collect();
        assert_eq!(ports.len(), nodes, "the server did not start");
        Self {
            locks: of_tokenrun.join("locks"),
            keeper,
            said,
            ports,
            next: 0,
        }
    }

    /// The port of a node's network.
    pub(crate) fn port(&self, node: &str) -> &str {
        let (_, port) = self.ports.iter().find(|(name, _)| name == node).unwrap();
        port
    }

    fn tell(&mut self, words: &str) {
        let stdin = self.keeper.stdin.as_mut().unwrap();
        writeln!(stdin, "{words}").expect("the server's keeper is there");
    }
}

/// For this process and those that it starts from now on: root has the state of its
/// host, and no test touches that.
fn stand_in_for_the_state_of_root(folder: &Path) {
    fs::create_dir_all(STATE_OF_ROOT).unwrap();
    let none = None::<&str>;
    unshare(CloneFlags::CLONE_NEWNS).expect("root may have mounts of its own");
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
    mount(Some(folder), STATE_OF_ROOT, none, MsFlags::MS_BIND, none).unwrap();
}

impl Database for Postgres {
    fn url(&self, node: &str) -> String {
        let port = self.port(node);
        format!("postgres://postgres@127.0.0.1:{port}/postgres")
    }

    fn faults(&self) -> &'static [&'static str] {
        &TROUBLES
    }

    fn loses(&self, fault: &str, length: Duration) -> Option<Duration> {
        loses_commits(fault).then_some(length + MOVING)
    }

    fn share(&self) -> u64 {
        25
    }

    fn begin(&mut self, fault: &str, length: Duration) {
        let node = self.next % self.ports.len();
        self.next += 1;
        self.tell(&format!("{} {node} {fault}", length.as_millis()));
    }

    fn waits_for_the_stopped(&self) -> bool {
        false
    }

    fn mend(&mut self) {
        self.tell("");
    }

    fn settle(&mut self) {
        self.tell(SETTLE);
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), SETTLE, "the server did not come back");
    }

    fn keeper(&self) -> Option<i32> {
        i32::try_from(self.keeper.id()).ok()
    }

    fn locks(&self) -> PathBuf {
        self.locks.clone()
    }

    /// A restarted server has another clock epoch: a session that waits for a silent run must wait
    /// from then on.
    fn patience(&self) -> Duration {
        Duration::from_secs(3)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // Another call may have reaped it.
        let _ = self.keeper.wait();
        if geteuid().is_root() {
            let _ = umount2(STATE_OF_ROOT, MntFlags::MNT_DETACH);
        }
    }
}
