//! The settings of a guard, fixed at its fork.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::sys::clock::LocalClock;
use crate::sys::signals::Inherited;

/// What happens to processes that a job leaves behind when it ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftovers {
    /// They are ended.
    Kill,
    /// They live on, unless the lease is lost.
    Leave,
}

/// The guard's settings, fixed at its fork.
#[derive(Debug)]
pub struct GuardSettings {
    /// The job: its program, then its arguments.
    pub argv: Vec<OsString>,
    /// What becomes the job's stdout and stderr; `None`: those of this process. Neither the
    /// supervisor nor, once the job runs, the guard keeps it open.
    pub output: Option<OwnedFd>,
    /// What happens to processes that the job leaves behind.
    pub leftovers: Leftovers,
    /// The time between TERM and KILL, where no deadline is nearer.
    pub kill_grace: Duration,
    /// The signal dispositions that the job gets back.
    pub inherited: Inherited,
    /// The clock of the deadlines.
    pub clock: LocalClock,
}

impl GuardSettings {
    /// The job's program, as messages call it.
    pub fn program(&self) -> String {
        let name = self.argv.first().map(|name| name.to_string_lossy());
        name.unwrap_or_default().into_owned()
    }
}
