//! A port of the tests' own servers.
//!
//! Each file with a test server names this one by its path. So it imports nothing of the crate.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, getsockname, setsockopt, socket, sockopt,
};

/// A TCP port of 127.0.0.1 that the system gives to no other socket while this exists.
///
/// A server that ends and comes back finds its port free: a port of which only the number is kept can become
/// that of another server, or of a client, meanwhile. The socket here is bound and does not listen, so that a
/// server with `SO_REUSEADDR`, which they all set, can bind the same port.
pub(crate) struct ReservedPort {
    number: u16,
    _socket: OwnedFd,
}

impl ReservedPort {
    /// A port that is free now.
    pub(crate) fn take() -> Self {
        let flags = SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Inet, SockType::Stream, flags, None).unwrap();
        setsockopt(&socket, sockopt::ReuseAddr, &true).unwrap();
        bind(socket.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).unwrap();
        let bound: SockaddrIn = getsockname(socket.as_raw_fd()).unwrap();
        Self {
            number: bound.port(),
            _socket: socket,
        }
    }

    pub(crate) const fn number(&self) -> u16 {
        self.number
    }
}
