//! What a session in the queue listens on.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::dial::Link;

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
