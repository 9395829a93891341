//! Which file systems a file with locks in it may lie on.
//!
//! SQLite's exclusion is POSIX locks and memory that processes share by mapping
//! a file. On a network or user-space file system one or the other may bind on
//! one host only, or not at all, and then two nodes both hold the token. So
//! there is an allow list, and everything unknown is refused.

use std::path::Path;

use nix::sys::statfs::{Statfs, statfs};

use super::StoreError;

/// A file system, by the magic number that `statfs(2)` gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSystem {
    magic: u32,
}

/// What is known about a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Its locks and shared mappings hold for every process of the host.
    Local(&'static str),
    /// Its locks or shared mappings can't be trusted.
    Untrusted(&'static str),
    /// Nothing.
    Nothing,
}

const OVERLAY: u32 = 0x794c_7630;

/// The magic numbers are those of Linux's `include/uapi/linux/magic.h`, and for
/// what lies outside of it those of the file system's own source.
const fn known(magic: u32) -> Known {
    match magic {
        0xef53 => Known::Local("ext2, ext3 or ext4"),
        0x5846_5342 => Known::Local("XFS"),
        0x9123_683e => Known::Local("Btrfs"),
        0x2fc1_2fc1 => Known::Local("ZFS"),
        0xf2f5_2010 => Known::Local("F2FS"),
        0x0102_1994 => Known::Local("tmpfs"),
        OVERLAY => Known::Local("overlayfs"),
        0x6969 => Known::Untrusted("NFS"),
        0xff53_4d42 | 0xfe53_4d42 => Known::Untrusted("CIFS/SMB"),
        0x517b => Known::Untrusted("SMB"),
        0x6573_5546 => Known::Untrusted("FUSE or virtiofs"),
        0x0102_1997 => Known::Untrusted("9p"),
        0x00c3_6400 => Known::Untrusted("Ceph"),
        0x0116_1970 => Known::Untrusted("GFS2"),
        0x7461_636f => Known::Untrusted("OCFS2"),
        0x5346_414f => Known::Untrusted("AFS"),
        0x6b41_4653 => Known::Untrusted("kAFS"),
        0x0bd0_0bd0 => Known::Untrusted("Lustre"),
        0x4750_4653 => Known::Untrusted("GPFS"),
        0x786f_4256 => Known::Untrusted("VirtualBox shared folders"),
        0x4d44 => Known::Untrusted("FAT"),
        0x2011_bab0 => Known::Untrusted("exFAT"),
        0x7366_746e => Known::Untrusted("NTFS"),
        0xca45_1a4e => Known::Untrusted("bcachefs"),
        0x8584_58f6 => Known::Untrusted("ramfs"),
        0x9fa0 => Known::Untrusted("procfs"),
        _ => Known::Nothing,
    }
}

impl FileSystem {
    /// The file system that a path, which must exist, lies on.
    fn of(found: &Statfs) -> Self {
        // The kernel's number has 32 bits; its C type is signed on some platforms.
        let magic = found.filesystem_type().0 as u32;
        Self { magic }
    }

    /// Whether it is the overlay file system: that of a container's own layer,
    /// which no other container sees.
    #[must_use]
    pub const fn is_overlay(self) -> bool {
        self.magic == OVERLAY
    }

    /// Nothing, or why a store must not lie on it, to be read after the path.
    fn objection(self) -> Option<String> {
        let name = match known(self.magic) {
            Known::Local(_) => return None,
            Known::Untrusted(name) => name.to_owned(),
            Known::Nothing => format!("an unknown file system (magic number {:#x})", self.magic),
        };
        Some(format!(
            "lies on {name}, whose locks and shared memory can't be trusted to exclude others; \
             put it on a local file system (ext4, XFS, Btrfs, ZFS, F2FS, tmpfs), \
             or use --store postgres://… for several hosts"
        ))
    }
}

fn ask(path: &Path) -> Result<Statfs, StoreError> {
    statfs(path).map_err(|errno| {
        let message = format!("{}: can't tell its file system: {errno}", path.display());
        match errno {
            nix::Error::EACCES => StoreError::denied(format!("{message}; let this user search it")),
            nix::Error::ENOENT | nix::Error::ENOTDIR => StoreError::misconfigured(message),
            _ => StoreError::unavailable(message),
        }
    })
}

/// Checks that a store may lie in this directory, which must exist.
///
/// # Errors
/// [`super::Trouble::Misconfigured`] names the path, the file system, why it is
/// refused and what to do.
pub fn check(directory: &Path) -> Result<FileSystem, StoreError> {
    judge(directory, &ask(directory)?)
}

fn judge(path: &Path, found: &Statfs) -> Result<FileSystem, StoreError> {
    let file_system = FileSystem::of(found);
    match file_system.objection() {
        None => Ok(file_system),
        Some(why) => Err(StoreError::misconfigured(format!(
            "{} {why}",
            path.display()
        ))),
    }
}

/// Checks that a file and its directory are of one file system that a store
/// may lie on. A file that is mounted by itself, as containers do, has other
/// companions in each of them: each would think that it is alone.
///
/// # Errors
/// As [`check`], and for a file that is mounted by itself.
pub fn check_file(file: &Path, directory: &Path) -> Result<FileSystem, StoreError> {
    let (of_file, of_directory) = (ask(file)?, ask(directory)?);
    judge(directory, &of_directory)?;
    let checked = judge(file, &of_file)?;
    let one = FileSystem::of(&of_directory) == checked
        && of_file.filesystem_id() == of_directory.filesystem_id();
    if one && mount_of(file) == mount_of(directory) {
        return Ok(checked);
    }
    Err(StoreError::misconfigured(format!(
        "{} is mounted by itself, so that the log and the locks beside it are another \
         container's own; mount its directory instead",
        file.display()
    )))
}

/// The mount that a path lies on; `None` if the kernel (before 5.8) does not tell.
fn mount_of(path: &Path) -> Option<u64> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    let found = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
    let told = found.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    told.then_some(found.stx_mnt_id)
}

/// Whether a path that exists lies on the overlay file system.
///
/// # Errors
/// If its file system can't be told.
pub fn is_overlay(path: &Path) -> Result<bool, StoreError> {
    Ok(FileSystem::of(&ask(path)?).is_overlay())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Trouble;

    fn objection(magic: u32) -> Option<String> {
        FileSystem { magic }.objection()
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
            OVERLAY,
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
    fn what_nobody_has_heard_of_is_refused_by_number() {
        let why = objection(0x1234_5678).unwrap();
        assert!(why.contains("0x12345678"), "{why}");
    }

    #[test]
    fn a_path_on_procfs_is_refused_with_its_name() {
        let error = check(Path::new("/proc")).unwrap_err();
        assert_eq!(error.trouble, Trouble::Misconfigured);
        assert!(error.message.starts_with("/proc lies on procfs"), "{error}");
        assert!(!is_overlay(Path::new("/proc")).unwrap());
    }

    #[test]
    fn a_path_that_does_not_exist_has_no_file_system() {
        let error = check(Path::new("/no/such/path")).unwrap_err();
        assert_eq!(error.trouble, Trouble::Misconfigured);
    }
}
