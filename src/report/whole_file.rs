//! Writes a file so that a reader sees the old one or the whole new one.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::Path;

use crate::sys::errno::Errno;
use crate::sys::place::{Directory, Place};

/// The permissions of a new file, less those of the umask.
const MODE: u32 = 0o666;

/// Replaces a file, or makes it. `mark` is what no other process has in the name of its temporary
/// file, which lies beside it. An existing special file (a device, a pipe) is written to, never
/// replaced. A symbolic link stays: the file that it names is replaced. One of another user is not
/// followed.
///
/// # Errors
/// If the file or its directory can't be written.
pub fn write_whole(path: &Path, text: &[u8], mark: impl Display) -> io::Result<()> {
    let (directory, name) = found(path)?;
    let there = directory.look(&name).and_then(|there| there.metadata());
    if there.is_ok_and(|there| !there.is_file()) {
        // A pipe without a reader is an error, and not waited for.
        return directory.open_special(&name)?.write_all(text);
    }
    let temporary = beside(&name, mark);
    let written =
        write_new(&directory, &temporary, text).and_then(|()| directory.rename(&temporary, &name));
    if written.is_err() {
        // The write failed; the temporary file is only litter.
        let _ = directory.remove(&temporary);
    }
    written
}

/// Checks that a later [`write_whole`] can make its temporary file, and leaves nothing. A special file is
/// left alone: the reader of a pipe may come later.
///
/// # Errors
/// If the file or its directory can't be written.
pub fn check_whole(path: &Path, mark: impl Display) -> io::Result<()> {
    let (directory, name) = found(path)?;
    match directory.look(&name).and_then(|there| there.metadata()) {
        Ok(found) if found.is_dir() => return Err(Errno::EISDIR.into()),
        Ok(found) if !found.is_file() => return Ok(()),
        _ => {}
    }
    let temporary = beside(&name, mark);
    directory.create(&temporary, MODE)?;
    directory.remove(&temporary)
}

/// The directory that a path leads to, and the file's name in it.
fn found(path: &Path) -> io::Result<(Directory, OsString)> {
    let place = Place::find(path)?.of_file()?;
    place.ok_or_else(|| Errno::EISDIR.into())
}

/// The name of the temporary file beside this one.
fn beside(name: &OsStr, mark: impl Display) -> OsString {
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{mark}"));
    temporary
}

fn write_new(directory: &Directory, name: &OsStr, text: &[u8]) -> io::Result<()> {
    let mut file = directory.create(name, MODE)?;
    file.write_all(text)?;
    file.sync_all()
}
