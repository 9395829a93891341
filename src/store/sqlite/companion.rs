//! The files that SQLite keeps beside a database.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The path of a file that SQLite keeps beside the database.
pub(super) fn companion(database: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(database);
    name.push(end);
    PathBuf::from(name)
}
