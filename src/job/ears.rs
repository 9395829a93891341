//! The guard's sources of events.

use crate::sys::events::Timer;
use crate::sys::signals::SignalFd;

/// The guard's sources of events, besides its supervisor.
#[derive(Debug)]
pub(super) struct Ears {
    pub(super) signals: SignalFd,
    pub(super) timer: Timer,
}
