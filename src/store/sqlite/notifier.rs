//! The notifier of waiters: a watch for closes of the log.
//!
//! The end of a run opens the log, syncs and closes it after the commit, and a process that dies
//! closes it too. So the ends of runs, and operators' commands, notify the waiters. Heartbeats do
//! not: they neither sync nor close, so that waiters do not wake each other. A release costs
//! nothing more, with or without waiters.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use crate::store::Notifier;
use crate::sys::events::CloseWatch;

/// A watch on a log.
pub(super) struct LogWatch {
    closes: CloseWatch,
    notifier: Arc<OwnedFd>,
}

impl LogWatch {
    /// Watches the log at this path. `None` if the kernel refuses a watch: then only a look every
    /// second is left.
    pub(super) fn new(log: &Path) -> Option<Self> {
        let closes = CloseWatch::new(log).ok()?;
        let notifier = Arc::new(closes.as_fd().try_clone_to_owned().ok()?);
        Some(Self { closes, notifier })
    }

    /// Clears pending notifications.
    pub(super) fn clear(&self) {
        self.closes.clear();
    }

    pub(super) fn notifier(&self) -> Notifier {
        Notifier(Arc::clone(&self.notifier))
    }
}
