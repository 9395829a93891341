//! A file without a name: it is gone when it is closed.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, memfd_create, openat};

/// Makes one for writing on the file system of this directory.
///
/// # Errors
/// What open(2) says of `O_TMPFILE`: EOPNOTSUPP where the file system has no such files.
pub fn create_in(directory: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(CWD, directory, flags, Mode::RUSR | Mode::WUSR)?;
    Ok(File::from(file))
}

/// Makes one in memory, for reading and writing. The name is for listings of descriptors.
///
/// # Errors
/// What memfd_create(2) says: out of descriptors or memory.
pub fn in_memory(name: &CStr) -> io::Result<File> {
    Ok(File::from(memfd_create(name, MemfdFlags::CLOEXEC)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn it_is_written_and_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = create_in(folder.path()).unwrap();
        file.write_all(b"x").unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
