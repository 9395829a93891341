//! Reaping, a batch at a time.

use std::io;
use std::time::Duration;

use crate::moment::Moment;
use crate::sys::wait::{Left, Status, reap};

/// How many are reaped at once. It takes less than a millisecond.
const BATCH: usize = 32;

/// The pause between two batches. A process that does nothing but reap soon uses up its share
/// of the processor, and waits for the next share when a deadline comes. Batches at this
/// distance still reap more than several processors can fork.
const PAUSE: Duration = Duration::from_millis(1);

/// Reaps children that have ended, of which there may be more at any time than one that
/// holds a deadline may reap.
#[derive(Debug, Default)]
pub(super) struct Reaping {
    next: Option<Moment>,
}

impl Reaping {
    /// A child has ended.
    pub(super) fn note(&mut self) {
        // As good as now; and if it rests, it rests.
        self.next.get_or_insert_default();
    }

    /// When the next batch is due. `None` if no child is known to have ended.
    pub(super) const fn next(&self) -> Option<Moment> {
        self.next
    }

    /// Whether a batch is due.
    pub(super) fn is_due(&self, now: Moment) -> bool {
        self.next.is_some_and(|at| at <= now)
    }

    /// Whether more have ended, and it is too soon for them.
    pub(super) fn rests(&self, now: Moment) -> bool {
        self.next.is_some_and(|at| at > now)
    }

    /// Reaps a batch and tells `on` of each. Says whether there may be children left.
    ///
    /// # Errors
    /// What waitpid(2) says; it has no reason to.
    pub(super) fn run(
        &mut self,
        clock: impl Fn() -> Moment,
        on: impl FnMut(i32, Status),
    ) -> io::Result<bool> {
        let left = reap(BATCH, on)?;
        self.next = (left == Left::Unknown).then(|| clock().plus(PAUSE));
        Ok(left != Left::Nothing)
    }
}
