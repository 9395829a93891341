//! The owner of the lock that a call has waited for in vain.
//!
//! The owner is looked up in `/proc/locks`. `F_GETLK` on the lock itself would need an open file,
//! and closing any descriptor of the file drops every lock that this process has on it, including
//! SQLite's.

use std::fmt;
use std::fs;
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::sys::sqlite_files::companion;

/// The bytes of the `-shm` file whose locks exclude writers: write, checkpoint,
/// recover. See "WAL-index locks" in SQLite's `walformat.html`.
const SHM_LOCKS: RangeInclusive<u64> = 120..=122;

/// The bytes of the database file whose locks exclude others where there is no
/// log yet: pending, reserved, shared. See `PENDING_BYTE` in SQLite's `os.h`.
const FILE_LOCKS: RangeInclusive<u64> = 0x4000_0000..=0x4000_01ff;

/// The kernel returns `/proc/locks` in pieces, and while many locks come and go a line can fall
/// between two of them.
const LOOKS: usize = 8;

/// The process that holds the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockOwner {
    pid: u32,
    name: String,
    stopped: bool,
}

impl fmt::Display for LockOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, name, .. } = self;
        if self.stopped {
            write!(
                f,
                "pid {pid} ({name}), which is stopped: continue it (kill -CONT {pid}) or end it"
            )
        } else {
            write!(f, "pid {pid} ({name}): end it if it hangs")
        }
    }
}

/// The process that keeps others from writing to a database. `None` if it is invisible: it has just
/// gone, or lives in another container.
pub(super) fn lock_owner(database: &Path) -> Option<LockOwner> {
    let inode_of = |path: &Path| fs::metadata(path).map(|found| found.ino()).ok();
    let shm = inode_of(&companion(database, "-shm"));
    let file = inode_of(database);
    let pid = (0..LOOKS).find_map(|_| {
        let locks = fs::read_to_string("/proc/locks").ok()?;
        shm.and_then(|inode| holder(&locks, inode, &SHM_LOCKS))
            .or_else(|| holder(&locks, file?, &FILE_LOCKS))
    })?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    Some(described(pid, stat.ok()))
}

/// The pid in the line `1: POSIX ADVISORY WRITE 4711 fe:00:1234 120 120` for one of these bytes;
/// see `proc_locks(5)`. The device is not compared: on Btrfs and overlayfs it differs from
/// `stat`'s.
fn holder(locks: &str, inode: u64, bytes: &RangeInclusive<u64>) -> Option<u32> {
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // The line of a waiting process has `->` in second place.
        let [_, "POSIX", _, "WRITE", pid, file, start, end] = words[..] else {
            return None;
        };
        let (_, found) = file.rsplit_once(':')?;
        let start: u64 = start.parse().ok()?;
        let end = end.parse().unwrap_or(u64::MAX);
        let overlaps = start <= *bytes.end() && end >= *bytes.start();
        let pid: u32 = pid.parse().ok()?;
        (overlaps && found.parse() == Ok(inode) && pid != 0).then_some(pid)
    })
}

/// The owner, from `PID (NAME) STATE …`; see `proc_pid_stat(5)`. The name can contain brackets.
fn described(pid: u32, stat: Option<String>) -> LockOwner {
    let stat = stat.unwrap_or_default();
    let parts = stat
        .split_once('(')
        .and_then(|(_, rest)| rest.rsplit_once(')'));
    let (name, rest) = parts.unwrap_or(("?", ""));
    LockOwner {
        pid,
        name: name.escape_default().to_string(),
        stopped: matches!(rest.trim_start().chars().next(), Some('T' | 't')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCKS: &str = "\
1: POSIX  ADVISORY  READ  11 fe:00:500 128 128
2: FLOCK  ADVISORY  WRITE 12 fe:00:500 0 EOF
3: POSIX  ADVISORY  WRITE 13 fe:00:501 120 120
4: POSIX  ADVISORY  WRITE 14 fe:00:500 120 120
4: -> POSIX  ADVISORY  WRITE 15 fe:00:500 120 120
5: POSIX  ADVISORY  WRITE 16 fe:00:502 1073741824 EOF
6: POSIX  ADVISORY  WRITE 0 fe:00:503 120 120
garbage
";

    #[test]
    fn the_writer_is_found_by_the_inode_and_the_byte() {
        assert_eq!(holder(LOCKS, 500, &SHM_LOCKS), Some(14));
        assert_eq!(holder(LOCKS, 501, &SHM_LOCKS), Some(13));
        assert_eq!(holder(LOCKS, 502, &FILE_LOCKS), Some(16));
        assert_eq!(holder(LOCKS, 502, &SHM_LOCKS), None);
        assert_eq!(holder(LOCKS, 503, &SHM_LOCKS), None, "another container's");
        assert_eq!(holder(LOCKS, 504, &SHM_LOCKS), None);
    }

    #[test]
    fn a_stopped_process_is_distinguished_from_a_running_one() {
        let stopped = described(7, Some("7 (a) b (c) T 1 7 7".into()));
        assert_eq!(
            stopped.to_string(),
            "pid 7 (a) b (c), which is stopped: continue it (kill -CONT 7) or end it"
        );
        let running = described(7, Some("7 (sqlite3) S 1 7 7".into()));
        assert_eq!(running.to_string(), "pid 7 (sqlite3): end it if it hangs");
        assert_eq!(
            described(7, None).to_string(),
            "pid 7 (?): end it if it hangs"
        );
    }
}
