//! What a file system keeps about an open file: statx(2).

use std::io;
use std::os::fd::AsFd;

use nix::libc;
use rustix::fs::{AtFlags, StatxFlags, statx};

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

impl Inode {
    /// That of an open file.
    ///
    /// # Errors
    /// What statx(2) says; it has no reason to.
    pub fn of(file: impl AsFd) -> io::Result<Self> {
        let wanted = StatxFlags::TYPE | StatxFlags::MODE | StatxFlags::INO | StatxFlags::BTIME;
        let found = statx(file, "", AtFlags::EMPTY_PATH, wanted)?;
        let has_birth = found.stx_mask & StatxFlags::BTIME.bits() != 0;
        let kind = u32::from(found.stx_mode) & libc::S_IFMT;
        Ok(Self {
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
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    #[test]
    fn it_says_what_stat_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "x").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let inode = Inode::of(File::open(&path).unwrap()).unwrap();
        assert_eq!(inode.number, fs::metadata(&path).unwrap().ino());
        assert_eq!((inode.mode, inode.is_file), (0o640, true));
        let directory = Inode::of(File::open(folder.path()).unwrap()).unwrap();
        assert!(!directory.is_file);
        assert_eq!(directory.device, inode.device);
    }
}
