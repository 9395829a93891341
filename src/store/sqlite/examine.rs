//! Examining a SQLite store for `doctor`. It writes nothing, and creates no store.

use std::fs::{self, File, Metadata};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::SqliteStore;
use super::clock::{Clock as _, HostClock};
use super::companion::companion;
use super::fault::Location;
use super::file::{SCHEMA_STEP, SCHEMA_VERSION, check_header, locate};
use super::lock_owner::lock_owner;
use super::schema::stored_version;
use crate::duration::rounded;
use crate::store::checkup::{Check, Tell, advice, directory};
use crate::store::{StoreError, Tokens as _, Trouble, filesystem};
use crate::sys::access::{self, Access};
use crate::sys::sqlite_files;
use crate::sys::unnamed_file;
use crate::token::{GroupName, Timing};

/// How often the lock is taken, and a page written.
const SAMPLES: usize = 10;

const PAGE: [u8; 4096] = [0; 4096];

/// Examines the store in this file.
pub fn examine(path: &Path, timing: &Timing, group: Option<&GroupName>, tell: &mut Tell<'_>) {
    let (sender, receiver) = mpsc::channel();
    let (path, timing, group) = (path.to_owned(), *timing, group.cloned());
    let asked = timing.store_timeout;
    // A file system that hangs must not hang the examination: the thread is left behind.
    let looking = thread::Builder::new().spawn(move || {
        let mut send = |check| drop(sender.send(check));
        look(&path, &timing, group.as_ref(), &mut send);
        send(advice::timing(&timing, false));
    });
    if let Err(error) = looking {
        let found = format!("no thread could be started: {error}");
        tell(Check::fail(
            "path",
            Trouble::Unavailable,
            found,
            "end other processes",
        ));
        return;
    }
    // A wait for a lock has its own time-out, and ends before.
    let limit = asked.saturating_mul(2);
    loop {
        match receiver.recv_timeout(limit) {
            Ok(check) => tell(check),
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                tell(Check::fail(
                    "answer",
                    Trouble::Unavailable,
                    format!("the file system did not answer within {}", rounded(limit)),
                    "check the disk (dmesg), and what else uses it",
                ));
                return;
            }
        }
    }
}

fn failed(step: &'static str, error: &StoreError) -> Check {
    let remedy = error.remedy.as_deref();
    let remedy = remedy.unwrap_or("give another path with --store");
    Check::fail(step, error.trouble, error.what.as_str(), remedy)
}

/// `None` ends the examination: the failed check has been reported.
fn look(
    path: &Path,
    timing: &Timing,
    group: Option<&GroupName>,
    tell: &mut Tell<'_>,
) -> Option<()> {
    let report = |result: Result<Location, StoreError>, tell: &mut Tell<'_>| match result {
        Ok(location) => Some(location),
        Err(error) => {
            tell(failed("path", &error));
            None
        }
    };
    let location = report(locate(path), tell)?;
    let parent = location.path.parent().unwrap_or(Path::new("/")).to_owned();
    let found = fs::metadata(&location.path);
    tell(Check::fine("path", location.name.clone()));
    tell(on_file_system(&location, &parent, found.is_ok()));
    let check = directory::of_database(&parent);
    let is_writable = !matches!(check.verdict, crate::store::checkup::Verdict::Fail(_));
    tell(check);
    if is_writable && parent.is_dir() {
        tell(directory::room(&parent));
    }
    let found = match found {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            tell(Check::fine(
                "file",
                "there is none yet: the first run makes it",
            ));
            tell(host_clock());
            return None;
        }
        Err(error) => {
            tell(failed("file", &location.io("find", &location.path, &error)));
            return None;
        }
    };
    let check = file(&location, &found);
    let is_wrong = matches!(check.verdict, crate::store::checkup::Verdict::Fail(_));
    tell(check);
    tell(host_clock());
    tell(directory::locks(Some(&companion(&location.path, "-locks"))));
    if is_wrong || found.len() == 0 {
        return None;
    }
    if !format(&location, tell)? {
        return None;
    }
    let serves = in_database(&location, timing, tell)?;
    if serves {
        in_tables(&location, timing, group, tell);
    }
    Some(())
}

fn on_file_system(location: &Location, parent: &Path, is_there: bool) -> Check {
    const STEP: &str = "file_system";
    let existing = parent.ancestors().find(|path| path.exists());
    let existing = existing.unwrap_or(Path::new("/"));
    let checked = if is_there {
        filesystem::check_file(&location.path, parent)
    } else {
        filesystem::check(existing)
    };
    match checked {
        Err(error) => failed(STEP, &error),
        Ok(file_system) if file_system.is_overlay() => Check::warn(
            STEP,
            format!("{file_system}: it excludes only runs in this container"),
            "mount a directory of the host, or use --store postgres://… or mysql://…",
        ),
        Ok(file_system) => Check::fine(STEP, format!("{file_system}, which is local")),
    }
}

fn file(location: &Location, found: &Metadata) -> Check {
    const STEP: &str = "file";
    let misconfigured = Trouble::Misconfigured;
    if !found.is_file() {
        return Check::fail(
            STEP,
            misconfigured,
            "this is not a file but a directory, a device or a socket",
            "give the path of a file",
        );
    }
    if found.nlink() > 1 {
        let found = format!(
            "it has {} names (hard links), and a log and locks for each",
            found.nlink()
        );
        return Check::fail(
            STEP,
            misconfigured,
            found,
            "remove all but one, or use symbolic links",
        );
    }
    if let Err(error) = location.check_companions() {
        return failed(STEP, &error);
    }
    let owned = directory::owner(&location.path, found);
    for (path, what) in [
        (location.path.clone(), "it"),
        (
            companion(&location.path, "-wal"),
            "the log beside it (-wal)",
        ),
        (
            companion(&location.path, "-shm"),
            "the log's index beside it (-shm)",
        ),
    ] {
        match access::check(&path, Access::ReadAndWrite) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                let whose = fs::metadata(&path).map(|found| directory::owner(&path, &found));
                let whose = whose.unwrap_or_else(|_| owned.clone());
                return Check::fail(
                    STEP,
                    Trouble::Denied,
                    format!("{what} can't be read and written: {error} ({whose})"),
                    directory::remedy_of(&error).unwrap_or(
                        "run as its owner, give it to this user (chown), or give another path",
                    ),
                );
            }
        }
    }
    if found.len() == 0 {
        return Check::fine(STEP, "it is empty: the first run makes a store of it");
    }
    if found.mode() & 0o002 != 0 {
        let found = format!("{owned}; every user may write to it");
        return Check::warn(STEP, found, "chmod o-w");
    }
    Check::fine(STEP, format!("{owned}, {} KiB", found.len() / 1024))
}

fn host_clock() -> Check {
    const STEP: &str = "clock";
    let epoch = HostClock::new().now().epoch.to_string();
    if epoch.starts_with("boot:") {
        return Check::fine(
            STEP,
            format!("CLOCK_BOOTTIME, {epoch}: a step of the wall clock changes nothing"),
        );
    }
    Check::warn(
        STEP,
        "this boot, or what a time namespace adds to its clock, is unknown: no age is compared, and each is \
         waited for instead",
        "mount /proc for this process",
    )
}

/// Checks the header, before SQLite touches the file. Whether it is a tokenrun store.
fn format(location: &Location, tell: &mut Tell<'_>) -> Option<bool> {
    const STEP: &str = "journal_mode";
    // SQLite does not have the file open here: closing it would drop SQLite's locks.
    let opened =
        File::open(&location.path).map_err(|error| location.io("read", &location.path, &error));
    match opened.and_then(|mut file| check_header(location, &mut file)) {
        Err(error) => {
            tell(failed("format", &error));
            None
        }
        Ok(true) => {
            tell(Check::fine(STEP, "wal, as it should be"));
            Some(true)
        }
        Ok(false) => {
            tell(Check::warn(
                STEP,
                "the log (WAL) was taken off the file",
                "nothing: the next write of a run puts it back; find out who did it",
            ));
            Some(true)
        }
    }
}

/// Checks with SQLite itself. Whether this program can use the tables.
fn in_database(location: &Location, timing: &Timing, tell: &mut Tell<'_>) -> Option<bool> {
    let limit = timing.store_timeout;
    let report = |step: &'static str, error: &rusqlite::Error, tell: &mut Tell<'_>| {
        tell(failed(step, &location.sqlite("examine it", error, limit)));
    };
    let connection = match open(&location.path, limit) {
        Ok(connection) => connection,
        Err(error) => {
            report("schema", &error, tell);
            return None;
        }
    };
    let serves = match stored_version(&connection) {
        Ok(stored) => {
            let check = schema(stored);
            let serves = stored / SCHEMA_STEP >= SCHEMA_VERSION
                && !matches!(check.verdict, crate::store::checkup::Verdict::Fail(_));
            tell(check);
            serves
        }
        Err(error) => {
            report("schema", &error, tell);
            return None;
        }
    };
    match lock_owner(&location.path) {
        Some(owner) => tell(Check::fine(
            "writer",
            format!("at this moment it is {owner}"),
        )),
        None => tell(Check::fine(
            "writer",
            "no process is writing at this moment",
        )),
    }
    let mut trips = Vec::new();
    for _ in 0..SAMPLES {
        let begun = Instant::now();
        match Transaction::new_unchecked(&connection, TransactionBehavior::Immediate) {
            // Dropped: nothing was written.
            Ok(transaction) => drop(transaction),
            Err(error) => {
                report("writer", &error, tell);
                return Some(serves);
            }
        }
        let locked = begun.elapsed();
        trips.push(locked + page_written(&location.path).unwrap_or_default());
    }
    tell(advice::round_trip(
        "its lock and a page on the disk take",
        &trips,
        timing,
        1,
    ));
    Some(serves)
}

fn open(path: &Path, limit: Duration) -> rusqlite::Result<Connection> {
    sqlite_files::guard();
    super::connect(path, limit)
}

/// How long a page takes to the disk, in an unnamed file beside the store. `None` where the file
/// system does not support such files.
fn page_written(path: &Path) -> Option<Duration> {
    let parent = path.parent()?;
    let mut file = unnamed_file::create_in(parent).ok()?;
    let begun = Instant::now();
    file.write_all(&PAGE).ok()?;
    file.sync_data().ok()?;
    Some(begun.elapsed())
}

fn schema(stored: i64) -> Check {
    const STEP: &str = "schema";
    let misconfigured = Trouble::Misconfigured;
    let (version, oldest_reader) = (stored / SCHEMA_STEP, stored % SCHEMA_STEP);
    let found = format!("version {version}, and this tokenrun knows {SCHEMA_VERSION}");
    match version {
        SCHEMA_VERSION => Check::fine(STEP, found),
        ..=0 => Check::fail(
            STEP,
            misconfigured,
            format!("{found}: no tokenrun ever made that"),
            "move the file away, or put a backup back",
        ),
        older if older < SCHEMA_VERSION => {
            Check::fine(STEP, format!("{found}; the next run adds what is new"))
        }
        _ if oldest_reader <= SCHEMA_VERSION => Check::fine(STEP, found),
        _ => Check::fail(
            STEP,
            misconfigured,
            format!("{found}; it is for programs that know version {oldest_reader}"),
            "install a newer tokenrun",
        ),
    }
}

/// Reads the tables as a run would.
fn in_tables(location: &Location, timing: &Timing, group: Option<&GroupName>, tell: &mut Tell<'_>) {
    const STEP: &str = "tokens";
    let opened = SqliteStore::open(&location.path, timing.store_timeout);
    let listed = opened.and_then(|mut store| Ok((store.list()?, store)));
    let (listing, mut store) = match listed {
        Ok(found) => found,
        Err(error) => {
            tell(failed(STEP, &error));
            return;
        }
    };
    match listing.unreadable.first() {
        Some(bad) => tell(failed(STEP, &bad.error)),
        None => tell(Check::fine(
            STEP,
            format!("groups: {}, all can be read", listing.rows.len()),
        )),
    }
    if let Some(name) = group {
        tell(match store.read(name) {
            Ok(reading) => advice::group(name, reading.row.as_ref(), timing),
            Err(error) => failed("group", &error),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::user_version;
    use super::*;
    use crate::store::checkup::Verdict;
    use crate::store::checkup::pinned::pin;

    #[test]
    fn schemas_are_judged_by_their_oldest_reader() {
        for (stored, verdict) in [
            (user_version(), Verdict::Fine),
            (1_001, Verdict::Fine),
            (9_001, Verdict::Fine),
            (9_009, Verdict::Fail(Trouble::Misconfigured)),
            (0, Verdict::Fail(Trouble::Misconfigured)),
            (-1_001, Verdict::Fail(Trouble::Misconfigured)),
            (i64::MIN, Verdict::Fail(Trouble::Misconfigured)),
        ] {
            assert_eq!(schema(stored).verdict, verdict, "{stored}");
        }
    }

    #[test]
    fn the_texts_of_schemas_are_pinned() {
        let stored = [user_version(), 1_001, 9_001, 9_009, 0, -1_001];
        let cases = stored.map(|stored| (stored.to_string(), vec![schema(stored)]));
        pin("sqlite_schema", cases);
    }
}
