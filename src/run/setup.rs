use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::ending::NotStarted;
use crate::job::Leftovers;
use crate::store::Retention;
use crate::sys::clock::LocalClock;
use crate::sys::signals::Inherited;

/// What a run needs of this host, and how it goes about its job.
#[derive(Debug)]
pub struct Setup {
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

/// Where the locks of a store's runs are, and who holds this run's.
#[derive(Debug)]
pub struct LockSettings {
    /// The directory, made on demand; `None` where there is no place for it.
    pub directory: Option<PathBuf>,
    /// True if the job inherits its lock.
    pub inherited: bool,
    /// How long a run waits for the directory's file system, if that is not the store's own: then
    /// another process does what may block. A store in a file lies on the same file system, and is
    /// waited for anyway.
    pub patience: Option<Duration>,
}
