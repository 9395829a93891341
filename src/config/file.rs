//! Opening a file that decides what tokenrun does, and whether it can be trusted: as ssh(1) does with
//! its own.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::exit;
use crate::sys::place::Place;
use crate::sys::user::effective_id;

/// What a file is to this program.
#[derive(Debug, Clone, Copy)]
pub struct Role {
    /// The word for such a file in messages.
    pub title: &'static str,
    /// What else a user can do, after a remedy.
    pub otherwise: &'static str,
    /// No such file is longer, in bytes.
    pub longest: u64,
    /// What is wrong with a file that is longer.
    pub too_long: &'static str,
}

pub(super) const CONFIGURATION: Role = Role {
    title: "the configuration file",
    otherwise: ", or read none: --config ''",
    longest: 1 << 20,
    too_long: "is longer than 1 MiB: it is no configuration file",
};

/// What a missing file means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// It sets nothing.
    Fine,
    /// It sets nothing; also for a directory that this user can't enter, which is not its home: a
    /// container's user without a name has another user's.
    FineAndUnreachableToo,
    /// An error: the file was named.
    Refused,
}

/// A file's text, and whether other users may read it.
#[derive(Debug)]
pub struct FileText {
    pub text: String,
    /// Users other than its owner may read it.
    pub is_shared: bool,
}

/// Reads a file whole; `None` if it is missing and optional.
///
/// # Errors
/// It can't be read, is no regular file, too long or no UTF-8, or another user could have written it.
pub fn read(path: &Path, role: &Role, missing: Missing) -> Result<Option<FileText>, Refusal> {
    match fs::symlink_metadata(path) {
        Ok(_) => {}
        Err(error) if is_absent(&error) && missing != Missing::Refused => return Ok(None),
        Err(error)
            if error.kind() == io::ErrorKind::PermissionDenied
                && missing == Missing::FineAndUnreachableToo =>
        {
            return Ok(None);
        }
        Err(error) => return Err(role.unreadable(path, &error)),
    }
    let unreadable = |error: io::Error| role.unreadable(path, &error);
    // A dangling link is an error: a file was meant, and its disk is not mounted.
    let place = Place::find(path).map_err(unreadable)?;
    let Some((directory, name)) = place.of_file().map_err(unreadable)? else {
        return Err(role.irregular(path));
    };
    // Before the open: opening a device can have effects.
    let found = directory.look(&name).and_then(|found| found.metadata());
    role.must_be_regular(path, &found.map_err(unreadable)?)?;
    let file = directory.open_file(&name, false).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    role.must_be_trusted(path, &metadata)?;
    Ok(Some(FileText {
        text: role.text_of(path, file)?,
        is_shared: metadata.mode() & 0o077 != 0,
    }))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

impl Role {
    fn must_be_regular(&self, path: &Path, metadata: &Metadata) -> Result<(), Refusal> {
        if metadata.is_file() {
            return Ok(());
        }
        Err(self.irregular(path))
    }

    fn irregular(&self, path: &Path) -> Refusal {
        let text = format!("is no regular file; name one{}", self.otherwise);
        self.refused(path, &text)
    }

    /// A user who can write the file decides which command `on-change` is, and which store is used.
    fn must_be_trusted(&self, path: &Path, metadata: &Metadata) -> Result<(), Refusal> {
        self.must_be_regular(path, metadata)?;
        let (owner, user) = (metadata.uid(), effective_id());
        if owner != 0 && owner != user {
            let text = format!(
                "belongs to another user (uid {owner}) and is not believed: only root or uid {user}, \
                 which tokenrun runs as, may own it; chown it{}",
                self.otherwise
            );
            return Err(self.refused(path, &text));
        }
        if metadata.mode() & 0o022 != 0 {
            let text = format!(
                "can be written by others (mode {:04o}) and is not believed: chmod go-w {}",
                metadata.mode() & 0o7777,
                path.display()
            );
            return Err(self.refused(path, &text));
        }
        Ok(())
    }

    fn text_of(&self, path: &Path, file: File) -> Result<String, Refusal> {
        let mut bytes = Vec::new();
        let read = file.take(self.longest + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.unreadable(path, &error))?;
        if bytes.len() as u64 > self.longest {
            return Err(self.refused(path, self.too_long));
        }
        String::from_utf8(bytes).map_err(|error| {
            let before = error
                .as_bytes()
                .iter()
                .take(error.utf8_error().valid_up_to());
            let line = 1 + before.filter(|byte| **byte == b'\n').count();
            at_line(path, line, "is not UTF-8, which it must be")
        })
    }

    /// One line about a file.
    pub fn refused(&self, path: &Path, text: &str) -> Refusal {
        Refusal {
            code: exit::CONFIG,
            text: format!("{} {} {text}", self.title, path.display()),
        }
    }

    fn unreadable(&self, path: &Path, error: &io::Error) -> Refusal {
        let (code, remedy) = match error.kind() {
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
                (exit::DENIED, "name the file itself")
            }
            io::ErrorKind::PermissionDenied => (exit::DENIED, "let this user read it"),
            _ => (exit::CONFIG, "put it there"),
        };
        let text = format!("can't be read: {error}; {remedy}{}", self.otherwise);
        Refusal {
            code,
            ..self.refused(path, &text)
        }
    }
}

/// An error in a line of a file.
pub(super) fn at_line(path: &Path, line: usize, text: &str) -> Refusal {
    Refusal {
        code: exit::CONFIG,
        text: format!("{}:{line}: {text}", path.display()),
    }
}

/// Why a configuration file can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// The exit code.
    pub code: u8,
    /// One line: which file, which line of it, what is wrong, what to do.
    pub text: String,
}
