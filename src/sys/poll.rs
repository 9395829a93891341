//! Waiting for descriptors: poll(2), with a name for each source.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Descriptors to wait for until one can be read.
#[derive(Debug)]
pub struct Sources<'a, N> {
    names: Vec<N>,
    fds: Vec<PollFd<'a>>,
}

/// The sources that can be read, or whose other end is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready<N>(Vec<N>);

impl<'a, N: Copy + PartialEq> Sources<'a, N> {
    /// No source.
    pub const fn new() -> Self {
        Self {
            names: Vec::new(),
            fds: Vec::new(),
        }
    }

    /// Adds a source; `None` adds nothing.
    pub fn and(mut self, name: N, fd: impl Into<Option<BorrowedFd<'a>>>) -> Self {
        if let Some(fd) = fd.into() {
            self.names.push(name);
            self.fds.push(PollFd::new(fd, PollFlags::POLLIN));
        }
        self
    }

    /// Waits until one of them is ready, a signal handler has run, or the process is continued
    /// after a stop: in the last two cases none is ready. Waits for at most `limit`.
    ///
    /// # Errors
    /// What poll(2) says: out of memory.
    pub fn wait(mut self, limit: Option<Duration>) -> io::Result<Ready<N>> {
        match poll(&mut self.fds, timeout(limit)) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(Ready(Vec::new())),
            Err(errno) => return Err(errno.into()),
        }
        let both = self.names.into_iter().zip(&self.fds);
        let ready = both.filter(|(_, fd)| fd.any().unwrap_or(false));
        Ok(Ready(ready.map(|(name, _)| name).collect()))
    }
}

impl<N: Copy + PartialEq> Default for Sources<'_, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<N: PartialEq> Ready<N> {
    /// True if this source is ready.
    pub fn has(&self, name: &N) -> bool {
        self.0.contains(name)
    }
}

/// Waits until a descriptor can be read, as [`Sources::wait`] does.
pub fn wait_readable(fd: BorrowedFd<'_>, limit: Option<Duration>) -> io::Result<()> {
    Sources::new().and((), fd).wait(limit).map(|_| ())
}

/// True if a descriptor takes a write within this time, or ever; false if unknown.
pub fn is_writable(fd: BorrowedFd<'_>, limit: Option<Duration>) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::POLLOUT)];
    poll(&mut fds, timeout(limit)).is_ok_and(|ready| ready > 0)
}

/// In whole milliseconds, rounded up: a wait that ends early would be repeated at once.
fn timeout(limit: Option<Duration>) -> PollTimeout {
    let Some(limit) = limit else {
        return PollTimeout::NONE;
    };
    let ms = limit.as_nanos().div_ceil(1_000_000);
    i32::try_from(ms).map_or(PollTimeout::MAX, |ms| {
        PollTimeout::try_from(ms).unwrap_or(PollTimeout::MAX)
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Write as _, pipe};
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn only_what_can_be_read_is_ready() {
        let (first, _open) = pipe().unwrap();
        let (second, mut writer) = pipe().unwrap();
        writer.write_all(b"x").unwrap();
        let sources = Sources::new().and("first", first.as_fd());
        let sources = sources.and("second", second.as_fd()).and("none", None);
        let ready = sources.wait(None).unwrap();
        assert_eq!(ready, Ready(vec!["second"]));
        assert!(ready.has(&"second") && !ready.has(&"first"));
    }

    #[test]
    fn a_closed_end_is_ready() {
        let (reader, writer) = pipe().unwrap();
        drop(writer);
        let ready = Sources::new().and("pipe", reader.as_fd()).wait(None);
        assert_eq!(ready.unwrap(), Ready(vec!["pipe"]));
    }

    #[test]
    fn a_wait_ends_at_its_limit_and_not_before() {
        let (reader, _writer) = pipe().unwrap();
        let limit = Duration::from_micros(2_500);
        let begun = std::time::Instant::now();
        let ready = Sources::new().and("pipe", reader.as_fd()).wait(Some(limit));
        assert_eq!(ready.unwrap(), Ready(Vec::new()));
        assert!(begun.elapsed() >= limit);
    }
}
