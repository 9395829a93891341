//! What wakes who is in the queue: the log's descriptors that others close.
//!
//! Whoever ends a run opens the log, syncs and closes it after the commit; and whoever
//! dies closes it too. So the ends of runs, and of operators' commands, ring. Signs of life
//! do not: they neither sync nor close, so that those in the queue do not wake each other. Who
//! releases a token pays nothing for it, whether somebody waits or not.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use crate::store::Notifier;
use crate::sys::inotify::CloseWatch;

/// A watch on a log.
pub(super) struct LogWatch {
    closes: CloseWatch,
    notifier: Arc<OwnedFd>,
}

impl LogWatch {
    /// Watches the log at this path. `None` if the kernel gives no watch: then looking
    /// every second is all.
    pub(super) fn new(log: &Path) -> Option<Self> {
        let closes = CloseWatch::new(log).ok()?;
        let notifier = Arc::new(closes.as_fd().try_clone_to_owned().ok()?);
        Some(Self { closes, notifier })
    }

    /// Forgets what rang.
    pub(super) fn quiet(&self) {
        self.closes.quiet();
    }

    /// What becomes readable.
    pub(super) fn notifier(&self) -> Notifier {
        Notifier(Arc::clone(&self.notifier))
    }
}
