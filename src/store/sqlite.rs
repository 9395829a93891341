//! The embedded default: a SQLite file, which serves every process of one host that may write to it.
//!
//! A swap is one IMMEDIATE transaction: a transaction that reads first and then writes fails with
//! "busy" at once, whatever the time-out, when another process wrote in between. The clock is read
//! after the lock was obtained, so that no stamp is older than the wait for the lock.
//!
//! **What survives.** The token's state need not survive a power cut: every process that relied on
//! it is gone too. History must, and `--once` with it. So commits do not wait for the disk (WAL
//! with `synchronous = NORMAL`), but a swap that ends a run, and [`super::Records::record`], sync
//! the log before they return. This module syncs the log, instead of `synchronous = FULL`: SQLite
//! would call fsync(2) on the log and, once in every process, on its directory. fdatasync(2) on the
//! log alone costs a third less and is as safe, because the log exists from the first commit on,
//! whose process syncs the directory.
//!
//! **The log's length.** The first process to open the store must read the whole log to find its
//! end, so the log must stay short. Nothing is checkpointed on close, which would cost four syncs.
//! A commit that finds `LOG_PAGES` pages in the log checkpoints it, except at the end of a run: the
//! log starts over only in a process that knows of the checkpoint, and after the last commit that
//! knowledge is lost, so that the work would be done twice.

/// A statement, by the name of its file.
macro_rules! sql {
    ($name:literal) => {
        $crate::store::sql::statement!("sqlite", $name)
    };
}

pub mod clock;
pub mod examine;

mod cells;
mod fault;
mod file;
mod incarnation;
mod lock_owner;
mod notifier;
mod queue;
mod records;
mod schema;
mod tokens;
mod write;

#[cfg(test)]
mod contention_tests;
#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod file_tests;
#[cfg(test)]
mod garbage_tests;
#[cfg(test)]
mod test_process;

use std::ffi::c_int;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use self::cells::read;
use self::clock::{Clock, HostClock};
use self::fault::Location;
use self::file::OpenFile;
use self::write::{Kept, WriteError};
use super::sql::cell::{Cell, Column, Rows};
use super::{Answer, Request};
use super::{Store, StoreError, Trouble};
use crate::sys::errno::Errno;
use crate::sys::file::open_plainly;
use crate::sys::limits;
use crate::sys::sqlite_files::{LOCKS, companion};
use crate::token::StoreTime;

/// How many pages the log has when a commit moves them to the database. Of 16, 64 and 200 pages of
/// 1, 2 and 4 KiB the whole cost of a run, including checkpoints and the next opener's reading, was
/// least at 64 pages of 4 KiB.
const LOG_PAGES: c_int = 64;

/// The size of a page in the log, with its header.
const LOG_PAGE_BYTES: u64 = 4_096 + 24;

/// The number of pages under a limit of the file size: a log of half that length leaves room for the commits
/// that do not checkpoint.
fn log_pages(file_size_limit: Option<u64>) -> c_int {
    let fitting = file_size_limit.map(|limit| limit / (2 * LOG_PAGE_BYTES));
    let fitting = fitting.and_then(|pages| c_int::try_from(pages).ok());
    fitting.map_or(LOG_PAGES, |pages| pages.min(LOG_PAGES))
}

/// The script that makes the tables, for an administrator.
pub const SCHEMA: &str = file::SCHEMA;

/// A token store in a SQLite file.
pub struct SqliteStore {
    // Dropped in this order: the connection before the mark that it is open.
    connection: Connection,
    file: OpenFile,
    location: Location,
    clock: Box<dyn Clock>,
    timeout: Duration,
    /// True if the connection is prepared for writing.
    writes: bool,
    /// The notifier of the ends of runs, while this session is in the queue.
    notifier: Option<notifier::LogWatch>,
    /// True if the next commit leaves a long log alone. The log's hook reads this.
    spares_log: Arc<AtomicBool>,
}

/// How a commit handles the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writing {
    /// Without a sync, and with a checkpoint if the log is long.
    State,
    /// With a sync, and without a checkpoint.
    History,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore")
            .field("location", &self.location)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the store in this file. A call waits at most `timeout` for a lock.
    ///
    /// A missing or empty file is made, with the directories on its path, for this user alone. An
    /// existing one is only read: for a look that will most likely be refused, open with a short
    /// time-out, read, and call [`Self::set_timeout`] before a swap.
    ///
    /// # Errors
    /// - [`super::Trouble::Misconfigured`]: the file is not a database, belongs to another program,
    ///   is damaged, has a schema that this program does not know, or is on a file system whose
    ///   locks can't be trusted;
    /// - [`super::Trouble::Denied`]: it can't be made, read or written;
    /// - [`super::Trouble::Locked`]: it is locked;
    /// - [`super::Trouble::Refused`]: the disk is full.
    pub fn open(path: &Path, timeout: Duration) -> Result<Self, StoreError> {
        Self::open_with_clock(path, timeout, Box::new(HostClock::new()))
    }

    /// Does what [`Self::open`] does, with another clock than the host's.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn open_with_clock(
        path: &Path,
        timeout: Duration,
        clock: Box<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let location = file::locate(path)?;
        let connect = |path: &Path| connect(path, timeout);
        let (connection, file) = file::open(&location, timeout, clock.as_ref(), connect)?;
        let mut store = Self {
            connection,
            file,
            location,
            clock,
            timeout,
            writes: false,
            notifier: None,
            spares_log: Arc::default(),
        };
        store.check_schema()?;
        if store.file.has_log {
            store.file.remember_beside(&store.location)?;
        }
        Ok(store)
    }

    /// Changes how long a call waits for a lock.
    ///
    /// # Errors
    /// If SQLite refuses it.
    pub fn set_timeout(&mut self, timeout: Duration) -> Result<(), StoreError> {
        self.timeout = timeout;
        self.connection
            .busy_timeout(timeout)
            .map_err(|error| self.fault("set the time-out", &error))
    }

    /// The directory beside the file, whether it exists or not, for the files of this store's users
    /// on this host: each of them finds it, however it was mounted.
    pub fn directory_beside(&self) -> PathBuf {
        companion(&self.location.path, LOCKS)
    }

    fn fault(&self, doing: &str, error: &rusqlite::Error) -> StoreError {
        self.location.sqlite(doing, error, self.timeout)
    }

    /// Prepares the connection for its first write.
    fn prepare(&mut self) -> Result<(), StoreError> {
        if self.writes {
            return Ok(());
        }
        self.keep_a_log()?;
        self.connection
            .execute_batch("PRAGMA synchronous = NORMAL")
            .and_then(|()| self.checkpoint_after_commits())
            .map_err(|error| self.fault("prepare a write", &error))?;
        self.writes = true;
        Ok(())
    }

    /// Sets WAL mode again, in case it was taken off the file. Without it the syncs described above
    /// do not hold.
    fn keep_a_log(&mut self) -> Result<(), StoreError> {
        if self.file.has_log {
            return Ok(());
        }
        let mode: String = self
            .connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
            .map_err(|error| self.fault("prepare a write", &error))?;
        if !mode.eq_ignore_ascii_case("wal") {
            return Err(self
                .location
                .misconfigured(format!(
                    "SQLite keeps its journal in mode {mode:?} and not in WAL"
                ))
                .remedy("set PRAGMA journal_mode = WAL with sqlite3, and see what it says"));
        }
        self.file.has_log = true;
        Ok(())
    }

    /// Does the work of `PRAGMA wal_autocheckpoint`, which would have to be parsed for each change.
    fn checkpoint_after_commits(&mut self) -> rusqlite::Result<()> {
        let spares_log = Arc::clone(&self.spares_log);
        let most = log_pages(limits::file_size());
        self.connection
            .wal_hook(Some(move |log: &mut Wal, pages: c_int| {
                if pages >= most && !spares_log.load(Ordering::Relaxed) {
                    // The commit has happened; a log that stays long does no harm.
                    let _ = log.checkpoint();
                }
                Ok(())
            }))
    }

    /// Runs `body` while no other process writes. Commits if `body` says so.
    fn write<T>(
        &mut self,
        writing: Writing,
        body: impl FnOnce(&Transaction<'_>, &Location, &StoreTime) -> Result<Kept<T>, WriteError>,
    ) -> Result<T, StoreError> {
        self.prepare()?;
        self.spares_log
            .store(writing == Writing::History, Ordering::Relaxed);
        let fault =
            |error: &rusqlite::Error| self.location.sqlite("write to it", error, self.timeout);
        let transaction =
            Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)
                .map_err(|error| fault(&error))?;
        // If there was no log when the file was opened: from here on there is one.
        self.file.remember_beside(&self.location)?;
        self.file.check_still_there(&self.location)?;
        let now = self.clock.now();
        let answer = body(&transaction, &self.location, &now).map_err(|error| match error {
            WriteError::Sqlite(error) => fault(&error),
            WriteError::Store(error) => error,
        })?;
        match answer {
            Kept::No(answer) => Ok(answer),
            Kept::Yes(answer) => {
                transaction.commit().map_err(|error| fault(&error))?;
                if writing == Writing::History {
                    self.sync_log()?;
                }
                Ok(answer)
            }
        }
    }

    /// Waits until the log is on the disk. The kernel reports a failed write once: a second sync
    /// would succeed without it, so this store is not asked again.
    fn sync_log(&self) -> Result<(), StoreError> {
        let log = companion(&self.location.path, "-wal");
        let synced = open_plainly(&log).and_then(|log| log.sync_data());
        synced.map_err(|error: io::Error| {
            let failed = self.location.io("sync", &log, &error);
            match Errno::of(&error) {
                Some(Errno::EIO) => failed.never_again().remedy(
                    "the disk is broken (dmesg), and a power cut may take what was written",
                ),
                _ => failed,
            }
        })
    }

    fn rows(&self, sql: &str, values: &[Cell], columns: &[Column]) -> Result<Rows, StoreError> {
        let rows = read(&self.connection, sql, values, columns);
        rows.map_err(|error| self.fault("read it", &error))
    }

    /// Starts a read-only transaction.
    fn reading(&self) -> Result<Transaction<'_>, StoreError> {
        self.file.check_still_there(&self.location)?;
        Transaction::new_unchecked(&self.connection, TransactionBehavior::Deferred)
            .map_err(|error| self.fault("read it", &error))
    }
}

/// A connection to a database that others may have written. A trigger or a view in it would be a program
/// of theirs, which this process would run.
fn connect(path: &Path, timeout: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(timeout)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    Ok(connection)
}

/// How long a call waits for a lock when its caller has no time.
const AT_ONCE: Duration = Duration::from_millis(20);

/// How long the record of a refusal waits for a lock: dozens of nodes of one host can be refused at once.
const TO_RECORD: Duration = Duration::from_millis(150);

impl Store for SqliteStore {
    fn name(&self) -> &str {
        &self.location.name
    }

    fn at_once(&mut self, request: &Request) -> Option<Answer> {
        let timeout = self.timeout;
        let patience = match request {
            Request::Refuse(_) => TO_RECORD,
            _ => AT_ONCE,
        };
        self.set_timeout(patience).ok()?;
        let answer = request.carry_out(self);
        self.set_timeout(timeout).ok()?;
        let locked = answer
            .error()
            .is_some_and(|error| error.trouble == Trouble::Locked);
        (!locked).then_some(answer)
    }
}
