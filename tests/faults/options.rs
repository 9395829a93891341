//! The words of the command line: this suite's own, and those that `cargo test` gives
//! to every test program.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::program::TOKENRUN;

/// How long there are faults if nothing else is asked for.
const BRIEF: Duration = Duration::from_secs(10);

/// The stores that there are.
pub(crate) const STORES: [&str; 7] = [
    "sqlite",
    "postgres",
    "mysql",
    "redis",
    "quorum",
    "etcd",
    "zookeeper",
];

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Options {
    /// How long there are faults.
    pub(crate) length: Duration,
    pub(crate) seed: u64,
    pub(crate) nodes: usize,
    pub(crate) groups: usize,
    /// The stores that it is played on, one after the other.
    pub(crate) stores: Vec<String>,
    /// Whether runs have locks, or their lease alone.
    pub(crate) locks: bool,
    /// Another tokenrun than the one that was built: the suite must turn red on one
    /// that is broken.
    pub(crate) program: PathBuf,
    /// Only names are wanted.
    pub(crate) list: bool,
    filters: Vec<String>,
    skipped: Vec<String>,
    exact: bool,
}

impl Options {
    /// # Panics
    /// If a value can't be understood.
    pub(crate) fn parse(words: &[String]) -> Self {
        let mut options = Self {
            length: BRIEF,
            seed: seed(),
            nodes: 4,
            groups: 4,
            stores: STORES.map(str::to_owned).to_vec(),
            locks: true,
            program: TOKENRUN.into(),
            list: false,
            filters: Vec::new(),
            skipped: Vec::new(),
            exact: false,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (name, inline) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word.as_str(), None),
            };
            let mut value = || {
                let value = inline.clone().or_else(|| words.next().cloned());
                value.unwrap_or_else(|| panic!("{name} needs a value"))
            };
            match name {
                "--minutes" => options.length = Duration::from_secs(60 * number(&value())),
                "--seed" => options.seed = number(&value()),
                "--nodes" => options.nodes = index(&value()),
                "--groups" => options.groups = index(&value()),
                "--store" => options.stores = vec![value()],
                "--program" => options.program = value().into(),
                "--skip" => options.skipped.push(value()),
                "--test-threads" | "--format" | "--color" | "-Z" | "--logfile"
                | "--shuffle-seed" => drop(value()),
                "--list" => options.list = true,
                "--exact" => options.exact = true,
                // There is no test that is left out unless it is asked for.
                "--ignored" => options.skipped.push(String::new()),
                _ if name.starts_with('-') => {}
                _ => options.filters.push(word.clone()),
            }
        }
        options
    }

    /// The name of the test on this store.
    pub(crate) fn name(&self, store: &str) -> String {
        let alone = if self.locks {
            ""
        } else {
            "_by_the_lease_alone"
        };
        format!("faults_on_{store}{alone}")
    }

    /// Whether a test of this name is wanted.
    pub(crate) fn wants(&self, name: &str) -> bool {
        let is_it = |filter: &String| match self.exact {
            true => name == filter,
            false => name.contains(filter.as_str()),
        };
        let chosen = self.filters.is_empty() || self.filters.iter().any(is_it);
        chosen && !self.skipped.iter().any(is_it)
    }
}

fn number(text: &str) -> u64 {
    text.parse()
        .unwrap_or_else(|_| panic!("{text:?} is no number"))
}

fn index(text: &str) -> usize {
    usize::try_from(number(text)).unwrap().max(1)
}

/// Another seed each time: the clock's.
fn seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    u64::from(now.unwrap_or_default().subsec_nanos())
}
