//! Writes a file so that a reader sees the old one or the whole new one.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::sys::open_flags::NO_WAIT;

/// Replaces a file, or makes it. `mark` is what no other process has in the name of its temporary
/// file, which lies beside it. An existing special file (a device, a pipe) is written to, never
/// replaced.
///
/// # Errors
/// If the file or its directory can't be written.
pub fn write_whole(path: &Path, text: &[u8], mark: impl Display) -> io::Result<()> {
    // A symbolic link stays: the file that it names is replaced.
    let named = fs::canonicalize(path);
    let path = named.as_deref().unwrap_or(path);
    let is_something_else = |found: fs::Metadata| !found.is_file();
    if fs::metadata(path).is_ok_and(is_something_else) {
        // A pipe without a reader is an error, and not waited for.
        let mut there = OpenOptions::new()
            .write(true)
            .custom_flags(NO_WAIT)
            .open(path)?;
        return there.write_all(text);
    }
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "this is no file name"))?;
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{mark}"));
    let temporary = path.with_file_name(temporary);
    let written = write_new(&temporary, text).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The write failed; the temporary file is only litter.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write_new(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(text)?;
    file.sync_all()
}
