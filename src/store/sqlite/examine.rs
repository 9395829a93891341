//! Examining a SQLite store for `doctor`. It writes nothing, and creates no store.

mod rules;

use std::fs::{self, File, Metadata};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Transaction, TransactionBehavior};

use self::rules::RULES;
use super::SqliteStore;
use super::clock::{Clock as _, HostClock};
use super::fault::Location;
use super::file::{SCHEMA_STEP, SCHEMA_VERSION, check_header, locate};
use super::lock_owner::lock_owner;
use super::schema::stored_version;
use crate::duration::rounded;
use crate::store::checkup::rules::{Facts, judge};
use crate::store::checkup::{Check, Tell, advice, directory};
use crate::store::{StoreError, Tokens as _, Trouble, filesystem};
use crate::sys::file::{self, Access};
use crate::sys::sqlite_files;
use crate::sys::sqlite_files::{LOCKS, companion};
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
        if let Err(check) = look(&path, &timing, group.as_ref(), &mut send) {
            send(check);
        }
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

/// A failed check ends the examination.
fn look(
    path: &Path,
    timing: &Timing,
    group: Option<&GroupName>,
    tell: &mut Tell<'_>,
) -> Result<(), Check> {
    let location = locate(path).map_err(|error| failed("path", &error))?;
    let parent = location.path.parent().unwrap_or(Path::new("/"));
    let found = fs::metadata(&location.path);
    tell(Check::fine("path", location.name.clone()));
    tell(on_file_system(&location, parent, found.is_ok()));
    let check = directory::of_database(parent);
    let is_writable = !check.failed();
    tell(check);
    if is_writable && parent.is_dir() {
        tell(directory::room(parent));
    }
    let mut facts = Facts::default();
    facts.set("epoch", HostClock::new().now().epoch);
    let clock = judge(RULES, "clock", &facts).into_iter();
    let found = match found {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let none = "there is none yet: the first run makes it";
            tell(Check::fine("file", none));
            clock.for_each(tell);
            return Ok(());
        }
        Err(error) => return Err(failed("file", &location.io("find", &location.path, &error))),
    };
    let check = file(&location, &found, &mut facts);
    let is_wrong = check.as_ref().is_none_or(Check::failed);
    check.into_iter().chain(clock).for_each(&mut *tell);
    tell(directory::locks(Some(&companion(&location.path, LOCKS))));
    if is_wrong || found.len() == 0 {
        return Ok(());
    }
    let is_logged = has_log(&location).map_err(|error| failed("format", &error))?;
    facts.flag("wal", is_logged);
    judge(RULES, "journal_mode", &facts)
        .into_iter()
        .for_each(&mut *tell);
    if in_database(&location, timing, &mut facts, tell)? {
        in_tables(&location, timing, group, tell);
    }
    Ok(())
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

fn file(location: &Location, found: &Metadata, facts: &mut Facts) -> Option<Check> {
    const STEP: &str = "file";
    facts.flag("other", !found.is_file());
    facts.set("names", found.nlink());
    if found.is_file()
        && found.nlink() <= 1
        && let Err(error) = location.check_companions()
    {
        return Some(failed(STEP, &error));
    }
    let owned = directory::owner(&location.path, found);
    let places = ["", "-wal", "-shm"].map(|end| companion(&location.path, end));
    let names = [
        "it",
        "the log beside it (-wal)",
        "the log's index beside it (-shm)",
    ];
    for (path, what) in places.iter().zip(names) {
        match file::check(path, Access::ReadAndWrite) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                let whose = fs::metadata(path).map(|found| directory::owner(path, &found));
                let whose = whose.unwrap_or_else(|_| owned.clone());
                let opened = directory::remedy_of(&error).unwrap_or(
                    "run as its owner, give it to this user (chown), or give another path",
                );
                let closed = format!("{what} can't be read and written: {error} ({whose})");
                facts.extend([("closed", &*closed), ("opened", opened)]);
                break;
            }
            _ => {}
        }
    }
    facts.set("owned", owned);
    facts.flag("empty", found.len() == 0);
    facts.flag("open", found.mode() & 0o002 != 0);
    facts.set("size", found.len() / 1024);
    judge(RULES, STEP, facts)
}

/// Checks the header, before SQLite touches the file: it is a store. `true`: it has a log (WAL).
fn has_log(location: &Location) -> Result<bool, StoreError> {
    // SQLite does not have the file open here: closing it would drop SQLite's locks.
    let opened =
        File::open(&location.path).map_err(|error| location.io("read", &location.path, &error));
    check_header(location, &mut opened?)
}

/// Checks with SQLite itself. `true`: this program can use the tables.
fn in_database(
    location: &Location,
    timing: &Timing,
    facts: &mut Facts,
    tell: &mut Tell<'_>,
) -> Result<bool, Check> {
    let limit = timing.store_timeout;
    let at = |step| {
        move |error: rusqlite::Error| failed(step, &location.sqlite("examine it", &error, limit))
    };
    sqlite_files::guard();
    let connection = super::connect(&location.path, limit).map_err(at("schema"))?;
    let stored = stored_version(&connection).map_err(at("schema"))?;
    let schema = schema(stored, facts);
    let serves =
        stored / SCHEMA_STEP >= SCHEMA_VERSION && !schema.as_ref().is_some_and(Check::failed);
    facts.extend(lock_owner(&location.path).map(|owner| ("owner", owner)));
    let writer = judge(RULES, "writer", facts);
    schema.into_iter().chain(writer).for_each(&mut *tell);
    let trips: rusqlite::Result<Vec<Duration>> = (0..SAMPLES)
        .map(|_| committed(&connection, location))
        .collect();
    tell(trips.map_or_else(at("writer"), |trips| {
        advice::round_trip("its lock and a page on the disk take", &trips, timing, 1)
    }));
    Ok(serves)
}

fn schema(stored: i64, facts: &mut Facts) -> Option<Check> {
    facts.set("version", stored / SCHEMA_STEP);
    facts.set("oldest_reader", stored % SCHEMA_STEP);
    facts.set("knows", SCHEMA_VERSION);
    judge(RULES, "schema", facts)
}

/// How long a commit takes: the lock, after which nothing is written, and a page.
fn committed(connection: &Connection, location: &Location) -> rusqlite::Result<Duration> {
    let begun = Instant::now();
    drop(Transaction::new_unchecked(
        connection,
        TransactionBehavior::Immediate,
    )?);
    let locked = begun.elapsed();
    Ok(locked + page_written(&location.path).unwrap_or_default())
}

/// How long a page takes to the disk, in an unnamed file beside the store. `None` where the file
/// system does not support such files.
fn page_written(path: &Path) -> Option<Duration> {
    let parent = path.parent()?;
    let mut file = file::create_unnamed_in(parent).ok()?;
    let begun = Instant::now();
    file.write_all(&PAGE).ok()?;
    file.sync_data().ok()?;
    Some(begun.elapsed())
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
            let check = schema(stored, &mut Facts::default()).unwrap();
            assert_eq!(check.verdict, verdict, "{stored}");
        }
    }

    #[test]
    fn the_texts_of_schemas_are_pinned() {
        let stored = [user_version(), 1_001, 9_001, 9_009, 0, -1_001];
        let cases = stored.map(|stored| {
            let check = schema(stored, &mut Facts::default());
            (stored.to_string(), check.into_iter().collect())
        });
        pin("sqlite_schema", cases);
    }
}
