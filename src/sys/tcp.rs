//! When a TCP connection without an answer counts as broken.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};

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
///
/// # Errors
/// What setsockopt(2) says.
pub fn set_user_timeout(socket: &impl AsFd, limit: Duration) -> io::Result<()> {
    let millis = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
    setsockopt(socket, sockopt::TcpUserTimeout, &millis)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::getsockopt;

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
