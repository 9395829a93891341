//! Errors in one line: where, what, what to do.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{ErrorCode, ffi};

use super::companion::companion;
use super::lock_owner::lock_owner;
use crate::store::error::copy_of;
use crate::store::sql::cell::BadColumn;
use crate::store::{StoreError, Trouble};
use crate::sys::errno::Errno;
use crate::sys::file::{self, Access};
use crate::sys::limits;
use crate::sys::sqlite_files::{COMPANIONS, objection_at};
use crate::token::hidden::quoted;

/// A store's location, which every message names.
#[derive(Debug, Clone)]
pub(super) struct Location {
    /// The database's path: absolute, without symbolic links at its end.
    pub(super) path: PathBuf,
    /// `sqlite://` and the path.
    pub(super) name: String,
}

/// By how much a file of the store grows at once, at most.
const GROWTH: u64 = 32 * 1_024;

/// A path in a message of one line.
pub(super) fn shown(path: &Path) -> String {
    let mut shown = String::new();
    for c in path.to_string_lossy().chars() {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The kind of trouble of an operating system error.
fn trouble_of(error: &io::Error) -> Trouble {
    match Errno::of(error) {
        Some(Errno::EACCES | Errno::EPERM | Errno::EROFS) => Trouble::Denied,
        None if error.kind() == io::ErrorKind::PermissionDenied => Trouble::Denied,
        Some(
            Errno::ENOTDIR
            | Errno::EISDIR
            | Errno::ELOOP
            | Errno::ENAMETOOLONG
            | Errno::ENOENT
            | Errno::EFBIG,
        ) => Trouble::Misconfigured,
        _ => Trouble::Unavailable,
    }
}

/// What to do about it.
fn advice_for(error: &io::Error) -> &'static str {
    match Errno::of(error) {
        Some(Errno::EACCES | Errno::EPERM) => {
            "run as its owner, or give another store with --store"
        }
        None if error.kind() == io::ErrorKind::PermissionDenied => "give another path with --store",
        Some(Errno::EROFS) => "mount it writable, or give another store with --store",
        Some(Errno::ENOTDIR) => "a part of this path is no directory; give another path",
        Some(Errno::ENOSPC | Errno::EDQUOT) => "make room there",
        Some(Errno::EIO) => "the disk is broken (dmesg)",
        Some(Errno::EMFILE | Errno::ENFILE) => "raise the limit of open files",
        Some(Errno::EFBIG) => "raise the file size limit (ulimit -f)",
        _ => "see whether the path is right and the disk well",
    }
}

impl Location {
    pub(super) fn new(path: PathBuf) -> Self {
        let name = format!("sqlite://{}", shown(&path));
        Self { path, name }
    }

    pub(super) fn misconfigured(&self, what: impl AsRef<str>) -> StoreError {
        StoreError::misconfigured(format!("{}: {}", self.name, what.as_ref()))
    }

    pub(super) fn unavailable(&self, what: impl AsRef<str>) -> StoreError {
        StoreError::unavailable(format!("{}: {}", self.name, what.as_ref()))
    }

    fn refused(&self, what: impl AsRef<str>) -> StoreError {
        StoreError::refused(format!("{}: {}", self.name, what.as_ref()))
    }

    fn denied(&self, what: impl AsRef<str>) -> StoreError {
        StoreError::denied(format!("{}: {}", self.name, what.as_ref()))
    }

    /// The error of an operation on a path.
    pub(super) fn io(&self, doing: &str, path: &Path, error: &io::Error) -> StoreError {
        StoreError {
            trouble: trouble_of(error),
            what: format!("{}: can't {doing} {}: {error}", self.name, shown(path)),
            remedy: Some(advice_for(error).to_owned()),
            source: None,
        }
        .caused_by(copy_of(error))
    }

    /// A malformed row.
    pub(super) fn bad_cell(&self, table: &str, group: &str, bad: &BadColumn) -> StoreError {
        let BadColumn { column, what } = bad;
        let group = quoted(group);
        self.misconfigured(format!("table {table}, group {group}: {column} {what}"))
            .remedy("correct it with sqlite3 or put a backup back")
    }

    /// The lock was not free in time.
    fn busy(&self, timeout: Duration) -> StoreError {
        let owner = lock_owner(&self.path).map_or_else(
            || "by a process that is gone or of another container: try again".into(),
            |owner| format!("by {owner}"),
        );
        StoreError::locked(format!(
            "{}: locked for longer than {} {owner}",
            self.name,
            humantime::format_duration(timeout)
        ))
    }

    /// SQLite refused an operation.
    pub(super) fn sqlite(
        &self,
        doing: &str,
        error: &rusqlite::Error,
        timeout: Duration,
    ) -> StoreError {
        let described = self.sqlite_words(doing, error, timeout);
        match error {
            rusqlite::Error::SqliteFailure(failure, _) => described.caused_by(*failure),
            _ => described,
        }
    }

    fn sqlite_words(&self, doing: &str, error: &rusqlite::Error, timeout: Duration) -> StoreError {
        let rusqlite::Error::SqliteFailure(failure, _) = error else {
            return self
                .misconfigured(format!("can't {doing}: {error}"))
                .remedy("its schema is not as tokenrun made it");
        };
        match failure.code {
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::FileLockingProtocolFailed => self.busy(timeout),
            ErrorCode::DiskFull | ErrorCode::SystemIoFailure if self.meets_limit() => self
                .misconfigured(format!(
                    "can't {doing}: it, or what lies beside it, would be longer than the file size limit of {} bytes",
                    limits::file_size().unwrap_or_default()
                )).remedy("raise it (ulimit -f)"),
            ErrorCode::DiskFull => {
                self.refused(format!("can't {doing}: the disk is full")).remedy("make room there")
            }
            ErrorCode::ReadOnly if failure.extended_code == ffi::SQLITE_READONLY_DBMOVED => {
                self.gone()
            }
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied => self.read_only(doing),
            ErrorCode::CannotOpen => self.cannot_open(doing),
            ErrorCode::NotADatabase => self.no_database(),
            ErrorCode::DatabaseCorrupt => self.misconfigured(format!(
                "can't {doing}: the file is damaged"
            )).remedy("put a backup back, or move it away with its -wal and -shm"),
            ErrorCode::SystemIoFailure => self.unavailable(format!(
                "can't {doing}: {error} (code {})",
                failure.extended_code
            )).remedy("see whether the disk is full or broken"),
            ErrorCode::Unknown | ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch => self
                .misconfigured(format!(
                    "can't {doing}: {error}"
                )).remedy("its schema or contents are not as tokenrun made them"),
            _ => self.unavailable(format!("can't {doing}: {error}")).remedy("try again"),
        }
    }

    /// Whether a file of the store can't grow any more, because of this process's limit: SQLite
    /// does not report that.
    fn meets_limit(&self) -> bool {
        let Some(limit) = limits::file_size() else {
            return false;
        };
        let beside = ["-wal", "-shm"].map(|end| companion(&self.path, end));
        let lengths = beside.iter().chain([&self.path]);
        let lengths = lengths.map(|path| std::fs::metadata(path).map_or(0, |found| found.len()));
        lengths.max() >= Some(limit.saturating_sub(GROWTH))
    }

    /// Why what lies beside the file is not used, as [`crate::sys::sqlite_files`] judges it.
    pub(super) fn check_companions(&self) -> Result<(), StoreError> {
        for path in COMPANIONS.map(|end| companion(&self.path, end)) {
            match objection_at(&path, &self.path) {
                Ok(None) => {}
                Ok(Some(why)) => {
                    let what = format!("{} {why}, and is not used", shown(&path));
                    let remedy = "find out who put it there; if it is the database's own, give it \
                                  the owner, group and mode of the database";
                    return Err(self.misconfigured(what).remedy(remedy));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(self.io("find", &path, &error)),
            }
        }
        Ok(())
    }

    fn read_only(&self, doing: &str) -> StoreError {
        match file::check(&self.path, Access::ReadAndWrite) {
            Err(error) if Errno::of(&error) == Some(Errno::EROFS) => {
                self.io("write to", &self.path, &error)
            }
            _ => self
                .denied(format!(
                    "can't {doing}: it, or what lies beside it, can't be written"
                ))
                .remedy("run as its owner"),
        }
    }

    /// SQLite reports only that it can't open one of its files.
    fn cannot_open(&self, doing: &str) -> StoreError {
        if let Err(error) = self.check_companions() {
            return error;
        }
        let mut files = vec![self.path.parent().map(Path::to_owned)];
        files.push(Some(self.path.clone()));
        files.extend(["-wal", "-shm"].map(|end| Some(companion(&self.path, end))));
        for file in files.into_iter().flatten() {
            let checked = file::check_as_real_user(&file, Access::ReadAndWrite);
            if let Err(error) = checked
                && trouble_of(&error) == Trouble::Denied
            {
                return self.io("write to", &file, &error);
            }
        }
        self.unavailable(format!(
            "can't {doing}: SQLite can't open the file or what lies beside it"
        ))
        .remedy("see whether files are scarce (ulimit -n)")
    }

    /// The file is not a database.
    pub(super) fn no_database(&self) -> StoreError {
        self.misconfigured("this file is no SQLite database")
            .remedy("give another path with --store")
    }

    /// The file has been removed or replaced since it was opened.
    pub(super) fn gone(&self) -> StoreError {
        StoreError::gone(format!(
            "{}: the file, or the log beside it, was removed or replaced while it was in use: other processes do not see what is written to it",
            self.name
        )).remedy("end the processes that use it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_one_line_whatever_the_path() {
        let location = Location::new(PathBuf::from("/tmp/a\nb\u{1b}[31m"));
        assert_eq!(location.name, "sqlite:///tmp/a\\nb\\u{1b}[31m");
        let error = location.io("open", &location.path, &io::ErrorKind::NotFound.into());
        assert!(!error.to_string().contains('\n'), "{error}");
    }
}
