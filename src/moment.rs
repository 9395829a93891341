//! Points on a process's own clock, for deadlines.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point on this process's own clock: how much time has passed since it
/// started, suspended time included.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct Moment(pub Duration);

impl Moment {
    /// A moment later by `by`; the end of time if that is further.
    #[must_use]
    pub const fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by))
    }

    /// A moment earlier by `by`; the process's start if that is further back.
    #[must_use]
    pub const fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(by))
    }

    /// What has passed since `earlier`; nothing if it lies ahead.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}
