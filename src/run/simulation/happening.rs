//! What happens in the simulated world, by chance or by plan.

use crate::run::event::Event;
use crate::run::machine::Wait;
use crate::store::Request;

/// A scheduled event.
#[derive(Debug)]
pub(super) enum What {
    /// A cron slot on a node.
    Slot(usize),
    /// A process may be due.
    Wake(usize),
    /// A request reaches the store.
    Arrive {
        process: usize,
        call: u64,
        request: Box<Request>,
    },
    /// An answer reaches a process.
    Answer {
        process: usize,
        call: u64,
        event: Box<Event>,
    },
    /// The job's own process ends.
    JobEnds(usize),
    /// The processes that the job left behind end.
    TreeEnds(usize),
    Fault,
    Heal,
    Operator,
    Thaw(usize),
    Continue {
        process: usize,
        guard: bool,
    },
    /// What a plan holds for a certain time.
    Planned(Planned),
}

/// A planned event, in contrast to a random one.
#[derive(Debug)]
pub(super) enum Planned {
    /// A node starts the job's wrapper.
    Start { node: usize, start: Start },
    /// A node is cut off from the store, or connected again.
    Cut { node: usize, cut: bool },
    /// A node loses its power.
    PowerOff(usize),
    /// A node is suspended for so many ms.
    Suspend { node: usize, ms: u64 },
    /// The store has restarted; its wall clock was set by so many ms.
    Restart(i64),
    /// A backup of the store is made.
    Backup,
    /// The store loses commits.
    Forget(Forgetting),
    /// An operator moves the group away from a node, if it is bound there.
    Drain(usize),
}

/// How a store loses commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forgetting {
    /// A crash loses the last ones, of a store that does not wait for its disk: Redis, by default.
    Crash,
    /// A promotion of a replica that is behind: PostgreSQL, MySQL and Redis.
    Failover,
    /// All data is lost: each store, and the memory of a majority of Redis servers.
    Wipe,
    /// A backup is restored: each store, and a majority of etcd's or ZooKeeper's members whose disks are lost.
    Restore,
}

/// How a wrapper is started.
#[derive(Debug, Clone)]
pub(super) struct Start {
    pub(super) wait: Wait,
    pub(super) locks: bool,
    pub(super) once_key: Option<String>,
}
