//! What the guard hears and wakes by.

use crate::sys::signals::SignalFd;
use crate::sys::timer::Timer;

/// What the guard hears and wakes by, besides its supervisor.
#[derive(Debug)]
pub(super) struct Ears {
    pub(super) signals: SignalFd,
    pub(super) timer: Timer,
}
