//! Files: what statx(2) says of one, what this process may do with a path, how a path of another user's is
//! opened, and files without a name, which are gone when they are closed.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::libc;
use rustix::fs::{
    Access as Rights, AtFlags, CWD, MemfdFlags, Mode, OFlags, Statx, StatxFlags, accessat,
    memfd_create, openat, statx,
};
use rustix::path::Arg;

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
    /// The number of the inode on its device.
    pub number: u64,
    /// When it was made, where the file system keeps that. Nothing can set it.
    pub born: Option<Birth>,
    /// The permissions.
    pub mode: u16,
    /// True if it is a regular file.
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
    /// Reads an open file.
    pub fn of(file: impl AsFd) -> io::Result<Self> {
        Ok(Self::read(&statx(file, "", AtFlags::EMPTY_PATH, WANTED)?))
    }

    /// Reads the file with this path, behind links.
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

/// Checks if this process, as the user that it acts as, may do this with a path.
///
/// # Errors
/// Why not: what faccessat(2) says.
pub fn check(path: &Path, access: Access) -> io::Result<()> {
    Ok(accessat(CWD, path, access.rights(), AtFlags::EACCESS)?)
}

/// [`check`] as the user that started this process.
pub fn check_as_real_user(path: &Path, access: Access) -> io::Result<()> {
    Ok(rustix::fs::access(path, access.rights())?)
}

/// Opens a file for reading.
///
/// musl's open(2) has a second call after it, for kernels before 2.6.23. This has none.
///
/// # Errors
/// What open(2) says.
pub fn open(path: impl Arg) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?.into())
}

/// Opens whatever file is there for reading: follows no link at the end of the path, waits for no pipe, and makes no
/// terminal this process's own.
///
/// # Errors
/// What open(2) says.
pub fn open_plainly(path: impl Arg) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?.into())
}

/// The size limit of a file of settings, in bytes: the certificates of all authorities that systems trust take a
/// quarter of a mebibyte.
const LONGEST: u64 = 8 << 20;

/// Reads a regular file of 8 MiB at most. A pipe would be waited for, and a device may have no end.
///
/// # Errors
/// Those of open(2) and read(2); the file is no regular one, or longer.
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::options()
        .read(true)
        .custom_flags(NO_WAIT)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    let read = file.take(LONGEST + 1).read_to_end(&mut bytes)?;
    match read as u64 > LONGEST {
        true => Err(io::Error::other("it is longer than 8 MiB")),
        false => Ok(bytes),
    }
}

/// A symbolic link at the end of the path is an error.
pub const NO_FOLLOW: i32 = libc::O_NOFOLLOW;

/// To open a pipe or a device waits for nothing.
pub const NO_WAIT: i32 = libc::O_NONBLOCK;

/// Makes a file without a name for writing, on the file system of this directory.
///
/// # Errors
/// What open(2) says of `O_TMPFILE`: EOPNOTSUPP where the file system has no such files.
pub fn create_unnamed_in(directory: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(CWD, directory, flags, Mode::RUSR | Mode::WUSR)?;
    Ok(File::from(file))
}

/// Makes a file in memory, for reading and writing. The name is for listings of descriptors.
///
/// # Errors
/// What memfd_create(2) says: out of descriptors or memory.
pub fn in_memory(name: &CStr) -> io::Result<File> {
    Ok(File::from(memfd_create(name, MemfdFlags::CLOEXEC)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::io::Write as _;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::time::SystemTime;

    #[test]
    fn no_pipe_device_or_endless_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let [pipe, long, whole] = ["pipe", "long", "whole"].map(|it| folder.path().join(it));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let file = File::create(&long).unwrap();
        file.set_len(LONGEST + 1).unwrap();
        fs::write(&whole, "text").unwrap();
        for bad in [&pipe, Path::new("/dev/zero"), &long, folder.path()] {
            assert!(read_regular(bad).is_err(), "{}", bad.display());
        }
        assert_eq!(read_regular(&whole).unwrap(), b"text");
    }

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

    #[test]
    fn it_is_written_and_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = create_unnamed_in(folder.path()).unwrap();
        file.write_all(b"x").unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
