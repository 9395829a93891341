//! What a run needs from outside.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::job::Leftovers;
use crate::store::Retention;
use crate::sys::clock::LocalClock;
use crate::sys::signals::Inherited;

/// What a run needs from outside.
#[derive(Debug)]
pub struct Outside {
    /// The clock of supervisor and guard.
    pub clock: LocalClock,
    /// The signals that the job is given back.
    pub inherited: Inherited,
    /// The job: its program, then its arguments.
    pub argv: Vec<OsString>,
    /// What becomes of the processes that it leaves behind.
    pub leftovers: Leftovers,
    /// The locks that prove whether a run lives.
    pub locks: LockSettings,
    /// How long what is over is kept.
    pub retention: Retention,
}

/// Where the locks of a store's runs are, and who inherits this run's.
#[derive(Debug)]
pub struct LockSettings {
    /// The directory, which is made when it is needed; `None` where there is no place for it.
    pub directory: Option<PathBuf>,
    /// Whether the job inherits its lock.
    pub inherited: bool,
    /// How long its file system is waited for, where it is not the store's own: then another
    /// process does what may have to wait. A store in a file lies on the same file system,
    /// and is waited for anyway.
    pub patience: Option<Duration>,
}
