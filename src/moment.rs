//! Points on a process's own clock, for deadlines.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point on this process's own clock: the time since the process started, suspended time
/// included.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct Moment(pub Duration);

impl Moment {
    /// This moment, later by `by`; saturates at the end of time.
    #[must_use]
    pub const fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by))
    }

    /// This moment, earlier by `by`; saturates at the process's start.
    #[must_use]
    pub const fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(by))
    }

    /// The time since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}
