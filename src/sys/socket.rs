//! Sockets: one between two processes that keeps packets apart and can carry a descriptor with one, and when
//! a TCP connection without an answer counts as broken.

#![allow(unsafe_code)]

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recv,
    recvmsg, sendmsg, socketpair,
};
use nix::sys::socket::{setsockopt, sockopt};

/// One end of a pair. Nonblocking, closed on exec.
#[derive(Debug)]
pub struct Packets {
    fd: OwnedFd,
}

/// The result of a read.
#[derive(Debug)]
pub enum Packet {
    /// A packet, and the descriptor that came with it; it is closed on exec.
    Data(Vec<u8>, Option<OwnedFd>),
    Nothing,
    /// The end: no process has the other end.
    Closed,
}

impl Packets {
    /// Makes a connected pair of SOCK_SEQPACKET sockets.
    ///
    /// # Errors
    /// What socketpair(2) says: out of descriptors or memory.
    pub fn pair() -> io::Result<(Self, Self)> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let (one, other) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?;
        Ok((Self { fd: one }, Self { fd: other }))
    }

    /// Sends one packet, which must not be empty, with a duplicate of `fd`.
    ///
    /// # Errors
    /// `WouldBlock` if the other end has not read what was sent before,
    /// `BrokenPipe` if it is closed; EMSGSIZE for a packet of more than some 200 KiB.
    pub fn send(&self, bytes: &[u8], fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
        if bytes.is_empty() {
            // The other end would read it as the end of file.
            return Err(Errno::EINVAL.into());
        }
        let raw = fd.map(|fd| [fd.as_raw_fd()]);
        let rights = raw.as_ref().map(|raw| ControlMessage::ScmRights(raw));
        let iov = [IoSlice::new(bytes)];
        let control = rights.as_slice();
        loop {
            let flags = MsgFlags::MSG_NOSIGNAL;
            match sendmsg::<()>(self.fd.as_raw_fd(), &iov, control, flags, None) {
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(err) => return Err(err.into()),
            }
        }
    }

    /// Takes the next packet, whole, however long it is.
    ///
    /// # Errors
    /// What recvmsg(2) says: out of memory.
    pub fn receive(&self) -> io::Result<Packet> {
        loop {
            match self.try_receive() {
                Ok(packet) => return Ok(packet),
                Err(Errno::EAGAIN) => return Ok(Packet::Nothing),
                // The other end was closed before it had read everything. The kernel reports that
                // once, before it returns the remaining packets.
                Err(Errno::EINTR | Errno::ECONNRESET) => {}
                Err(err) => return Err(err.into()),
            }
        }
    }

    fn try_receive(&self) -> nix::Result<Packet> {
        let fd = self.fd.as_raw_fd();
        let length = recv(fd, &mut [], MsgFlags::MSG_PEEK | MsgFlags::MSG_TRUNC)?;
        if length == 0 {
            return Ok(Packet::Closed);
        }
        let mut bytes = vec![0; length];
        let mut control = cmsg_space!([i32; 1]);
        let mut iov = [IoSliceMut::new(&mut bytes)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let received = recvmsg::<()>(fd, &mut iov, Some(&mut control), flags)?;
        let mut carried = None;
        for message in received.cmsgs()? {
            if let ControlMessageOwned::ScmRights(fds) = message {
                for fd in fds {
                    // SAFETY: the kernel has just made this descriptor for us.
                    carried = Some(unsafe { OwnedFd::from_raw_fd(fd) });
                }
            }
        }
        Ok(Packet::Data(bytes, carried))
    }
}

impl AsFd for Packets {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// How the other end is probed while a connection is idle; `None`: as the kernel does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// Seconds without a byte before the first probe.
    pub idle: Option<u32>,
    /// Seconds between two probes.
    pub interval: Option<u32>,
    /// How many probes may be lost.
    pub count: Option<u32>,
}

/// Has the kernel probe the other end.
///
/// # Errors
/// What setsockopt(2) says: a number is out of its range.
pub fn keep_alive(socket: &impl AsFd, keepalive: Keepalive) -> io::Result<()> {
    setsockopt(socket, sockopt::KeepAlive, &true)?;
    if let Some(seconds) = keepalive.idle {
        setsockopt(socket, sockopt::TcpKeepIdle, &seconds)?;
    }
    if let Some(seconds) = keepalive.interval {
        setsockopt(socket, sockopt::TcpKeepInterval, &seconds)?;
    }
    if let Some(count) = keepalive.count {
        setsockopt(socket, sockopt::TcpKeepCount, &count)?;
    }
    Ok(())
}

/// Breaks the connection once what was sent is not acknowledged for so long.
pub fn set_user_timeout(socket: &impl AsFd, limit: Duration) -> io::Result<()> {
    let millis = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
    setsockopt(socket, sockopt::TcpUserTimeout, &millis)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::getsockopt;

    fn text(end: &Packets) -> String {
        match end.receive().unwrap() {
            Packet::Data(bytes, None) => String::from_utf8(bytes).unwrap(),
            Packet::Data(_, Some(_)) => "with a descriptor".to_owned(),
            Packet::Nothing => "nothing".to_owned(),
            Packet::Closed => "closed".to_owned(),
        }
    }

    #[test]
    fn packets_stay_apart_and_whole() {
        let (one, other) = Packets::pair().unwrap();
        assert_eq!(text(&other), "nothing");
        let long = "x".repeat(100_000);
        one.send(b"first", None).unwrap();
        one.send(long.as_bytes(), None).unwrap();
        assert_eq!(text(&other), "first");
        assert_eq!(text(&other), long);
        drop(one);
        assert_eq!(text(&other), "closed");
        let err = other.send(b"x", None).unwrap_err();
        assert_eq!(err.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn packets_of_an_end_that_closed_early_are_still_read() {
        let (one, other) = Packets::pair().unwrap();
        one.send(b"last words", None).unwrap();
        other.send(b"unread", None).unwrap();
        drop(one);
        assert_eq!(text(&other), "last words");
        assert_eq!(text(&other), "closed");
    }

    #[test]
    fn an_end_that_does_not_read_blocks_no_sender() {
        let (one, _other) = Packets::pair().unwrap();
        let full = std::iter::repeat_with(|| one.send(&[0; 4096], None))
            .find_map(Result::err)
            .unwrap();
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_descriptor_travels_with_its_packet() {
        let (one, other) = Packets::pair().unwrap();
        let (first, second) = Packets::pair().unwrap();
        one.send(b"here", Some(first.as_fd())).unwrap();
        drop(first);
        let Packet::Data(bytes, Some(fd)) = other.receive().unwrap() else {
            panic!("no descriptor");
        };
        assert_eq!(bytes, b"here");
        Packets { fd }.send(b"through", None).unwrap();
        assert_eq!(text(&second), "through");
    }

    #[test]
    fn empty_packets_are_refused() {
        let (one, _other) = Packets::pair().unwrap();
        assert!(one.send(b"", None).is_err());
    }

    #[test]
    fn what_is_asked_for_is_set_and_the_rest_is_left() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let count_before = getsockopt(&listener, sockopt::TcpKeepCount).unwrap();
        let keepalive = Keepalive {
            idle: Some(7),
            interval: Some(3),
            count: None,
        };
        keep_alive(&listener, keepalive).unwrap();
        set_user_timeout(&listener, Duration::from_secs(9)).unwrap();
        assert!(getsockopt(&listener, sockopt::KeepAlive).unwrap());
        assert_eq!(getsockopt(&listener, sockopt::TcpKeepIdle), Ok(7));
        assert_eq!(getsockopt(&listener, sockopt::TcpKeepInterval), Ok(3));
        let count = getsockopt(&listener, sockopt::TcpKeepCount);
        assert_eq!(count, Ok(count_before));
        assert_eq!(getsockopt(&listener, sockopt::TcpUserTimeout), Ok(9_000));
    }
}
