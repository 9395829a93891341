//! A descriptor by which one thread wakes another.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::eventfd::{EfdFlags, EventFd};

/// An eventfd: readable from [`EventFlag::notify`] to the next [`EventFlag::clear`]. Nonblocking and closed
/// on exec.
#[derive(Debug)]
pub struct EventFlag(EventFd);

impl EventFlag {
    /// A flag without a notification.
    ///
    /// # Errors
    /// What eventfd(2) says: out of descriptors or memory.
    pub fn new() -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ok(Self(EventFd::from_value_and_flags(0, flags)?))
    }

    /// Makes it readable.
    ///
    /// # Errors
    /// EAGAIN after 2⁶⁴ − 2 notifications without a [`EventFlag::clear`].
    pub fn notify(&self) -> io::Result<()> {
        self.0.write(1)?;
        Ok(())
    }

    /// Clears pending notifications.
    pub fn clear(&self) {
        // It fails without a notification.
        let _ = self.0.read();
    }
}

impl AsFd for EventFlag {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::super::poll::Sources;
    use super::*;
    use std::time::Duration;

    #[test]
    fn it_is_readable_from_a_ring_until_it_is_quiet() {
        let flag = EventFlag::new().unwrap();
        let rings = || {
            let sources = Sources::new().and((), flag.as_fd());
            sources.wait(Some(Duration::ZERO)).unwrap().has(&())
        };
        flag.clear();
        assert!(!rings());
        flag.notify().unwrap();
        flag.notify().unwrap();
        assert!(rings());
        flag.clear();
        assert!(!rings());
    }
}
