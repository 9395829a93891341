//! The guard's sources of events.

use crate::sys::signals::SignalFd;
use crate::sys::timer::Timer;

/// The guard's sources of events, besides its supervisor.
#[derive(Debug)]
pub(super) struct Ears {
    pub(super) signals: SignalFd,
    pub(super) timer: Timer,
}
