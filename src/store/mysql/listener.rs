//! What a session in the queue listens on.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use super::link::Link;

/// When a waiter looks again that has found the holder's lock free; each time after twice the pause.
pub(super) const SOON: Duration = Duration::from_millis(20);

/// A connection whose answer comes when a holder has given its lock up, or after a while.
pub(super) struct Listener {
    pub(super) link: Link,
    /// Whether it awaits an answer.
    pub(super) is_armed: bool,
}

impl Listener {
    /// The socket, which can be read once the answer is there.
    pub(super) fn socket(&self) -> Option<Arc<OwnedFd>> {
        self.is_armed.then(|| Arc::clone(&self.link.socket))
    }
}
