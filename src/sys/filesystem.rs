//! The known file systems, and whose locks hold for every process of the host.

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use nix::sys::statfs::{Statfs, fstatfs, statfs};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::errno::Errno;

/// A file system, by the magic number that `statfs(2)` gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSystem {
    magic: u32,
}

/// What is known about a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Locks and shared mappings hold for every process of the host.
    Local(&'static str),
    /// Locks or shared mappings can't be trusted.
    Untrusted(&'static str),
    Nothing,
}

const OVERLAY: u32 = 0x794c_7630;

const PROC: u32 = 0x9fa0;

/// The magic numbers come from Linux's `include/uapi/linux/magic.h`, and for other file systems
/// from their own source.
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
        PROC => Known::Untrusted("procfs"),
        _ => Known::Nothing,
    }
}

impl FileSystem {
    /// The file system with this magic number.
    pub const fn from_magic(magic: u32) -> Self {
        Self { magic }
    }

    fn of(found: &Statfs) -> Self {
        // The kernel's number has 32 bits; its C type is signed on some platforms.
        Self::from_magic(found.filesystem_type().0 as u32)
    }

    /// The file system that a path lies on.
    ///
    /// # Errors
    /// What statfs(2) says: ENOENT if there is no such path.
    pub fn of_path(path: &Path) -> Result<Self, Errno> {
        Ok(Self::of(&statfs(path)?))
    }

    /// The file system that an open file lies on.
    pub fn of_file(file: impl AsFd) -> io::Result<Self> {
        Ok(Self::of(&fstatfs(file)?))
    }

    /// True if it is the overlay file system: that of a container's own layer,
    /// which no other container sees.
    pub const fn is_overlay(self) -> bool {
        self.magic == OVERLAY
    }

    /// True if it is procfs, whose links lead to what is open.
    pub const fn is_procfs(self) -> bool {
        self.magic == PROC
    }

    /// True if its locks and shared mappings hold for every process of the host. An unknown file
    /// system is not trusted.
    pub const fn is_local(self) -> bool {
        matches!(known(self.magic), Known::Local(_))
    }
}

/// The name; the number of an unknown one.
impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match known(self.magic) {
            Known::Local(name) | Known::Untrusted(name) => f.write_str(name),
            Known::Nothing => write!(f, "an unknown file system (magic number {:#x})", self.magic),
        }
    }
}

/// A file system that is there: of two of one kind this tells which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Volume {
    /// Which kind it is of.
    pub kind: FileSystem,
    id: nix::sys::statfs::fsid_t,
}

impl Volume {
    /// The one that a path lies on.
    pub fn of_path(path: &Path) -> Result<Self, Errno> {
        let found = statfs(path)?;
        Ok(Self {
            kind: FileSystem::of(&found),
            id: found.filesystem_id(),
        })
    }
}

/// The number of the mount that a path lies on; `None` if the kernel (before 5.8) does not
/// tell.
pub fn mount_of(path: &Path) -> Option<u64> {
    let found = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
    let known = found.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    known.then_some(found.stx_mnt_id)
}
