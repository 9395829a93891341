//! What happens to the job, and which other job starts, under faults.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::common::Folder;
use crate::common::processes::children;
use crate::tools::{LEASE, Store, Tool, Turn};

/// For how long what happens is watched.
const WATCHED: Duration = Duration::from_secs(14);

/// For how long a store is frozen: longer than a lease.
const FROZEN: Duration = Duration::from_secs(9);

/// How often is looked.
const LOOK: Duration = Duration::from_millis(5);

/// What goes wrong.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Trouble {
    Killed,
    Stopped,
    Frozen,
}

impl Trouble {
    pub(crate) const ALL: [Self; 3] = [Self::Killed, Self::Stopped, Self::Frozen];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Killed => "it is killed (`kill -9`)",
            Self::Stopped => "it is stopped (`kill -STOP`)",
            Self::Frozen => "its store is frozen for 9 s",
        }
    }
}

/// A tool with a job that runs, and another in the queue.
struct Pair {
    first: Child,
    job: u32,
    second: Child,
    begun: PathBuf,
    ended_after: Option<Duration>,
    next_after: Option<Duration>,
}

/// What happens to each tool, in their order, all at the same time.
pub(crate) fn watch(trouble: Trouble, tools: &[Tool], folder: &Folder) -> Vec<String> {
    let can = |tool: &Tool| trouble != Trouble::Frozen || !matches!(tool.store, Store::Lock);
    let mut pairs: Vec<Option<Pair>> = tools
        .iter()
        .enumerate()
        .map(|(at, tool)| can(tool).then(|| Pair::start(tool, trouble, at, folder)))
        .collect();
    // Those that wait have said so to their stores by now.
    std::thread::sleep(Duration::from_secs(1));
    let since = Instant::now();
    let mut frozen = None;
    match trouble {
        Trouble::Killed => hit(&pairs, Signal::SIGKILL),
        Trouble::Stopped => hit(&pairs, Signal::SIGSTOP),
        Trouble::Frozen => frozen = Some(Frozen::freeze(tools)),
    }
    while since.elapsed() < WATCHED {
        for pair in pairs.iter_mut().flatten() {
            pair.look(since);
        }
        if since.elapsed() > FROZEN {
            frozen = None;
        }
        std::thread::sleep(LOOK);
    }
    drop(frozen);
    pairs
        .into_iter()
        .map(|pair| pair.map_or("needs no store".to_owned(), Pair::verdict))
        .collect()
}

fn hit(pairs: &[Option<Pair>], signal: Signal) {
    for pair in pairs.iter().flatten() {
        kill(pid(pair.first.id()), signal).expect("it lives");
    }
}

impl Pair {
    fn start(tool: &Tool, trouble: Trouble, at: usize, folder: &Folder) -> Self {
        let group = format!("{}-{at}", trouble as u8);
        let start = |name: &str| {
            let file = folder.file(&format!("{name}-{group}"));
            let path = file.to_str().expect("a path");
            let job = "echo $$ > \"$0.new\"; mv \"$0.new\" \"$0\"; exec sleep 1000";
            let command = tool.command(&group, Turn::Wait, &["sh", "-c", job, path]);
            let mut command = command.expect("it can wait");
            command.process_group(0).stdin(Stdio::null());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            (command.spawn().expect("it starts"), file)
        };
        let (first, file) = start("first");
        let begun = Instant::now();
        let job = loop {
            if let Some(job) = pid_in(&file) {
                break job;
            }
            assert!(begun.elapsed() < LEASE, "{} does not begin", tool.name);
            std::thread::sleep(LOOK);
        };
        let (second, begun) = start("second");
        Self {
            first,
            job,
            second,
            begun,
            ended_after: None,
            next_after: None,
        }
    }

    fn look(&mut self, since: Instant) {
        let now = since.elapsed();
        // The begin first: a job that has ended when the other is seen has not overlapped.
        if self.next_after.is_none() && self.begun.exists() {
            self.next_after = Some(now);
        }
        if self.ended_after.is_none() && !is_alive(self.job) {
            self.ended_after = Some(now);
        }
        // A wrapper that is dead is no zombie that something could wait for.
        let _ = self.first.try_wait();
    }

    /// Ends both, and says what was seen.
    fn verdict(mut self) -> String {
        let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
        let text = match (self.ended_after, self.next_after) {
            (Some(end), Some(next)) if end <= next => {
                format!(
                    "job ended after {}, the next began after {}",
                    seconds(end),
                    seconds(next)
                )
            }
            (end, Some(next)) => {
                let until = end.map_or(String::new(), |end| format!(" to {}", seconds(end)));
                format!("**two jobs at once** from {}{until}", seconds(next))
            }
            (Some(end), None) => format!("job ended after {}, no other began", seconds(end)),
            (None, None) => "job goes on, no other begins".to_owned(),
        };
        for child in [&mut self.first, &mut self.second] {
            // All that it has started is in its group; some of it may be gone.
            let _ = killpg(pid(child.id()), Signal::SIGKILL);
            let _ = child.wait();
        }
        text
    }
}

/// What is frozen, for as long as this lives.
struct Frozen {
    stopped: Vec<u32>,
    locked: Vec<rusqlite::Connection>,
}

impl Frozen {
    fn freeze(tools: &[Tool]) -> Self {
        let mut frozen = Self {
            stopped: Vec::new(),
            locked: Vec::new(),
        };
        for tool in tools {
            match &tool.store {
                Store::Lock => {}
                Store::Sqlite(file) => {
                    let connection = rusqlite::Connection::open(file).expect("it opens");
                    let wait = connection.busy_timeout(Duration::from_secs(5));
                    wait.expect("a time-out");
                    connection
                        .execute_batch("BEGIN IMMEDIATE")
                        .expect("it locks");
                    frozen.locked.push(connection);
                }
                Store::Server(first) => {
                    frozen.stopped.push(*first);
                    let _ = kill(pid(*first), Signal::SIGSTOP);
                    for child in children(*first) {
                        frozen.stopped.push(child);
                        let _ = kill(pid(child), Signal::SIGSTOP);
                    }
                }
            }
        }
        frozen
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        for stopped in &self.stopped {
            let _ = kill(pid(*stopped), Signal::SIGCONT);
        }
    }
}

fn pid(id: u32) -> Pid {
    Pid::from_raw(i32::try_from(id).expect("a pid"))
}

fn pid_in(file: &Path) -> Option<u32> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Whether it is there, and no zombie.
fn is_alive(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}
