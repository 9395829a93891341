//! How SQLite opens the files beside a database.
//!
//! SQLite opens them by name, and as root it gives each of them to the database's owner. Another user
//! of the directory could give the name to any file for a moment. So SQLite calls these functions in
//! place of open(2) and fchown(2): what was opened is judged by its descriptor, and only a file that
//! was just made gets an owner.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd as _, IntoRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Once;

use nix::libc;
use rusqlite::ffi;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, open, openat2};
use rustix::io::Errno;

use super::sharing::objection;

/// The ends of the names of the files beside a database: log, its index, journal.
pub const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// The end of the name of the directory of locks, which also lies beside the database.
pub const LOCKS: &str = "-locks";

/// The path of a file that SQLite keeps beside the database.
pub fn companion(database: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(database);
    name.push(end);
    PathBuf::from(name)
}

/// How often a file may come and go between two calls.
const TRIES: usize = 100;

thread_local! {
    /// The descriptor of the file that the last call on this thread has made.
    static MADE: Cell<Option<RawFd>> = const { Cell::new(None) };
}

/// A function as SQLite keeps it, and what the two are.
type Call = unsafe extern "C" fn();
type Open = unsafe extern "C" fn(*const c_char, c_int, c_int) -> c_int;
type Give = unsafe extern "C" fn(c_int, libc::uid_t, libc::gid_t) -> c_int;

/// Has SQLite call these functions. To be called before a database is opened.
pub fn guard() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: SQLite's default VFS lives as long as the process. It is that for Unix, which calls
        // what it knows by these names with these arguments.
        unsafe {
            let vfs = ffi::sqlite3_vfs_find(ptr::null());
            let Some(set) = vfs.as_ref().and_then(|vfs| vfs.xSetSystemCall) else {
                return;
            };
            let opens = std::mem::transmute::<Open, Call>(open_file);
            set(vfs, c"open".as_ptr(), Some(opens));
            let gives = std::mem::transmute::<Give, Call>(give);
            set(vfs, c"fchown".as_ptr(), Some(gives));
        }
    });
}

/// In place of open(2).
///
/// # Safety
/// The path is a string that ends with a NUL.
unsafe extern "C" fn open_file(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    MADE.set(None);
    // SAFETY: SQLite gives a string that lives as long as the call.
    let text = unsafe { CStr::from_ptr(path) };
    let flags = OFlags::from_bits_retain(flags.cast_unsigned());
    let mode = Mode::from_raw_mode(mode.cast_unsigned());
    let path = Path::new(OsStr::from_bytes(text.to_bytes()));
    let opened = match database_of(text.to_bytes()) {
        Some(database) => open_beside(path, database, flags, mode),
        None => open(path, flags, mode).map_err(io::Error::from),
    };
    match opened {
        Ok(file) => file.into_raw_fd(),
        Err(error) => {
            nix::errno::Errno::set_raw(error.raw_os_error().unwrap_or(libc::EPERM));
            -1
        }
    }
}

/// In place of fchown(2).
unsafe extern "C" fn give(file: c_int, uid: libc::uid_t, gid: libc::gid_t) -> c_int {
    match MADE.take() == Some(file) {
        // SAFETY: it takes numbers only.
        true => unsafe { libc::fchown(file, uid, gid) },
        false => 0,
    }
}

/// The database that this file lies beside, by the end of its name.
pub fn database_of(path: &[u8]) -> Option<&Path> {
    let mut stems = COMPANIONS
        .iter()
        .filter_map(|end| path.strip_suffix(end.as_bytes()));
    stems.next().map(|stem| Path::new(OsStr::from_bytes(stem)))
}

fn open_beside(path: &Path, database: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
    // A pipe is not waited for.
    let there = flags.difference(OFlags::CREATE) | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let new = flags | OFlags::EXCL | OFlags::NOFOLLOW;
    for _ in 0..TRIES {
        match open_directly(path, there, Mode::empty()) {
            Err(Errno::NOENT) if flags.contains(OFlags::CREATE) => {}
            opened => return judged(opened?, path, database),
        }
        match open_directly(path, new, mode) {
            Err(Errno::EXIST) => {}
            made => {
                let made = made?;
                MADE.set(Some(made.as_raw_fd()));
                return Ok(made);
            }
        }
    }
    Err(Errno::AGAIN.into())
}

/// SQLite has followed the symbolic links in a database's path; one that is there now is another
/// user's. Kernels before 5.6, and some sandboxes, know only how to refuse one at the path's end.
fn open_directly(path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    match openat2(CWD, path, flags, mode, ResolveFlags::NO_SYMLINKS) {
        Err(Errno::NOSYS | Errno::PERM) => open(path, flags, mode),
        opened => opened,
    }
}

fn judged(file: OwnedFd, path: &Path, database: &Path) -> io::Result<OwnedFd> {
    let file = File::from(file);
    match objection_to(&file.metadata()?, path, database)? {
        None => Ok(file.into()),
        Some(_) => Err(Errno::PERM.into()),
    }
}

/// Why the file with this path can't be one beside this database; reads after its name.
///
/// # Errors
/// Those of lstat(2): `NotFound` if there is none.
pub fn objection_at(path: &Path, database: &Path) -> io::Result<Option<&'static str>> {
    objection_to(&fs::symlink_metadata(path)?, path, database)
}

fn objection_to(
    found: &fs::Metadata,
    path: &Path,
    database: &Path,
) -> io::Result<Option<&'static str>> {
    let directory = fs::metadata(path.parent().unwrap_or(Path::new("/")))?;
    Ok(objection(
        found,
        &fs::symlink_metadata(database)?,
        &directory,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, symlink};

    const FLAGS: OFlags = OFlags::RDWR.union(OFlags::CREATE).union(OFlags::CLOEXEC);

    fn opened(path: &Path, database: &Path) -> io::Result<OwnedFd> {
        open_beside(path, database, FLAGS, Mode::RUSR | Mode::WUSR)
    }

    #[test]
    fn only_the_files_beside_a_database_are_judged() {
        assert_eq!(database_of(b"/a/x.db-wal"), Some(Path::new("/a/x.db")));
        assert_eq!(database_of(b"/a/x.db-journal"), Some(Path::new("/a/x.db")));
        assert_eq!(database_of(b"/a/x.db"), None);
    }

    #[test]
    fn a_file_gets_an_owner_only_if_it_was_just_made() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("x.db");
        fs::write(&database, "").unwrap();
        let log = folder.path().join("x.db-wal");
        let made = opened(&log, &database).unwrap();
        assert_eq!(MADE.get(), Some(made.as_raw_fd()));
        let found = fs::metadata(&log).unwrap();
        // SAFETY: it takes numbers only.
        let give_to = |uid| unsafe { give(made.as_raw_fd(), uid, found.gid()) };
        assert_eq!(give_to(found.uid()), 0);
        assert_eq!(MADE.get(), None);
        // A second hand-over of the same file changes nothing.
        assert_eq!(give_to(found.uid() + 1), 0);
        assert_eq!(fs::metadata(&log).unwrap().uid(), found.uid());
    }

    #[test]
    fn no_link_is_followed_on_the_way_or_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let inside = |name: &str| folder.path().join(name);
        fs::create_dir(inside("real")).unwrap();
        fs::write(inside("real/x.db"), "").unwrap();
        fs::write(inside("real/other"), "").unwrap();
        symlink("real", inside("way")).unwrap();
        symlink("other", inside("real/x.db-wal")).unwrap();
        for path in ["way/x.db-shm", "real/x.db-wal"] {
            let refused = opened(&inside(path), &inside("real/x.db")).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::ELOOP), "{path}");
        }
        assert!(!inside("real/x.db-shm").exists());
    }

    #[test]
    fn a_second_name_or_a_pipe_is_refused_whosever_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let inside = |name: &str| folder.path().join(name);
        fs::write(inside("x.db"), "").unwrap();
        fs::write(inside("other"), "").unwrap();
        fs::hard_link(inside("other"), inside("x.db-wal")).unwrap();
        nix::unistd::mkfifo(&inside("x.db-shm"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        for path in ["x.db-wal", "x.db-shm"] {
            let refused = opened(&inside(path), &inside("x.db")).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::EPERM), "{path}");
        }
    }
}
