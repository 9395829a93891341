//! The nodes, each of which calls tokenrun again and again, and every process that is alive.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tokenrun::sys::wait::{Left, Status, reap};

use super::call::{Live, Paths, STATE, Wishes};
use super::database::Database;
use super::evidence::Ended;
use super::job::Plan;
use super::log::Log;
use super::random::Random;
use super::stamps::{Stamps, now};

pub(crate) const MS: u64 = 1_000_000;

/// Between two looks at every live process.
const LOOK_EVERY: u64 = 4 * MS;

/// How many calls of one node may be alive: cron starts the next one whatever the
/// last one does.
const MOST_OF_A_NODE: usize = 4;

/// A node, by its number.
pub(crate) fn node_name(index: usize) -> String {
    format!("node-{index}")
}

/// A client that calls tokenrun for a group.
#[derive(Debug)]
struct Node {
    group: String,
    client: String,
    /// As cron does, not as a loop that tries again when it was refused.
    by_the_clock: bool,
    due: u64,
}

/// Everything that the suite has started.
pub(crate) struct World {
    pub(crate) place: Paths,
    pub(crate) random: Random,
    pub(crate) log: Log,
    pub(crate) database: Box<dyn Database>,
    nodes: Vec<Node>,
    pub(crate) live: Vec<Live>,
    /// Ended calls, as far as is known.
    pub(crate) over: Vec<Live>,
    calls: usize,
    looked_at: u64,
}

impl World {
    pub(crate) fn new(
        place: Paths,
        random: Random,
        database: Box<dyn Database>,
        (groups, nodes): (usize, usize),
    ) -> Self {
        for kind in ["slots", "reports", "stderr"] {
            std::fs::create_dir(place.folder.join(kind)).unwrap();
        }
        let log = Log::new(&place.folder.join("events.log"));
        let node = |group: usize, index: usize| Node {
            group: format!("group-{group}"),
            client: node_name(index),
            by_the_clock: index % 2 == 1,
            due: 0,
        };
        let of_group = |group| (0..nodes).map(move |index| node(group, index));
        Self {
            place,
            random,
            log,
            database,
            nodes: (0..groups).flat_map(of_group).collect(),
            live: Vec::new(),
            over: Vec::new(),
            calls: 0,
            looked_at: 0,
        }
    }

    pub(crate) fn groups(&self) -> BTreeSet<String> {
        self.nodes.iter().map(|node| node.group.clone()).collect()
    }

    /// Calls tokenrun for every node whose time has come; after the last fault with brief jobs and
    /// long limits. Gives the new calls' places among the living.
    pub(crate) fn call_those_due(&mut self, over: bool) -> Vec<usize> {
        let mut begun = Vec::new();
        for index in 0..self.nodes.len() {
            let node = &self.nodes[index];
            let (group, client) = (node.group.clone(), node.client.clone());
            let (by_the_clock, due) = (node.by_the_clock, node.due);
            let is_its = |live: &&Live| live.call.client == client && live.call.group == group;
            let living = self.live.iter().filter(is_its);
            let living = living.filter(|live| live.call.ended.is_none()).count();
            let most = if by_the_clock { MOST_OF_A_NODE } else { 1 };
            if now() < due || living >= most {
                continue;
            }
            let pause = match by_the_clock {
                true => self.random.range(300, 2_000),
                false => self.random.spread(10, 250),
            };
            self.nodes[index].due = now() + pause * MS;
            let wishes = match over {
                true => Wishes::patient(&mut self.random),
                false => Wishes::random(&mut self.random),
            };
            let plan = Plan::random(&mut self.random, over);
            begun.extend(self.call(&group, &client, &wishes, &plan));
        }
        begun
    }

    fn call(&mut self, group: &str, client: &str, wishes: &Wishes, plan: &Plan) -> Option<usize> {
        self.calls += 1;
        let which = (self.calls, group, client);
        let url = self.database.url(client);
        match Live::start(&self.place, &url, which, wishes, plan) {
            Some(live) => self.live.push(live),
            None => {
                self.log.say("the machine has no process to give");
                return None;
            }
        }
        Some(self.live.len() - 1)
    }

    /// Takes notice of what has happened; sleeps a moment if nothing has.
    pub(crate) fn turn(&mut self) {
        if !self.reap() {
            std::thread::sleep(Duration::from_micros(700));
        }
        if now() >= self.looked_at + LOOK_EVERY {
            self.looked_at = now();
            let all = std::mem::take(&mut self.live);
            for mut live in all {
                if live.look() {
                    self.live.push(live);
                } else {
                    self.over.push(live);
                }
            }
        }
    }

    /// Reaps every ended process, including orphans. Returns whether there was one.
    fn reap(&mut self) -> bool {
        let mut ended = HashMap::new();
        let _ = reap(usize::MAX, |pid, status| {
            ended.insert(pid, status);
        })
        .unwrap();
        for live in self
            .live
            .iter_mut()
            .filter(|live| live.call.ended.is_none())
        {
            let Some(status) = ended.get(&live.pid) else {
                continue;
            };
            live.ended(*status);
            live.tidy(&self.place);
            if !matches!(status, Status::Exited(75)) {
                let (number, client) = (live.call.number, &live.call.client);
                let line = format!("{}: run {number} of {client}: {status:?}", live.call.group);
                self.log.say(&line);
            }
        }
        !ended.is_empty()
    }

    /// Turns until there is an answer, or this long.
    pub(crate) fn until<R>(
        &mut self,
        patience: Duration,
        mut ask: impl FnMut(&mut Self) -> Option<R>,
    ) -> Option<R> {
        let begun = now();
        loop {
            if let Some(answer) = ask(self) {
                return Some(answer);
            }
            if now() - begun > u64::try_from(patience.as_nanos()).unwrap() {
                return None;
            }
            self.turn();
        }
    }

    /// The groups in which a job has begun after that.
    pub(crate) fn ran_since(&self, since: u64) -> BTreeSet<String> {
        let all = self.live.iter().chain(&self.over);
        // Numbers rise with time, and what was called long before is not asked again.
        let begun = all.filter(|live| {
            let stamps = Stamps::read(&live.slots[0]);
            stamps.is_some_and(|stamps| stamps.first > since)
        });
        begun.map(|live| live.call.group.clone()).collect()
    }

    /// A run that nothing stands in the way of, tried until it succeeds. Says whether
    /// it did.
    pub(crate) fn run_plainly(&mut self, group: &str, patience: Duration) -> bool {
        let succeeded = self.until(patience, |world| {
            let wishes = Wishes::plain(&mut world.random);
            let index = world.call(group, &node_name(0), &wishes, &Plan::EMPTY)?;
            let number = world.live[index].call.number;
            let ended = world.until(patience, |world| world.end_of(number))?;
            (ended == Ended::Code(0)).then_some(())
        });
        succeeded.is_some()
    }

    fn end_of(&self, number: usize) -> Option<Ended> {
        let mut all = self.live.iter().chain(self.over.iter().rev());
        let call = all.find(|live| live.call.number == number)?;
        call.call.ended.map(|(_, ended)| ended)
    }

    /// What should not be there when everything is over: processes, then files.
    pub(crate) fn left(&mut self) -> Vec<String> {
        let mut left = Vec::new();
        let _ = self.until(Duration::from_secs(5), |world| {
            world.reap();
            let own = tokenrun::sys::process::pid();
            let keeper = world.database.keeper();
            let all = tokenrun::sys::procfs::processes().unwrap().into_iter();
            let children = all.filter(|it| it.parent == own && Some(it.pid) != keeper);
            left = children.map(|process| format!("{process:?}")).collect();
            left.is_empty().then_some(())
        });
        let files = names(&self.place.folder).into_iter();
        let files = files.filter(|name| !KNOWN.contains(&name.as_str()));
        let files = files.chain(lock_files(&self.database.locks()));
        left.extend(files.map(|name| format!("the file {name}")));
        left
    }

    /// Lets days pass for the files of locks: a process that was killed while it took them left
    /// them, and they are swept when they are old.
    pub(crate) fn age_lock_files(&self) {
        let folder = self.database.locks();
        let long_ago = SystemTime::now() - Duration::from_secs(3 * 24 * 3_600);
        for name in names(&folder) {
            let file = File::options().write(true).open(folder.join(name));
            file.unwrap().set_modified(long_ago).unwrap();
        }
    }

    /// Kills the remaining processes, at last.
    pub(crate) fn end_all_processes() {
        let own = tokenrun::sys::process::pid();
        while reap(usize::MAX, |_, _| {}).unwrap() != Left::Nothing {
            let all = tokenrun::sys::procfs::processes().unwrap();
            for child in all.iter().filter(|process| process.parent == own) {
                let _ = tokenrun::sys::process::signal_child(child.pid, nix::libc::SIGKILL);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The next victim: a run with a job if there is one, most of the time.
    pub(crate) fn victim(&mut self) -> Option<usize> {
        let has_supervisor = |live: &Live| live.call.ended.is_none();
        let all: Vec<usize> = (0..self.live.len()).collect();
        let with_job: Vec<usize> = all
            .iter()
            .copied()
            .filter(|index| self.live[*index].has_job())
            .collect();
        if !with_job.is_empty() && self.random.percent(85) {
            return Some(*self.random.pick(&with_job));
        }
        let waiting = all
            .into_iter()
            .filter(|index| has_supervisor(&self.live[*index]));
        let waiting: Vec<usize> = waiting.collect();
        (!waiting.is_empty()).then(|| *self.random.pick(&waiting))
    }
}

/// What a suite's folder may hold in the end.
const KNOWN: [&str; 10] = [
    "tokens.db",
    "tokens.db-wal",
    "tokens.db-shm",
    "tokens.db-locks",
    STATE,
    "slots",
    "reports",
    "stderr",
    "events.log",
    "server.log",
];

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.collect()
}

/// The files of locks: all that the folder holds but the mark of the last sweep.
pub(crate) fn lock_files(folder: &Path) -> Vec<String> {
    let mut names = names(folder);
    names.retain(|name| !name.starts_with("swept"));
    names
}
