//! The file systems that a file with locks may lie on.
//!
//! SQLite's exclusion is POSIX locks and memory that processes share by mapping
//! a file. On a network or user-space file system one or the other may bind on
//! one host only, or not at all, and then two nodes both hold the token. So
//! there is an allow list, and everything unknown is refused.

use std::path::Path;

use super::StoreError;
use crate::sys::errno::Errno;
use crate::sys::filesystem::{FileSystem, Volume, mount_of};

/// The reason why a store must not lie on it, if there is one; reads after the path.
fn objection(file_system: FileSystem) -> Option<String> {
    (!file_system.is_local()).then(|| {
        format!(
            "lies on {file_system}, whose locks and shared memory can't be trusted to exclude \
             others; put it on a local file system (ext4, XFS, Btrfs, ZFS, F2FS, tmpfs), \
             or use --store postgres://…, mysql://… or redis://… for several hosts"
        )
    })
}

fn ask(path: &Path) -> Result<Volume, StoreError> {
    Volume::of_path(path).map_err(|errno| {
        let what = format!("{}: can't tell its file system: {errno}", path.display());
        match errno {
            Errno::EACCES => StoreError::denied(what).remedy("let this user search it"),
            Errno::ENOENT | Errno::ENOTDIR => StoreError::misconfigured(what),
            _ => StoreError::unavailable(what),
        }
    })
}

/// Checks that a store may lie in this directory, which must exist.
///
/// # Errors
/// [`super::Trouble::Misconfigured`] names the path, the file system, why it is
/// refused and what to do.
pub fn check(directory: &Path) -> Result<FileSystem, StoreError> {
    judge(directory, ask(directory)?.kind)
}

fn judge(path: &Path, file_system: FileSystem) -> Result<FileSystem, StoreError> {
    match objection(file_system) {
        None => Ok(file_system),
        Some(why) => Err(StoreError::misconfigured(format!(
            "{} {why}",
            path.display()
        ))),
    }
}

/// Checks that a file and its directory are on one file system, and that a store may lie there. A
/// file that is mounted by itself, as containers do, has separate companion files in each
/// container: each process would run unguarded.
///
/// # Errors
/// Those of [`check`], and a file that is mounted by itself.
pub fn check_file(file: &Path, directory: &Path) -> Result<FileSystem, StoreError> {
    let (of_file, of_directory) = (ask(file)?, ask(directory)?);
    judge(directory, of_directory.kind)?;
    let checked = judge(file, of_file.kind)?;
    if of_file == of_directory && mount_of(file) == mount_of(directory) {
        return Ok(checked);
    }
    Err(StoreError::misconfigured(format!(
        "{} is mounted by itself, so that the log and the locks beside it are another container's own",
        file.display()
    )).remedy("mount its directory instead"))
}

/// True if a path that exists lies on the overlay file system.
///
/// # Errors
/// If its file system is unknown.
pub fn is_overlay(path: &Path) -> Result<bool, StoreError> {
    Ok(ask(path)?.kind.is_overlay())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Trouble;

    fn objection(magic: u32) -> Option<String> {
        super::objection(FileSystem::from_magic(magic))
    }

    #[test]
    fn local_file_systems_are_allowed() {
        for magic in [
            0xef53,
            0x5846_5342,
            0x9123_683e,
            0x2fc1_2fc1,
            0xf2f5_2010,
            0x0102_1994,
            0x794c_7630,
        ] {
            assert_eq!(objection(magic), None, "{magic:#x}");
        }
    }

    #[test]
    fn others_are_refused_by_name() {
        for (magic, name) in [
            (0x6969, "NFS"),
            (0xff53_4d42, "CIFS/SMB"),
            (0x6573_5546, "FUSE or virtiofs"),
            (0x0102_1997, "9p"),
            (0x00c3_6400, "Ceph"),
            (0x0116_1970, "GFS2"),
            (0x7461_636f, "OCFS2"),
        ] {
            let why = objection(magic).unwrap();
            assert!(why.starts_with(&format!("lies on {name}, whose")), "{why}");
            assert!(why.contains("postgres://"), "{why}");
        }
    }

    #[test]
    fn an_unknown_file_system_is_refused_by_number() {
        let why = objection(0x1234_5678).unwrap();
        assert!(why.contains("0x12345678"), "{why}");
    }

    #[test]
    fn a_path_on_procfs_is_refused_with_its_name() {
        let error = check(Path::new("/proc")).unwrap_err();
        assert_eq!(error.trouble, Trouble::Misconfigured);
        assert!(
            error.to_string().starts_with("/proc lies on procfs"),
            "{error}"
        );
        assert!(!is_overlay(Path::new("/proc")).unwrap());
    }

    #[test]
    fn a_path_that_does_not_exist_has_no_file_system() {
        let error = check(Path::new("/no/such/path")).unwrap_err();
        assert_eq!(error.trouble, Trouble::Misconfigured);
    }
}
