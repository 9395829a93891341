//! Writes a file so that a reader sees the old one or the whole new one.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

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
    if is_special(path) {
        // A pipe without a reader is an error, and not waited for.
        let mut there = OpenOptions::new()
            .write(true)
            .custom_flags(NO_WAIT)
            .open(path)?;
        return there.write_all(text);
    }
    let temporary = beside(path, mark)?;
    let written = write_new(&temporary, text).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The write failed; the temporary file is only litter.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Checks that a later [`write_whole`] can make its temporary file, and leaves nothing. A special file is
/// left alone: the reader of a pipe may come later.
///
/// # Errors
/// If the file or its directory can't be written.
pub fn check_whole(path: &Path, mark: impl Display) -> io::Result<()> {
    let named = fs::canonicalize(path);
    let path = named.as_deref().unwrap_or(path);
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if is_special(path) {
        return Ok(());
    }
    let temporary = beside(path, mark)?;
    File::create_new(&temporary)?;
    fs::remove_file(&temporary)
}

fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file())
}

/// The temporary file beside this one.
fn beside(path: &Path, mark: impl Display) -> io::Result<PathBuf> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "this is no file name"))?;
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{mark}"));
    Ok(path.with_file_name(temporary))
}

fn write_new(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(text)?;
    file.sync_all()
}
