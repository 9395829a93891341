//! What happens in the simulated world, by chance or by plan.

use crate::run::event::Event;
use crate::run::machine::Wait;
use crate::store::Request;

/// What is to happen at some time.
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
    /// The job's own process comes to its end.
    JobEnds(usize),
    /// What the job left behind comes to its end.
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

/// What happens because it was planned, and not by chance.
#[derive(Debug)]
pub(super) enum Planned {
    /// A node starts the job's wrapper.
    Start { node: usize, start: Start },
    /// A node is cut off from the store, or not any more.
    Cut { node: usize, cut: bool },
    /// A node loses its power.
    PowerOff(usize),
    /// The store has been started anew; its wall clock was set by so many ms.
    Restart(i64),
}

/// How a wrapper is started.
#[derive(Debug, Clone)]
pub(super) struct Start {
    pub(super) wait: Wait,
    pub(super) locks: bool,
    pub(super) once_key: Option<String>,
}
