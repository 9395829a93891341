//! Opening a configuration file, and whether it can be trusted: as ssh(1) does with its own.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::Refusal;
use crate::exit;
use crate::sys::open_flags::{NO_TERMINAL, NO_WAIT};
use crate::sys::user::effective_id;

/// No file written by people is longer, in bytes.
const LONGEST: u64 = 1 << 20;

/// What a missing file means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// It sets nothing.
    Fine,
    /// The same; also for a directory that this user can't enter, which is not its home: a
    /// container's user without a name has another user's.
    FineAndUnreachableToo,
    /// An error: the file was named.
    Refused,
}

/// A file's text, and whether other users may read it.
#[derive(Debug)]
pub(super) struct FileText {
    pub(super) text: String,
    /// Users other than its owner may read it.
    pub(super) is_shared: bool,
}

/// Reads a file whole; `None` if it is missing and optional.
pub(super) fn read(path: &Path, missing: Missing) -> Result<Option<FileText>, Refusal> {
    match fs::symlink_metadata(path) {
        Ok(_) => {}
        Err(error) if is_absent(&error) && missing != Missing::Refused => return Ok(None),
        Err(error)
            if error.kind() == io::ErrorKind::PermissionDenied
                && missing == Missing::FineAndUnreachableToo =>
        {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(path, &error)),
    }
    // A dangling link is an error: a file was meant, and its disk is not mounted.
    let before = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    // Before the open: opening a device can have effects.
    must_be_regular(path, &before)?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(NO_WAIT | NO_TERMINAL)
        .open(path);
    let file = file.map_err(|error| unreadable(path, &error))?;
    let metadata = file.metadata().map_err(|error| unreadable(path, &error))?;
    must_be_trusted(path, &metadata)?;
    Ok(Some(FileText {
        text: text_of(path, file)?,
        is_shared: metadata.mode() & 0o077 != 0,
    }))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn must_be_regular(path: &Path, metadata: &Metadata) -> Result<(), Refusal> {
    if metadata.is_file() {
        return Ok(());
    }
    Err(refused(
        path,
        "is no regular file; name one, or none at all: --config ''",
    ))
}

/// A user who can write the file decides which command `on-change` is, and which store is used.
fn must_be_trusted(path: &Path, metadata: &Metadata) -> Result<(), Refusal> {
    must_be_regular(path, metadata)?;
    let (owner, user) = (metadata.uid(), effective_id());
    if owner != 0 && owner != user {
        let text = format!(
            "belongs to another user (uid {owner}) and is not believed: only root or uid {user}, \
             which tokenrun runs as, may own it; chown it, or read none: --config ''"
        );
        return Err(refused(path, &text));
    }
    if metadata.mode() & 0o022 != 0 {
        let text = format!(
            "can be written by others (mode {:04o}) and is not believed: chmod go-w {}",
            metadata.mode() & 0o7777,
            path.display()
        );
        return Err(refused(path, &text));
    }
    Ok(())
}

fn text_of(path: &Path, file: File) -> Result<String, Refusal> {
    let mut bytes = Vec::new();
    let read = file.take(LONGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > LONGEST {
        return Err(refused(
            path,
            "is longer than 1 MiB: it is no configuration file",
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = error
            .as_bytes()
            .iter()
            .take(error.utf8_error().valid_up_to());
        let line = 1 + before.filter(|byte| **byte == b'\n').count();
        at_line(path, line, "is not UTF-8, which TOML must be")
    })
}

fn refused(path: &Path, text: &str) -> Refusal {
    Refusal {
        code: exit::CONFIG,
        text: format!("the configuration file {} {text}", path.display()),
    }
}

/// An error in a line of a file.
pub(super) fn at_line(path: &Path, line: usize, text: &str) -> Refusal {
    Refusal {
        code: exit::CONFIG,
        text: format!("{}:{line}: {text}", path.display()),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Refusal {
    let code = match error.kind() {
        io::ErrorKind::PermissionDenied => exit::DENIED,
        _ => exit::CONFIG,
    };
    let remedy = match code {
        exit::DENIED => "let this user read it, or read none: --config ''",
        _ => "put it there, or read none: --config ''",
    };
    Refusal {
        code,
        text: format!(
            "the configuration file {} can't be read: {error}; {remedy}",
            path.display()
        ),
    }
}
