use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::ending::NotStarted;
use crate::job::Leftovers;
use crate::store::Retention;
use crate::sys::clock::LocalClock;
use crate::sys::signals::Inherited;

/// What a run needs from the outside world.
#[derive(Debug)]
pub struct Outside {
    /// The clock of supervisor and guard.
    pub clock: LocalClock,
    /// The signal dispositions that the job gets back.
    pub inherited: Inherited,
    /// The job: its program, then its arguments.
    pub argv: Vec<OsString>,
    /// Why this job can't be started, as far as a look at its file tells: then the store is not asked
    /// for a token.
    pub unstartable: Option<NotStarted>,
    /// How much of the job's output is caught; `None`: it prints to where this process does.
    pub capture: Option<usize>,
    /// What happens to processes that the job leaves behind.
    pub leftovers: Leftovers,
    /// The locks that prove whether a run is alive.
    pub locks: LockSettings,
    /// How long history is kept.
    pub retention: Retention,
}

/// Where the locks of a store's runs are, and whether the job inherits this run's.
#[derive(Debug)]
pub struct LockSettings {
    /// The directory, made on demand; `None` where there is no place for it.
    pub directory: Option<PathBuf>,
    /// Whether the job inherits its lock.
    pub inherited: bool,
    /// How long a run waits for the directory's file system, if that is not the store's own: then
    /// another process does what may block. A store in a file lies on the same file system, and is
    /// waited for anyway.
    pub patience: Option<Duration>,
}
