//! The database's file: found, checked before SQLite touches it, or made.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::clock::Clock;
use super::companion::companion;
use super::fault::Location;
use super::incarnation;
use crate::store::{StoreError, filesystem};
use crate::sys::inode::Inode;
use crate::sys::sharing::Sharing;
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
    /// Whether the file is known to have a log (WAL).
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
        match fs::metadata(&location.path) {
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
        match fs::metadata(&path) {
            Ok(found) => Ok(FileId::of(&found)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(location.gone()),
            Err(error) => Err(location.io("find", &path, &error)),
        }
    };
    Ok([id("-wal")?, id("-shm")?])
}

/// The path that SQLite will use: absolute, without a symbolic link at its end.
pub(super) fn locate(path: &Path) -> Result<Location, StoreError> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let location = Location::new(absolute);
    let is_link = fs::symlink_metadata(&location.path).is_ok_and(|found| found.is_symlink());
    if !is_link {
        return Ok(location);
    }
    match fs::canonicalize(&location.path) {
        Ok(real) => Ok(Location::new(real)),
        Err(error) => Err(location.io("follow the symbolic link", &location.path, &error)),
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
    let StoreFile { id, inode, has_log } = find_or_make(location, timeout, clock, &open)?;
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
    /// Whether its header says that there is a log (WAL).
    has_log: bool,
}

fn find_or_make(
    location: &Location,
    timeout: Duration,
    clock: &dyn Clock,
    open: &BTreeMap<FileId, usize>,
) -> Result<StoreFile, StoreError> {
    let mut waited = Duration::ZERO;
    loop {
        let found = match fs::metadata(&location.path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_empty(location)?;
                continue;
            }
            Err(error) => return Err(location.io("find", &location.path, &error)),
        };
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
        filesystem::check_file(&location.path, directory(&location.path))?;
        if open.contains_key(&FileId::of(&found)) {
            let inode = Inode::at(&location.path)
                .map_err(|error| location.io("find", &location.path, &error))?;
            if inode.number != found.ino() {
                continue;
            }
            // Its header can't be read now: SQLite checks it before the first write.
            return Ok(StoreFile {
                id: FileId::of(&found),
                inode,
                has_log: false,
            });
        }
        let refused = |error: io::Error| location.io("read", &location.path, &error);
        let mut file = File::open(&location.path).map_err(refused)?;
        let found = file.metadata().map_err(refused)?;
        if found.len() > 0 {
            return Ok(StoreFile {
                id: FileId::of(&found),
                inode: Inode::of(&file).map_err(refused)?,
                has_log: check_header(location, &mut file)?,
            });
        }
        if !fill(location, clock, &file, &found)? {
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

fn directory(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// Makes an empty file, and its directories, for this user alone or for the group that shares the
/// directory. Nothing is made on a file system that can't be trusted.
fn make_empty(location: &Location) -> Result<(), StoreError> {
    let parent = directory(&location.path);
    let existing = parent.ancestors().find(|path| path.exists());
    filesystem::check(existing.unwrap_or(Path::new("/")))?;
    make_directories(location, parent)?;
    let mode = Sharing::of(parent).file_mode();
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&location.path);
    match made {
        // Restores the bits that the umask removed.
        Ok(file) => file
            .set_permissions(Permissions::from_mode(mode))
            .map_err(|error| location.io("make", &location.path, &error)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(location.io("make", &location.path, &error)),
    }
}

/// Makes the missing directories, shared like those that they are made in. Existing ones stay as
/// they are.
fn make_directories(location: &Location, path: &Path) -> Result<(), StoreError> {
    let refused = |error: io::Error| location.io("make the directory", path, &error);
    match Sharing::make_directory(path) {
        Ok(()) => sync_directory(directory(path)).map_err(refused),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match path.parent() {
                Some(parent) => make_directories(location, parent)?,
                None => return Err(refused(error)),
            }
            make_directories(location, path)
        }
        Err(error) => Err(refused(error)),
    }
}

/// Makes a directory's entries survive a power cut.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// The parts of a database's header that matter here. See "The Database Header"
/// in SQLite's `fileformat.html`.
const HEADER: usize = 100;
const MAGIC: &[u8] = b"SQLite format 3\0";

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
    Ok(header[18..20] == [2, 2])
}

/// Replaces an empty file with a database. The process that holds the empty file's lock does it;
/// `false` if another process has the lock. The database is made under another name and renamed, so
/// that a partial one is never visible. A process that dies meanwhile leaves an empty file, which
/// the next one fills.
fn fill(
    location: &Location,
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
    match fs::metadata(&location.path) {
        Ok(now) if FileId::of(&now) == FileId::of(found) && now.len() == 0 => {}
        // Another process has filled it meanwhile.
        Ok(_) => return Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(refused(error)),
    }
    let parent = directory(&location.path);
    let mut name = OsString::from(".");
    name.push(location.path.file_name().unwrap_or_default());
    name.push(".new");
    let draft = parent.join(name);
    remove(location, &draft)?;
    let made = build(location, clock, &draft, found).and_then(|()| {
        // A log that outlived its database would be played into the new one.
        for end in COMPANIONS {
            remove_file(&companion(&location.path, end)).map_err(refused)?;
        }
        fs::rename(&draft, &location.path).map_err(refused)?;
        sync_directory(parent).map_err(refused)
    });
    if made.is_err() {
        // The first error is the one to report.
        let _ = remove(location, &draft);
    }
    made.map(|()| true)
}

const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn remove(location: &Location, database: &Path) -> Result<(), StoreError> {
    for end in COMPANIONS.iter().chain(&[""]) {
        let path = companion(database, end);
        remove_file(&path).map_err(|error| location.io("remove", &path, &error))?;
    }
    Ok(())
}

/// Makes a whole database at `draft`, with the mode and owner of the empty file that it replaces.
fn build(
    location: &Location,
    clock: &dyn Clock,
    draft: &Path,
    like: &Metadata,
) -> Result<(), StoreError> {
    let refused = |error: io::Error| location.io("make", draft, &error);
    let mode = like.mode() & 0o777;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(draft)
        .map_err(refused)?;
    file.set_permissions(Permissions::from_mode(mode))
        .map_err(refused)?;
    let made = file.metadata().map_err(refused)?;
    // In a shared directory the group has it, and one of its users can't give it to another.
    let is_shared = Sharing::of(directory(draft)) == Sharing::Group;
    if (made.uid(), made.gid()) != (like.uid(), like.gid()) && !is_shared {
        fchown(&file, Some(like.uid()), Some(like.gid())).map_err(refused)?;
    }
    let note = IncarnationNote::of_new(
        incarnation_of(&Inode::of(&file).map_err(refused)?),
        true,
        &clock.now(),
        Version::from_random(0),
    );
    write_schema(draft, &note)
        .map_err(|error| location.sqlite("make its tables", &error, Duration::ZERO))?;
    file.sync_all().map_err(refused)
}

/// No other process knows the file, and it is synced as a whole: no journal on disk, no syncs
/// between. The mode (WAL) is a mark in the header; it is written last.
fn write_schema(draft: &Path, note: &IncarnationNote) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(draft, flags)?;
    let user_version = user_version();
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = MEMORY;
         PRAGMA synchronous = OFF;
         BEGIN IMMEDIATE;
         {SCHEMA}
         PRAGMA application_id = {APPLICATION_ID};
         PRAGMA user_version = {user_version};"
    ))?;
    incarnation::insert(&connection, note)?;
    connection.execute_batch("COMMIT; PRAGMA journal_mode = WAL;")?;
    connection.close().map_err(|(_, error)| error)
}
