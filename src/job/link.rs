//! What wakes the guard up: its supervisor's messages, signals, its timer.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::protocol::{FromGuard, ToGuard};
use crate::sys::events::Timer;
use crate::sys::signals::SignalFd;
use crate::sys::socket::{Packet, Packets};

/// The guard's sources of events, besides its supervisor.
#[derive(Debug)]
pub(super) struct Wakeups {
    pub(super) signals: SignalFd,
    pub(super) timer: Timer,
}

/// The connection to the supervisor, which may be gone.
#[derive(Debug)]
pub(super) struct Link {
    socket: Packets,
    is_open: bool,
}

/// A result of [`Link::hear`].
#[derive(Debug)]
pub(super) enum Heard {
    /// A message, perhaps with a descriptor.
    Message(ToGuard, Option<OwnedFd>),
    Nothing,
    /// The supervisor is gone. Returned once.
    Gone,
}

impl Link {
    pub(super) const fn new(socket: Packets) -> Self {
        Self {
            socket,
            is_open: true,
        }
    }

    /// Sends a message. It never blocks: a supervisor may be gone, or stopped for so long that
    /// nothing more fits in.
    pub(super) fn say(&self, message: &FromGuard) {
        if let Ok(packet) = serde_json::to_vec(message) {
            let _ = self.socket.send(&packet, None);
        }
    }

    /// The next message.
    pub(super) fn hear(&mut self) -> Heard {
        while self.is_open {
            match self.socket.receive() {
                Ok(Packet::Nothing) => break,
                Ok(Packet::Data(packet, fd)) => {
                    // Both ends are the same program, so this can't fail.
                    if let Ok(message) = serde_json::from_slice(&packet) {
                        return Heard::Message(message, fd);
                    }
                }
                Ok(Packet::Closed) | Err(_) => {
                    self.is_open = false;
                    return Heard::Gone;
                }
            }
        }
        Heard::Nothing
    }

    /// True if the supervisor is there, as far as is known.
    pub(super) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// The descriptor to poll; `None` once the supervisor is gone.
    pub(super) fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.is_open.then(|| self.socket.as_fd())
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
