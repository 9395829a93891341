//! Writes a file so that a reader sees the old one or the whole new one.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs::{File, Metadata};
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::sys::errno::Errno;
use crate::sys::place::{Directory, Place};

/// The permissions of a new file, less those of the umask.
const MODE: u32 = 0o666;

/// Replaces a file, or makes it. `mark` is what no other process has in the name of its temporary
/// file, which lies beside it. An existing special file (a device, a pipe) is written to, never
/// replaced, and so is the file behind this process's standard output or error. A symbolic link stays:
/// the file that it names is replaced. One of another user is not followed.
///
/// # Errors
/// If the file or its directory can't be written.
pub fn write_whole(path: &Path, text: &[u8], mark: impl Display) -> io::Result<()> {
    let (directory, name) = found(path)?;
    match directory.look(&name).and_then(|there| there.metadata()) {
        // A pipe without a reader is an error, and not waited for.
        Ok(there) if !there.is_file() => return directory.open_special(&name)?.write_all(text),
        Ok(there) => {
            if let Some(mut stream) = standard_stream(&there) {
                return stream.write_all(text);
            }
        }
        Err(_) => {}
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
        Ok(found) if !found.is_file() || standard_stream(&found).is_some() => return Ok(()),
        _ => {}
    }
    let temporary = beside(&name, mark);
    directory.create(&temporary, MODE)?;
    directory.remove(&temporary)
}

/// Standard output or error, if it goes to this file.
fn standard_stream(there: &Metadata) -> Option<File> {
    let goes_there = |stream: &dyn AsFd| {
        let file = File::from(stream.as_fd().try_clone_to_owned().ok()?);
        let found = file.metadata().ok()?;
        ((found.dev(), found.ino()) == (there.dev(), there.ino())).then_some(file)
    };
    goes_there(&io::stdout()).or_else(|| goes_there(&io::stderr()))
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
