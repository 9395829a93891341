//! Libraries that are loaded into the servers of the tests. The files of test servers name this one by its path.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The library of this name, where Debian has it: in a folder of the architecture's, or in one of
/// its own there.
pub(super) fn library(name: &str) -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").unwrap().flatten();
    folders
        .map(|entry| entry.path().join(name))
        .find(|path| path.exists())
        .unwrap_or_else(|| panic!("{name} is missing: install it (tests/run-all does)"))
}

/// What makes a server's syncs return at once while it goes on to say that it syncs. A disk that is
/// slow for a second would fail tests with short time-outs, and no test cuts the power. Benches have
/// the server as it is.
pub(super) fn unsynced() -> Option<&'static Path> {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    cfg!(test).then(|| &**LIBRARY.get_or_init(|| library("libeatmydata.so")))
}
