//! What goes wrong with a server and its network: the process that keeps both, and
//! hinders them as it is told.

use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::process::exit;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokenrun::sys::{procfs, wait};

use super::log::Log;
use super::proxy::Proxy;
use super::server::Server;

/// The first word of this program as the one that keeps a server.
pub(crate) const CAUSE: &str = "--cause";

/// A line that is said back when all is well.
pub(crate) const SETTLE: &str = "settle";

const KILLED: &str = "server killed";
const KILLED_WHOLE: &str = "server killed with all its processes";
const BACKEND_KILLED: &str = "a process of the server's killed";
const AT_ONCE: &str = "server stopped at once";
const FROZEN: &str = "server frozen";
const CUT_OFF: &str = "node cut off";
const NO_ANSWERS: &str = "answers to a node held back";
const RESET: &str = "connections reset";

/// Everything that can go wrong.
pub(crate) const TROUBLES: [&str; 8] = [
    KILLED,
    KILLED_WHOLE,
    BACKEND_KILLED,
    AT_ONCE,
    FROZEN,
    CUT_OFF,
    NO_ANSWERS,
    RESET,
];

/// How often what happens again and again does.
const AGAIN: Duration = Duration::from_millis(90);

/// How long a server may take to start again.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is not said to be durable is lost in every crash: whoever needs more must say so.
const CONFIGURATION: [&str; 3] = [
    "synchronous_commit = off",
    "wal_writer_delay = 10s",
    "log_line_prefix = '%m [%p] '",
];

/// Does what the words say, if they are its own, and never comes back then.
pub(crate) fn cause_as_told(words: &[String]) {
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
        server,
    };
    let ports: Vec<String> = keeper
        .proxies
        .iter()
        .map(|it| it.port.to_string())
        .collect();
    say(&ports.join(" "));
    keeper.obey(&lines());
    let said = std::fs::read_to_string(keeper.server.log()).unwrap_or_default();
    keeper.log.say(&format!("what it has written:\n{said}"));
    drop(keeper);
    exit(0);
}

fn say(line: &str) {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{line}").unwrap();
    stdout.flush().unwrap();
}

/// The lines of standard input, as they come.
fn lines() -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let _ = sender.send(line.unwrap());
        }
    });
    lines
}

struct Keeper {
    server: Server,
    proxies: Vec<Proxy>,
    log: Log,
}

impl Keeper {
    /// Until nobody tells it anything any more.
    fn obey(&mut self, lines: &Receiver<String>) {
        while let Ok(line) = lines.recv() {
            let mut words = line.splitn(3, ' ');
            let mut word = || words.next().unwrap_or_default();
            let (length, node, fault) = (word(), word(), word());
            if length == SETTLE {
                say(SETTLE);
            } else if !fault.is_empty() {
                let length = Duration::from_millis(length.parse().unwrap());
                self.cause(fault, node.parse().unwrap(), length, lines);
            }
        }
    }

    /// A trouble from its begin to its end: so long, or to the next line, which mends it.
    fn cause(&mut self, fault: &str, node: usize, length: Duration, lines: &Receiver<String>) {
        self.log.say(&format!("{fault} (node {node})"));
        self.begin(fault, node);
        let end = Instant::now() + length;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match lines.recv_timeout(left.min(AGAIN)) {
                Err(RecvTimeoutError::Timeout) if !left.is_zero() => {
                    if fault == RESET {
                        self.begin(fault, node);
                    }
                }
                _ => break,
            }
        }
        self.log.say("is mended");
        self.end(fault, node);
        self.log.say("is well");
    }

    fn begin(&mut self, fault: &str, node: usize) {
        match fault {
            KILLED => signal(self.server.pid(), Signal::SIGKILL),
            KILLED_WHOLE => {
                let all = self.processes();
                all.into_iter().for_each(|pid| signal(pid, Signal::SIGKILL));
            }
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
            CUT_OFF => self.proxies[node].hole(false),
            NO_ANSWERS => self.proxies[node].keep_answers(false),
            // A server from which a process was killed starts again by itself.
            _ => {}
        }
        let _ = wait::reap(usize::MAX, |_, _| {}).unwrap();
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

/// Who has ended meanwhile needs none.
fn signal(pid: i32, signal: Signal) {
    let _ = kill(Pid::from_raw(pid), signal);
}
