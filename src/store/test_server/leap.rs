//! The wall clock of a server that a test sets while the server runs. Its monotonic clock goes on.

use std::path::{Path, PathBuf};

/// The clock of servers that are started with its variables.
#[derive(Debug)]
pub(crate) struct Leap {
    library: PathBuf,
    file: PathBuf,
}

impl Leap {
    /// A clock that is right so far. `library` is built of `tests/programs/leap.c`; the servers' user can read the
    /// folder.
    pub(crate) fn new(library: &Path, folder: &Path) -> Self {
        let own = folder.join("leap.so");
        std::fs::copy(library, &own).unwrap();
        let leap = Self {
            library: own,
            file: folder.join("clock"),
        };
        leap.set(0);
        leap
    }

    /// Sets the clock by so many seconds from the right time.
    pub(crate) fn set(&self, seconds: i64) {
        // Never read half-written.
        let new = self.file.with_extension("new");
        std::fs::write(&new, seconds.to_string()).unwrap();
        std::fs::rename(new, &self.file).unwrap();
    }

    /// What the server's environment needs.
    pub(crate) fn variables(&self) -> [(&str, &Path); 2] {
        [("LD_PRELOAD", &self.library), ("LEAP", &self.file)]
    }
}
