//! What this process may do with a path.

use std::io;
use std::path::Path;

use rustix::fs::{Access as Rights, AtFlags, CWD, accessat};

/// What is to be done with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read and write the file.
    ReadAndWrite,
    /// Make files in the directory.
    MakeFiles,
}

impl Access {
    const fn rights(self) -> Rights {
        match self {
            Self::ReadAndWrite => Rights::READ_OK.union(Rights::WRITE_OK),
            Self::MakeFiles => Rights::WRITE_OK.union(Rights::EXEC_OK),
        }
    }
}

/// Whether this process, as the user that it acts as, may do this with a path.
///
/// # Errors
/// Why not: what faccessat(2) says.
pub fn check(path: &Path, access: Access) -> io::Result<()> {
    Ok(accessat(CWD, path, access.rights(), AtFlags::EACCESS)?)
}

/// The same as the user that started this process.
///
/// # Errors
/// As [`check`].
pub fn check_as_real_user(path: &Path, access: Access) -> io::Result<()> {
    Ok(rustix::fs::access(path, access.rights())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_may_be_used_and_what_is_not_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let missing = check(&file, Access::ReadAndWrite).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        std::fs::write(&file, "x").unwrap();
        check(&file, Access::ReadAndWrite).unwrap();
        check(folder.path(), Access::MakeFiles).unwrap();
        check_as_real_user(&file, Access::ReadAndWrite).unwrap();
    }
}
