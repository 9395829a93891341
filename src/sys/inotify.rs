//! Watching a file by inotify(7).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

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

#[cfg(test)]
mod tests {
    use super::super::poll::Sources;
    use super::*;
    use std::fs::File;
    use std::time::Duration;

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
}
