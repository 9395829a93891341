//! The time of a call to a server: every step has what is left of it.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

/// What a call is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Activity {
    LookingUp,
    Connecting,
    Securing,
    LoggingIn,
    Asking,
}

impl Activity {
    pub(in crate::store) const fn words(self) -> &'static str {
        match self {
            Self::LookingUp => "looking up its address",
            Self::Connecting => "connecting",
            Self::Securing => "agreeing on TLS",
            Self::LoggingIn => "logging in",
            Self::Asking => "waiting for its answer",
        }
    }
}

/// A step that was not done in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct TimedOut {
    pub(in crate::store) doing: Activity,
    /// The length of the time at its start.
    pub(in crate::store) after: Duration,
}

impl TimedOut {
    pub(in crate::store) fn words(self) -> String {
        let ms = u64::try_from(self.after.as_millis()).unwrap_or(u64::MAX);
        format!(
            "no answer within {} while {}",
            humantime::format_duration(Duration::from_millis(ms)),
            self.doing.words()
        )
    }
}

/// The time by which a step must be done, and its length at the start.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct Deadline {
    pub(in crate::store) at: Instant,
    pub(in crate::store) whole: Duration,
}

impl Deadline {
    pub(in crate::store) fn after(whole: Duration) -> Self {
        let at = Instant::now() + whole;
        Self { at, whole }
    }

    /// The time that is left.
    pub(in crate::store) fn left(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// An equal share for each of so many remaining servers.
    pub(in crate::store) fn share(self, of: usize) -> Self {
        if of <= 1 {
            return self;
        }
        let count = u32::try_from(of).unwrap_or(u32::MAX);
        Self::after(self.left() / count)
    }

    pub(in crate::store) fn at_most(self, limit: Option<Duration>) -> Self {
        match limit {
            Some(limit) if Instant::now() + limit < self.at => Self::after(limit),
            _ => self,
        }
    }

    pub(in crate::store) async fn bound<T>(
        self,
        doing: Activity,
        step: impl Future<Output = T>,
    ) -> Result<T, TimedOut> {
        let after = self.whole;
        timeout_at(self.at, step)
            .await
            .map_err(|_| TimedOut { doing, after })
    }
}
