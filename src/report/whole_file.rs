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
    let Place {
        directory, names, ..
    } = Place::find(path)?;
    let mut names = names.iter();
    let (name, more) = (names.next().ok_or(Errno::EISDIR)?, names.next());
    let found = directory.look(name).and_then(|there| there.metadata());
    if more.is_some() {
        return Err(found.map_or_else(|error| error, |_| Errno::ENOTDIR.into()));
    }
    if found.is_ok_and(|found| !found.is_file()) {
        // A pipe without a reader is an error, and not waited for.
        return directory.open_special(name)?.write_all(text);
    }
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{mark}"));
    let written =
        write_new(&directory, &temporary, text).and_then(|()| directory.rename(&temporary, name));
    if written.is_err() {
        // The write failed; the temporary file is only litter.
        let _ = directory.remove(&temporary);
    }
    written
}

fn write_new(directory: &Directory, name: &OsStr, text: &[u8]) -> io::Result<()> {
    let mut file = directory.create(name, MODE)?;
    file.write_all(text)?;
    file.sync_all()
}
