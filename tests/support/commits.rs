//! The commits to an SQLite store, one after the other. The product runs no trigger, so the
//! write-ahead log is what shows each of them.

use std::fs;
use std::path::PathBuf;

use rusqlite::{Connection, Row};

/// The sizes of the log's header and of a frame's, as <https://www.sqlite.org/fileformat2.html> gives them.
const HEADER: usize = 32;
const FRAME: usize = 24;

/// The commits from its making on. Its reading transaction keeps the log from being started anew over them.
pub(crate) struct Commits {
    database: PathBuf,
    reader: Connection,
    /// The salts of the log, and the lengths of it after each commit, when this was made.
    before: Log,
}

/// What the log consists of.
struct Log {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Commits {
    pub(crate) fn from_now(database: PathBuf, reader: Connection) -> Self {
        let count = "BEGIN; SELECT count(*) FROM sqlite_schema";
        reader.execute_batch(count).unwrap();
        let before = Log::of(&database);
        Self {
            database,
            reader,
            before,
        }
    }

    /// The first row of a query, as it was when this was made and after each commit since.
    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Vec<T> {
        let first = self.reader.query_row(sql, [], &read).unwrap();
        let log = Log::of(&self.database);
        let seen = if log.salts() == self.before.salts() {
            self.before.ends.len()
        } else {
            0
        };
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        let later = log.ends[seen..].iter().map(|end| {
            fs::copy(&self.database, &copy).unwrap();
            fs::write(folder.path().join("copy-wal"), &log.bytes[..*end]).unwrap();
            let copy = Connection::open(&copy).unwrap();
            copy.query_row(sql, [], &read).unwrap()
        });
        std::iter::once(first).chain(later).collect()
    }
}

impl Log {
    fn of(database: &std::path::Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        let bytes = fs::read(path).unwrap();
        let mut log = Self {
            bytes,
            ends: vec![],
        };
        if log.bytes.len() < HEADER {
            return log;
        }
        let frame = FRAME + number(&log.bytes[8..12]);
        let mut end = HEADER;
        for whole in log.bytes[HEADER..].chunks_exact(frame) {
            // What is left of an earlier log has other salts.
            if whole[8..16] != *log.salts() {
                break;
            }
            end += frame;
            if number(&whole[4..8]) > 0 {
                log.ends.push(end);
            }
        }
        log
    }

    fn salts(&self) -> &[u8] {
        self.bytes.get(16..24).unwrap_or_default()
    }
}

fn number(bytes: &[u8]) -> usize {
    u32::from_be_bytes(bytes.try_into().unwrap()) as usize
}
