//! The faults of a server and its network: the process that runs both and carries out the orders
//! for faults.

use std::path::Path;
use std::process::exit;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokenrun::sys::{procfs, wait};

use super::keeping::{Kept, obey, ports};
use super::log::Log;
use super::proxy::Proxy;
use super::server::Server;

/// The first word of this program as the one that keeps a server.
pub(crate) const CAUSE: &str = "--cause";

const KILLED: &str = "server killed";
const KILLED_WHOLE: &str = "server killed with all its processes";
const BACKEND_KILLED: &str = "a process of the server's killed";
const AT_ONCE: &str = "server stopped at once";
const FROZEN: &str = "server frozen";
const CUT_OFF: &str = "node cut off";
const NO_ANSWERS: &str = "answers to a node held back";
const RESET: &str = "connections reset";
const PROMOTED: &str = "standby promoted that was cut off before";
const BACK: &str = "server promoted again that a standby had replaced";

/// Everything that can go wrong.
pub(crate) const TROUBLES: [&str; 10] = [
    KILLED,
    KILLED_WHOLE,
    BACKEND_KILLED,
    AT_ONCE,
    FROZEN,
    CUT_OFF,
    NO_ANSWERS,
    RESET,
    PROMOTED,
    BACK,
];

/// Whether commits are lost in it.
pub(crate) fn loses_commits(fault: &str) -> bool {
    matches!(fault, PROMOTED | BACK)
}

/// How long it takes to copy a server, to cut the copy off, to promote it and to move to it.
pub(crate) const MOVING: Duration = Duration::from_secs(15);

/// How long a server may take to start again.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a server recovers at most; then it is started again.
const RECOVERY: Duration = Duration::from_secs(5);

/// A commit that is not explicitly durable is lost in every crash.
const CONFIGURATION: [&str; 3] = [
    "synchronous_commit = off",
    "wal_writer_delay = 10s",
    "log_line_prefix = '%m [%p] '",
];

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
    let folder = Path::new(folder);
    let server = Server::start(&CONFIGURATION);
    let proxies = (0..nodes.parse().unwrap()).map(|_| Proxy::to(server.port()));
    let mut keeper = Keeper {
        proxies: proxies.collect(),
        log: Log::new(&folder.join("server.log")),
        standby: None,
        former: None,
        server,
    };
    let ports = ports(&keeper.proxies);
    obey(&mut keeper, &ports);
    let said = std::fs::read_to_string(keeper.server.log()).unwrap_or_default();
    keeper.log.say(&format!("what it has written:\n{said}"));
    drop(keeper);
    exit(0);
}

struct Keeper {
    server: Server,
    /// What is about to be promoted.
    standby: Option<Server>,
    /// What was the primary before. It is stopped.
    former: Option<Server>,
    proxies: Vec<Proxy>,
    log: Log,
}

impl Kept for Keeper {
    fn begin(&mut self, fault: &str, node: usize) {
        match fault {
            KILLED => signal(self.server.pid(), Signal::SIGKILL),
            KILLED_WHOLE => self.kill_whole(),
            BACKEND_KILLED => {
                if let Some(backend) = self.processes().last() {
                    signal(*backend, Signal::SIGKILL);
                }
            }
            AT_ONCE => self.server.ctl(&["-w", "-m", "immediate", "stop"]),
            FROZEN => {
                let all = self.processes();
                all.into_iter().for_each(|pid| signal(pid, Signal::SIGSTOP));
            }
            CUT_OFF => self.proxies[node].hole(true),
            NO_ANSWERS => self.proxies[node].keep_answers(true),
            PROMOTED => {
                self.until_ready();
                self.cut_off(self.server.standby());
            }
            BACK => {
                self.until_ready();
                self.cut_the_former_off();
            }
            _ => self.proxies.iter().for_each(Proxy::reset),
        }
    }

    fn end(&mut self, fault: &str, node: usize) {
        match fault {
            KILLED | KILLED_WHOLE | AT_ONCE => self.start_again(),
            FROZEN => {
                let all = self.processes();
                all.into_iter().for_each(|pid| signal(pid, Signal::SIGCONT));
            }
            PROMOTED | BACK => self.promote(),
            CUT_OFF => self.proxies[node].hole(false),
            NO_ANSWERS => self.proxies[node].keep_answers(false),
            // A server from which a process was killed starts again by itself.
            _ => {}
        }
        let _ = wait::reap(usize::MAX, |_, _| {}).unwrap();
    }

    fn repeats(&self, fault: &str) -> bool {
        fault == RESET
    }

    fn loses(&self, fault: &str) -> bool {
        loses_commits(fault)
    }

    fn log(&mut self) -> &mut Log {
        &mut self.log
    }
}

impl Keeper {
    fn kill_whole(&self) {
        let all = self.processes();
        all.into_iter().for_each(|pid| signal(pid, Signal::SIGKILL));
    }

    /// A server of which a process was killed may recover still; or it has ended, if that was the
    /// process that recovers.
    fn until_ready(&self) {
        let begun = Instant::now();
        while !self.server.is_ready() {
            assert!(begun.elapsed() < PATIENCE, "the server does not come back");
            if begun.elapsed() > RECOVERY {
                let _ = wait::reap(usize::MAX, |_, _| {}).unwrap();
                let _ = self.server.try_ctl(&["-w", "start"]);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The server that was replaced follows the present one, and is to replace it: there and back
    /// again.
    fn cut_the_former_off(&mut self) {
        let standby = match self.former.take() {
            Some(former) => {
                former.rejoin(&self.server);
                former
            }
            None => self.server.standby(),
        };
        self.cut_off(standby);
    }

    /// The standby, which has everything until now, receives nothing more.
    fn cut_off(&mut self, standby: Server) {
        standby.sql("postgres", "ALTER SYSTEM SET primary_conninfo = ''");
        standby.ctl(&["reload"]);
        let begun = Instant::now();
        let receivers = "SELECT count(*) FROM pg_stat_wal_receiver";
        while standby.sql("postgres", receivers) != "0" {
            assert!(begun.elapsed() < PATIENCE, "the standby is not cut off");
            std::thread::sleep(Duration::from_millis(20));
        }
        self.standby = Some(standby);
    }

    /// The primary is gone, and what the standby has not received is lost.
    fn promote(&mut self) {
        let Some(standby) = self.standby.take() else {
            return;
        };
        self.kill_whole();
        standby.ctl(&["-w", "promote"]);
        self.former = Some(std::mem::replace(&mut self.server, standby));
        self.turn_to_the_server();
    }

    fn turn_to_the_server(&self) {
        let port = self.server.port();
        self.proxies.iter().for_each(|proxy| proxy.turn_to(port));
    }

    /// The server's processes, the first one first.
    fn processes(&self) -> Vec<i32> {
        let first = self.server.pid();
        let all = procfs::processes().unwrap().into_iter();
        let children = all.filter(|it| it.parent == first).map(|it| it.pid);
        std::iter::once(first).chain(children).collect()
    }

    /// Starts the server again, as soon as those that were left of it let it.
    fn start_again(&mut self) {
        let begun = Instant::now();
        loop {
            let _ = wait::reap(usize::MAX, |_, _| {}).unwrap();
            match self.server.try_ctl(&["-w", "start"]) {
                Ok(()) => return,
                Err(why) if begun.elapsed() > PATIENCE => panic!("{why}"),
                Err(_) => {
                    self.log.say("does not start yet");
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        }
    }
}

/// A process that has ended meanwhile needs no signal.
fn signal(pid: i32, signal: Signal) {
    let _ = kill(Pid::from_raw(pid), signal);
}
