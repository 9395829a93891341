//! What a file system keeps about a file: statx(2).

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use nix::libc;
use rustix::fs::{AtFlags, CWD, Statx, StatxFlags, statx};

/// What is asked for. The standard library asks for the birth time only where it is linked with glibc.
const WANTED: StatxFlags = StatxFlags::TYPE
    .union(StatxFlags::MODE)
    .union(StatxFlags::INO)
    .union(StatxFlags::BTIME);

/// A file, under any name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inode {
    /// The device that it lies on.
    pub device: Device,
    /// Its number there.
    pub number: u64,
    /// When it was made, where the file system keeps that. Nothing can set it.
    pub born: Option<Birth>,
    /// Its permissions.
    pub mode: u16,
    /// Whether it is a regular file.
    pub is_file: bool,
}

/// A device by its two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    pub major: u32,
    pub minor: u32,
}

/// A time since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Birth {
    pub seconds: i64,
    pub nanos: u32,
}

impl Birth {
    /// Nanoseconds since 1970; 0 before that.
    pub fn nanos_since_1970(self) -> u128 {
        let seconds = u128::try_from(self.seconds).unwrap_or_default();
        seconds * 1_000_000_000 + u128::from(self.nanos)
    }
}

impl Inode {
    /// That of an open file.
    ///
    /// # Errors
    /// What statx(2) says; it has no reason to.
    pub fn of(file: impl AsFd) -> io::Result<Self> {
        Ok(Self::read(&statx(file, "", AtFlags::EMPTY_PATH, WANTED)?))
    }

    /// That of the file with this path, behind links.
    ///
    /// # Errors
    /// What statx(2) says.
    pub fn at(path: &Path) -> io::Result<Self> {
        Ok(Self::read(&statx(CWD, path, AtFlags::empty(), WANTED)?))
    }

    fn read(found: &Statx) -> Self {
        let has_birth = found.stx_mask & StatxFlags::BTIME.bits() != 0;
        let kind = u32::from(found.stx_mode) & libc::S_IFMT;
        Self {
            device: Device {
                major: found.stx_dev_major,
                minor: found.stx_dev_minor,
            },
            number: found.stx_ino,
            born: has_birth.then_some(Birth {
                seconds: found.stx_btime.tv_sec,
                nanos: found.stx_btime.tv_nsec,
            }),
            mode: found.stx_mode & 0o7777,
            is_file: kind == libc::S_IFREG,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::time::SystemTime;

    #[test]
    fn it_says_what_stat_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "x").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let inode = Inode::of(File::open(&path).unwrap()).unwrap();
        assert_eq!(inode.number, fs::metadata(&path).unwrap().ino());
        assert_eq!((inode.mode, inode.is_file), (0o640, true));
        assert_eq!(Inode::at(&path).unwrap(), inode);
        // The standard library has no birth times with musl.
        if let Ok(born) = fs::metadata(&path).unwrap().created() {
            let since_1970 = born.duration_since(SystemTime::UNIX_EPOCH).unwrap();
            assert_eq!(
                inode.born.unwrap().nanos_since_1970(),
                since_1970.as_nanos()
            );
        }
        let directory = Inode::of(File::open(folder.path()).unwrap()).unwrap();
        assert!(!directory.is_file);
        assert_eq!(directory.device, inode.device);
    }
}
