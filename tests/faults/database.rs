//! The database that the nodes contend on, and what can happen to it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rusqlite::Connection;

use super::job::myself;

/// A kind of database, with faults of its own. The processes that it starts are children of this
/// process, which the reaper ignores.
pub(crate) trait Database {
    /// What `--store` is given on this node.
    fn url(&self, node: &str) -> String;

    /// The names of the faults that it knows, the frequent ones more often.
    fn faults(&self) -> &'static [&'static str];

    /// For how long at most commits are lost in a fault that lasts for `length`.
    fn loses(&self, fault: &str, length: Duration) -> Option<Duration> {
        let _ = (fault, length);
        None
    }

    /// Whether everything before such a fault is lost too.
    fn forgets(&self, fault: &str) -> bool {
        let _ = fault;
        false
    }

    /// How many of a hundred faults are its own.
    fn share(&self) -> u64;

    /// Begins a fault of this length, unless it is ended earlier.
    fn begin(&mut self, fault: &str, length: Duration);

    /// Whether a client that is stopped while it writes holds up the others.
    fn waits_for_the_stopped(&self) -> bool;

    /// Ends whatever still lasts.
    fn mend(&mut self);

    /// Waits until that has been done.
    fn settle(&mut self) {}

    /// The process that it needs as long as the suite lasts, if there is one.
    fn keeper(&self) -> Option<i32> {
        None
    }

    /// Where the locks of its runs are on this host.
    fn locks(&self) -> PathBuf;

    /// Lets no lock be taken from now on, as if every node were another host.
    fn forbid_locks(&self) {
        std::fs::write(self.locks(), "").unwrap();
    }

    /// How much longer than takeover-after a node may have to wait once all is well.
    fn patience(&self) -> Duration;
}

/// The first word of this program as a writer that holds up the others.
pub(crate) const WRITE: &str = "--write";

const HELD_BY_A_WRITER: &str = "store held by a writer";
const CHECKPOINT: &str = "store checkpointed";

/// A SQLite file.
#[derive(Debug)]
pub(crate) struct Sqlite {
    file: PathBuf,
    writers: Vec<Child>,
}

impl Sqlite {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            file: folder.join("tokens.db"),
            writers: Vec::new(),
        }
    }
}

impl Database for Sqlite {
    fn url(&self, _node: &str) -> String {
        format!("sqlite://{}", self.file.display())
    }

    fn faults(&self) -> &'static [&'static str] {
        &[HELD_BY_A_WRITER, HELD_BY_A_WRITER, CHECKPOINT]
    }

    fn share(&self) -> u64 {
        8
    }

    fn begin(&mut self, fault: &str, length: Duration) {
        let mut writer = Command::new(myself());
        writer.arg(WRITE).arg(fault).arg(&self.file);
        writer.arg(length.as_millis().to_string());
        self.writers
            .push(writer.stdin(Stdio::null()).spawn().unwrap());
    }

    fn waits_for_the_stopped(&self) -> bool {
        true
    }

    fn mend(&mut self) {
        for mut writer in self.writers.drain(..) {
            // It may have ended long ago, and been reaped elsewhere.
            let _ = writer.try_wait().is_ok_and(|ended| ended.is_none()) && writer.kill().is_ok();
        }
    }

    fn locks(&self) -> PathBuf {
        self.file.with_extension("db-locks")
    }

    fn patience(&self) -> Duration {
        Duration::ZERO
    }
}

/// Runs as a writer, and never returns, if the words are a writer's. It waits for no lock: a locked
/// database is hindered already.
pub(crate) fn run_as_writer(words: &[String]) {
    let [what, fault, file, millis] = words else {
        return;
    };
    if what != WRITE {
        return;
    }
    let length = Duration::from_millis(millis.parse().unwrap());
    let connection = Connection::open(file).unwrap();
    connection.busy_timeout(length).unwrap();
    let done = if fault == CHECKPOINT {
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    } else {
        connection.execute_batch("BEGIN IMMEDIATE")
    };
    if done.is_ok() && fault != CHECKPOINT {
        std::thread::sleep(length);
    }
    std::process::exit(0);
}
