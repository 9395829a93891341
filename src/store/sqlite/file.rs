//! The database's file: found, checked before SQLite touches it, or made.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use super::clock::Clock;
use super::fault::Location;
use super::incarnation;
use crate::store::{StoreError, filesystem};
use crate::sys::errno::Errno;
use crate::sys::file::Inode;
use crate::sys::place::{Directory, Place};
use crate::sys::sharing::{Sharing, is_own, is_planted, is_sticky};
use crate::sys::sqlite_files::companion;
use crate::sys::sqlite_files::{self, COMPANIONS};
use crate::token::{Incarnation, IncarnationNote, Version};

/// `TokR`: the application id in the file's header.
pub(super) const APPLICATION_ID: i32 = 0x546f_6b52;

/// The version of the schema.
pub(super) const SCHEMA_VERSION: i64 = 1;

/// The oldest version that a program must know to use it.
const OLDEST_READER: i64 = 1;

/// The header's `user_version` holds both: the schema's version times this, plus its
/// oldest reader. A table for them would have to be parsed by every process.
pub(super) const SCHEMA_STEP: i64 = 1000;

pub(super) const SCHEMA: &str = include_str!("../sql/sqlite/schema.sql");

/// The `user_version` of the schema that this program makes.
pub(super) const fn user_version() -> i64 {
    SCHEMA_VERSION * SCHEMA_STEP + OLDEST_READER
}

/// A file, under any name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

/// The incarnation of the store in this file: no copy has the same.
fn incarnation_of(found: &Inode) -> Incarnation {
    // Without a birth time, the inode alone distinguishes a copy.
    let birth = found.born.unwrap_or_default().nanos_since_1970();
    Incarnation(format!("{:x}-{birth:x}", found.number))
}

impl FileId {
    fn of(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
        }
    }
}

/// The files that this process has open through SQLite, with counts.
///
/// Closing any descriptor of a file drops every POSIX lock that the process has on it, including
/// SQLite's; another process could then remove the log. So a file in this list is never opened
/// again except by SQLite.
static OPEN: Mutex<BTreeMap<FileId, usize>> = Mutex::new(BTreeMap::new());

fn open_files() -> MutexGuard<'static, BTreeMap<FileId, usize>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A database's file while SQLite has it open. To be dropped after the connection.
#[derive(Debug)]
pub(super) struct OpenFile {
    id: FileId,
    incarnation: Incarnation,
    /// True if the file is known to have a log (WAL).
    pub(super) has_log: bool,
    /// The log and its index: known as soon as SQLite has opened them.
    beside: Option<[FileId; 2]>,
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let mut open = open_files();
        if let Some(count) = open.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.id);
            }
        }
    }
}

impl OpenFile {
    /// The file's identity, for its note.
    pub(super) fn incarnation(&self) -> Incarnation {
        self.incarnation.clone()
    }

    /// Records the log and its index, which SQLite has opened, unless that is done. Otherwise their
    /// replacement would go unnoticed, so a failure is an error of the store.
    pub(super) fn remember_beside(&mut self, location: &Location) -> Result<(), StoreError> {
        if self.beside.is_none() {
            self.beside = Some(beside(location)?);
        }
        Ok(())
    }

    /// Checks that the path still leads to this file, and that the log and its index beside it are
    /// those that SQLite has open: a process that finds other files there is not excluded.
    pub(super) fn check_still_there(&self, location: &Location) -> Result<(), StoreError> {
        if let Some(known) = self.beside
            && beside(location)? != known
        {
            return Err(location.gone());
        }
        match fs::symlink_metadata(&location.path) {
            Ok(found) if FileId::of(&found) == self.id => Ok(()),
            Ok(_) => Err(location.gone()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(location.gone()),
            Err(error) => Err(location.io("find", &location.path, &error)),
        }
    }
}

fn beside(location: &Location) -> Result<[FileId; 2], StoreError> {
    let id = |end| {
        let path = companion(&location.path, end);
        match fs::symlink_metadata(&path) {
            Ok(found) => Ok(FileId::of(&found)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(location.gone()),
            Err(error) => Err(location.io("find", &path, &error)),
        }
    };
    Ok([id("-wal")?, id("-shm")?])
}

/// The path that SQLite will use: absolute, without symbolic links.
pub(super) fn locate(path: &Path) -> Result<Location, StoreError> {
    let absolute = std::path::absolute(path).map_err(|error| {
        let relative = Location::new(path.to_owned());
        let what = format!("the directory of this process can't be found: {error}");
        let remedy = "give an absolute path, or start it in a directory that exists";
        relative.misconfigured(what).remedy(remedy)
    })?;
    let given = Location::new(absolute);
    let place = Place::find(&given.path).map_err(|error| given.io("find", &given.path, &error))?;
    if place.is_dangling {
        let error = Errno::ENOENT.into();
        return Err(given.io("follow the symbolic links in", &given.path, &error));
    }
    let is_link = fs::symlink_metadata(&given.path).is_ok_and(|found| found.is_symlink());
    match is_link {
        true => Ok(Location::new(place.path())),
        false => Ok(Location {
            path: place.path(),
            ..given
        }),
    }
}

/// Makes the file if it is missing or empty, checks that it is a tokenrun database, and lets
/// `connect` open it. Waits at most `timeout` for another process that is making it. A file with
/// contents is never written to.
pub(super) fn open(
    location: &Location,
    timeout: Duration,
    clock: &dyn Clock,
    connect: impl FnOnce(&Path) -> rusqlite::Result<Connection>,
) -> Result<(Connection, OpenFile), StoreError> {
    let mut open = open_files();
    let directory = directory_of(location)?;
    let StoreFile { id, inode, has_log } =
        find_or_make(location, &directory, timeout, clock, &open)?;
    sqlite_files::guard();
    let connection =
        connect(&location.path).map_err(|error| location.sqlite("open it", &error, timeout))?;
    *open.entry(id).or_default() += 1;
    Ok((
        connection,
        OpenFile {
            id,
            incarnation: incarnation_of(&inode),
            has_log,
            beside: None,
        },
    ))
}

/// The pause between two checks of a file that another process is making: that takes some
/// milliseconds.
const PAUSE: Duration = Duration::from_millis(2);

/// A file that is a store.
struct StoreFile {
    id: FileId,
    inode: Inode,
    /// True if its header says that there is a log (WAL).
    has_log: bool,
}

fn find_or_make(
    location: &Location,
    directory: &Directory,
    timeout: Duration,
    clock: &dyn Clock,
    open: &BTreeMap<FileId, usize>,
) -> Result<StoreFile, StoreError> {
    let refused = |error: io::Error| location.io("read", &location.path, &error);
    let name = location.path.file_name().unwrap_or_default();
    let mut waited = Duration::ZERO;
    loop {
        let there = match directory.look(name) {
            Ok(there) => there,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_empty(location, directory, name)?;
                continue;
            }
            Err(error) => return Err(location.io("find", &location.path, &error)),
        };
        let found = there.metadata().map_err(refused)?;
        check_file(location, directory, &found)?;
        filesystem::check_file(&location.path, directory.path())?;
        if open.contains_key(&FileId::of(&found)) {
            // Its header can't be read now: SQLite checks it before the first write.
            return Ok(StoreFile {
                id: FileId::of(&found),
                inode: Inode::of(&there).map_err(refused)?,
                has_log: false,
            });
        }
        let mut file = directory.open_file(name, false).map_err(refused)?;
        let found = file.metadata().map_err(refused)?;
        check_file(location, directory, &found)?;
        if found.len() > 0 {
            return Ok(StoreFile {
                id: FileId::of(&found),
                inode: Inode::of(&file).map_err(refused)?,
                has_log: check_header(location, &mut file)?,
            });
        }
        if !fill(location, directory, clock, &file, &found)? {
            if waited >= timeout {
                return Err(location
                    .unavailable("another process has been making it for too long")
                    .remedy("end that one, or try again"));
            }
            std::thread::sleep(PAUSE);
            waited += PAUSE;
        }
    }
}

/// A regular file with one name, which no other user has put there.
fn check_file(
    location: &Location,
    directory: &Directory,
    found: &Metadata,
) -> Result<(), StoreError> {
    if !found.is_file() {
        return Err(location
            .misconfigured("this is not a file but a directory, a device or a socket")
            .remedy("give the path of a file"));
    }
    if found.nlink() > 1 {
        return Err(location.misconfigured(
            "this file has several names (hard links), and a log and locks for each: a process that uses one name would not exclude one that uses another",
        ).remedy("remove all but one, or use symbolic links"));
    }
    let around = directory.metadata();
    let around = around.map_err(|error| location.io("find", directory.path(), &error))?;
    if is_planted(found, &around) {
        return Err(location
            .misconfigured(format!(
                "this file belongs to another user (uid {}), and every user may put one there",
                found.uid()
            ))
            .remedy("use a directory that one user or one group alone may write to"));
    }
    Ok(())
}

/// The file's directory, which is made if it is missing. Nothing is made on a file system that can't be
/// trusted.
fn directory_of(location: &Location) -> Result<Directory, StoreError> {
    let Some(parent) = location.path.parent() else {
        return Err(location
            .misconfigured("this is not a file but a directory")
            .remedy("give the path of a file"));
    };
    let place = Place::find(parent).map_err(|error| location.io("find", parent, &error))?;
    if place.names.is_empty() {
        return Ok(place.directory);
    }
    filesystem::check(place.directory.path())?;
    Directory::make_durable(parent)
        .map_err(|error| location.io("make the directory", parent, &error))
}

/// Makes an empty file for this user alone or for the group that shares the directory.
fn make_empty(location: &Location, directory: &Directory, name: &OsStr) -> Result<(), StoreError> {
    filesystem::check(directory.path())?;
    let refused = |error: io::Error| location.io("make", &location.path, &error);
    let mode = directory.sharing().map_err(refused)?.file_mode();
    match directory.create_exactly(name, mode) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(refused(error)),
        _ => Ok(()),
    }
}

/// The parts of a database's header that matter here. See "The Database Header"
/// in SQLite's `fileformat.html`.
const HEADER: usize = 100;
const MAGIC: &[u8] = b"SQLite format 3\0";
const MODE: Range<usize> = 18..20;
const WITH_LOG: [u8; 2] = [2, 2];

/// Checks a file's header before SQLite opens the file: SQLite would play another program's journal
/// back, or make a log beside it. Returns whether it has a log.
pub(super) fn check_header(location: &Location, file: &mut File) -> Result<bool, StoreError> {
    let mut header = [0; HEADER];
    match file.read_exact(&mut header) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(location.no_database());
        }
        Err(error) => return Err(location.io("read", &location.path, &error)),
    }
    if !header.starts_with(MAGIC) {
        return Err(location.no_database());
    }
    if header[68..72] != APPLICATION_ID.to_be_bytes() {
        return Err(location
            .misconfigured("this SQLite database is another program's")
            .remedy("give another path with --store"));
    }
    Ok(header[MODE] == WITH_LOG)
}

/// Replaces an empty file with a database. The process that holds the empty file's lock does it;
/// `false` if another process has the lock. The database is made under another name and renamed, so
/// that a partial one is never visible. A process that dies meanwhile leaves an empty file, which
/// the next one fills.
fn fill(
    location: &Location,
    directory: &Directory,
    clock: &dyn Clock,
    empty: &File,
    found: &Metadata,
) -> Result<bool, StoreError> {
    let refused = |error: io::Error| location.io("make", &location.path, &error);
    match empty.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(false),
        Err(TryLockError::Error(error)) => return Err(refused(error)),
    }
    let name = location.path.file_name().unwrap_or_default();
    match directory.look(name).and_then(|there| there.metadata()) {
        Ok(now) if FileId::of(&now) == FileId::of(found) && now.len() == 0 => {}
        // Another process has filled it meanwhile.
        Ok(_) => return Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(refused(error)),
    }
    let mut draft = OsString::from(".");
    draft.push(name);
    draft.push(".new");
    directory.remove(&draft).map_err(refused)?;
    let made = build(location, directory, clock, &draft, found).and_then(|()| {
        // A log that outlived its database would be played into the new one.
        for end in COMPANIONS {
            let beside = companion(Path::new(name), end);
            directory.remove(beside.as_os_str()).map_err(refused)?;
        }
        directory
            .rename(&draft, name)
            .and_then(|()| directory.sync())
            .map_err(|error| not_replaced(location, directory, found, &error))
    });
    if made.is_err() {
        // The first error is the one to report.
        let _ = directory.remove(&draft);
    }
    made.map(|()| true).map_err(StoreError::without_effect)
}

/// In a directory with the sticky bit only the owner of the empty file may replace it.
fn not_replaced(
    location: &Location,
    directory: &Directory,
    empty: &Metadata,
    error: &io::Error,
) -> StoreError {
    let refused = location.io("make", &location.path, error);
    match directory.metadata() {
        Ok(found) if is_sticky(&found) && !is_own(empty) => {
            refused.remedy("it is an empty file of another user: remove it as its owner or as root")
        }
        _ => refused,
    }
}

/// Makes a whole database under the name `draft`, with the mode and owner of the empty file that it
/// replaces.
fn build(
    location: &Location,
    directory: &Directory,
    clock: &dyn Clock,
    draft: &OsStr,
    like: &Metadata,
) -> Result<(), StoreError> {
    let path = directory.path().join(draft);
    let refused = |error: io::Error| location.io("make", &path, &error);
    let mut file = directory
        .create_exactly(draft, like.mode() & 0o777)
        .map_err(refused)?;
    let made = file.metadata().map_err(refused)?;
    // In a shared directory the group has it, and one of its users can't give it to another.
    let is_shared = directory.sharing().map_err(refused)? == Sharing::Group;
    if (made.uid(), made.gid()) != (like.uid(), like.gid()) && !is_shared {
        fchown(&file, Some(like.uid()), Some(like.gid())).map_err(refused)?;
    }
    let note = IncarnationNote::of_new(
        incarnation_of(&Inode::of(&file).map_err(refused)?),
        true,
        &clock.now(),
        Version::from_random(0),
    );
    let database = new_database(&note)
        .map_err(|error| location.sqlite("make its tables", &error, Duration::ZERO))?;
    file.write_all(&database)
        .and_then(|()| file.sync_all())
        .map_err(refused)
}

/// The contents of a new database. SQLite makes it in memory: it would open a file by its name, which
/// another user of the directory could give to another file.
fn new_database(note: &IncarnationNote) -> rusqlite::Result<Vec<u8>> {
    let mut connection = Connection::open_in_memory()?;
    let user_version = user_version();
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE;
         {SCHEMA}
         PRAGMA application_id = {APPLICATION_ID};
         PRAGMA user_version = {user_version};"
    ))?;
    incarnation::insert(&connection, note)?;
    connection.execute_batch("COMMIT")?;
    let mut database = connection.serialize("main")?.to_vec();
    // The mode: with a log (WAL).
    if let Some(mode) = database.get_mut(MODE) {
        mode.copy_from_slice(&WITH_LOG);
    }
    Ok(database)
}
