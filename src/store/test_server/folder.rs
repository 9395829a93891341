//! The folders of the servers that tests start. The files of test servers name this one by its path.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::User;

/// What must be free in memory, in bytes: a suite starts some ten servers at a time, of up to 200 MB each.
const ROOM: u64 = 4 << 30;

/// A new folder for a server of this kind, which runs as this user, or as the test's own.
pub(super) fn create(kind: &str, servant: Option<&User>) -> PathBuf {
    create_in(&place(), kind, servant)
}

/// A new folder in `parent` for a server of this kind.
pub(super) fn create_in(parent: &Path, kind: &str, servant: Option<&User>) -> PathBuf {
    let folder = tempfile::Builder::new()
        .prefix(&format!("tokenrun-{kind}-"))
        .tempdir_in(parent)
        .unwrap()
        .keep();
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
    if let Some(user) = servant {
        chown(&folder, Some(user.uid.as_raw()), Some(user.gid.as_raw())).unwrap();
    }
    folder
}

/// Where folders are made. A server has a thousand files, and lives for seconds: a disk makes and removes them for a
/// third of the system's time, memory for next to none. Some servers load a library that is in their folder.
fn place() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let is_good = || -> nix::Result<bool> {
        let system = statfs(memory)?;
        // The types differ with the C library.
        #[allow(clippy::unnecessary_cast)]
        let free = system.blocks_available() as u64 * system.block_size() as u64;
        let flags = statvfs(memory)?.flags();
        Ok(system.filesystem_type() == TMPFS_MAGIC
            && free >= ROOM
            && !flags.contains(FsFlags::ST_NOEXEC))
    };
    match is_good() {
        Ok(true) => memory.to_owned(),
        _ => std::env::temp_dir(),
    }
}
