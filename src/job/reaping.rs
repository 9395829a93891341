//! Reaping, a batch at a time.

use std::io;
use std::time::Duration;

use crate::moment::Moment;
use crate::sys::wait::{Left, Status, reap};

/// How many children one batch reaps. It takes less than a millisecond.
const BATCH: usize = 32;

/// The pause between two batches. A process that does nothing but reap soon uses up its share of
/// the processor, and then waits for the next share when a deadline comes. Batches at this distance
/// still reap more than several processors can fork.
const PAUSE: Duration = Duration::from_millis(1);

/// Reaps ended children. There may be more of them at any time than a process with a deadline may
/// reap at once.
#[derive(Debug, Default)]
pub(super) struct Reaping {
    next: Option<Moment>,
}

impl Reaping {
    /// A child has ended.
    pub(super) fn note(&mut self) {
        // This is as good as now; a pause under way goes on.
        self.next.get_or_insert_default();
    }

    /// When the next batch is due. `None` if no child is known to have ended.
    pub(super) const fn next(&self) -> Option<Moment> {
        self.next
    }

    pub(super) fn is_due(&self, now: Moment) -> bool {
        self.next.is_some_and(|at| at <= now)
    }

    /// Whether more children have ended, during a pause.
    pub(super) fn rests(&self, now: Moment) -> bool {
        self.next.is_some_and(|at| at > now)
    }

    /// Reaps a batch and passes each child to `on`. Returns whether children may be left.
    ///
    /// # Errors
    /// Those of waitpid(2), which has no reason to fail.
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
