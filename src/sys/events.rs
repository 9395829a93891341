//! Descriptors that become readable by an event: another thread's notice, the close of a file, a moment.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::clock::{LocalClock, boottime};
use crate::moment::Moment;

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

/// A descriptor that is readable while one of these is, or is at its end. Closed on exec.
///
/// # Errors
/// What epoll_create1(2) and epoll_ctl(2) say: out of descriptors or memory.
pub fn any_of<'a>(all: impl IntoIterator<Item = BorrowedFd<'a>>) -> io::Result<OwnedFd> {
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    for one in all {
        epoll.add(one, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
    }
    Ok(epoll.0)
}

/// A descriptor that is readable when any process has closed a file. Nonblocking and closed
/// on exec.
#[derive(Debug)]
pub struct CloseWatch(Inotify);

impl CloseWatch {
    /// Watches the file at this path.
    ///
    /// # Errors
    /// What inotify_init(2) and inotify_add_watch(2) say: there is no such file, or the
    /// user has too many watches.
    pub fn new(path: &Path) -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        inotify.add_watch(path, AddWatchFlags::IN_CLOSE)?;
        Ok(Self(inotify))
    }

    /// Forgets what was closed until now.
    pub fn clear(&self) {
        while self.0.read_events().is_ok() {}
    }
}

impl AsFd for CloseWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A timerfd on CLOCK_BOOTTIME: readable once its moment has come, at once after
/// a resume if it came in suspend. Nonblocking and closed on exec.
#[derive(Debug)]
pub struct Timer {
    fd: OwnedFd,
}

impl Timer {
    /// A timer that is not armed.
    ///
    /// # Errors
    /// What timerfd_create(2) says: out of descriptors or memory.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let fd = timerfd_create(TimerfdClockId::Boottime, flags)?;
        Ok(Self { fd })
    }

    /// Makes the timer readable at `at` on `clock`, at once if that has passed,
    /// instead of when it was armed for before.
    pub fn arm(&self, clock: &LocalClock, at: Moment) -> io::Result<()> {
        // Absolute, because a relative time of zero would disarm the timer.
        let due = boottime().saturating_add(at.since(clock.now()));
        self.set(due)
    }

    /// Makes the timer never readable.
    pub fn disarm(&self) -> io::Result<()> {
        self.set(Duration::ZERO)
    }

    /// Makes the timer unreadable again after its moment has come.
    pub fn clear(&self) {
        // An unreadable timer is no error.
        let _ = rustix::io::read(&self.fd, &mut [0; 8]);
    }

    fn set(&self, boottime: Duration) -> io::Result<()> {
        let value = Timespec {
            tv_sec: i64::try_from(boottime.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(boottime.subsec_nanos()),
        };
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: value,
        };
        timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &once)?;
        Ok(())
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::super::poll::Sources;
    use super::*;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::fs::File;
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

    #[test]
    fn a_close_is_seen_until_it_is_quiet() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let watch = CloseWatch::new(file.path()).unwrap();
        let rings = || {
            let sources = Sources::new().and((), watch.as_fd());
            sources.wait(Some(Duration::ZERO)).unwrap().has(&())
        };
        assert!(!rings());
        drop(File::open(file.path()).unwrap());
        assert!(rings());
        watch.clear();
        assert!(!rings());
        assert!(CloseWatch::new(Path::new("/no/such/path")).is_err());
    }

    fn is_readable(timer: &Timer, timeout: PollTimeout) -> bool {
        let mut fds = [PollFd::new(timer.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, timeout).unwrap() == 1
    }

    #[test]
    fn a_timer_fires_at_its_moment_and_not_before() {
        let clock = LocalClock::start();
        let timer = Timer::new().unwrap();
        let at = clock.now().plus(Duration::from_millis(20));
        timer.arm(&clock, at).unwrap();
        assert!(is_readable(&timer, PollTimeout::from(10_000u16)));
        assert!(clock.now() >= at);
        timer.clear();
        assert!(!is_readable(&timer, PollTimeout::ZERO));
    }

    #[test]
    fn a_moment_that_has_passed_fires_at_once() {
        let clock = LocalClock::start();
        let timer = Timer::new().unwrap();
        timer.arm(&clock, Moment::default()).unwrap();
        assert!(is_readable(&timer, PollTimeout::from(10_000u16)));
    }

    #[test]
    fn a_disarmed_or_cleared_timer_never_fires() {
        let clock = LocalClock::start();
        let timer = Timer::new().unwrap();
        timer.clear();
        timer.arm(&clock, Moment::default()).unwrap();
        timer.disarm().unwrap();
        assert!(!is_readable(&timer, PollTimeout::ZERO));
        timer.arm(&clock, Moment(Duration::MAX)).unwrap();
        assert!(!is_readable(&timer, PollTimeout::ZERO));
    }
}
