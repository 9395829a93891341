//! Locks that belong to an open file description: they live as long as a process has a descriptor
//! of it, through fork(2) and execve(2), and end with the last one.
//!
//! Unlike the locks of flock(2) they can be checked without being taken, so that two simultaneous
//! checks do not see each other. Unlike POSIX locks they are not lost when a process closes another
//! descriptor of the same file.

use std::io;
use std::os::fd::BorrowedFd;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

/// Locks one byte of a file for this open file description, which must be open for writing. Never
/// blocks.
///
/// # Errors
/// EAGAIN if another open file description has it; otherwise those of fcntl(2): EINVAL where the
/// kernel has no such locks.
pub fn lock(file: BorrowedFd<'_>, byte: u8) -> io::Result<()> {
    fcntl(file, FcntlArg::F_OFD_SETLK(&exclusive(byte)))?;
    Ok(())
}

/// Releases a lock, even if other processes have a descriptor of this open file description.
pub fn unlock(file: BorrowedFd<'_>, byte: u8) -> io::Result<()> {
    let mut lock = exclusive(byte);
    lock.l_type = libc::F_UNLCK as libc::c_short;
    fcntl(file, FcntlArg::F_OFD_SETLK(&lock))?;
    Ok(())
}

/// True if another open file description has locked this byte of the file. Nothing
/// is locked or written, not even for a moment.
///
/// # Errors
/// Those of fcntl(2): EINVAL where the kernel has no such locks.
pub fn is_locked(file: BorrowedFd<'_>, byte: u8) -> io::Result<bool> {
    let mut found = exclusive(byte);
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut found))?;
    Ok(i32::from(found.l_type) != libc::F_UNLCK)
}

const fn exclusive(byte: u8) -> libc::flock {
    libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: byte as libc::off_t,
        l_len: 1,
        // fcntl(2) wants it so for these locks.
        l_pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;

    fn opened_twice() -> (tempfile::TempDir, File, File) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let one = File::create_new(&path).unwrap();
        let other = File::options().write(true).open(&path).unwrap();
        (folder, one, other)
    }

    #[test]
    fn bytes_are_locked_one_by_one() {
        let (_folder, one, other) = opened_twice();
        lock(one.as_fd(), 0).unwrap();
        assert!(is_locked(other.as_fd(), 0).unwrap());
        assert!(!is_locked(other.as_fd(), 1).unwrap());
        let err = lock(other.as_fd(), 0).unwrap_err();
        assert_eq!(err.kind(), io::ErrorKind::WouldBlock);
        lock(other.as_fd(), 1).unwrap();
        assert!(is_locked(one.as_fd(), 1).unwrap());
    }

    #[test]
    fn a_lock_lives_as_long_as_some_descriptor_of_it() {
        let (_folder, one, other) = opened_twice();
        lock(one.as_fd(), 0).unwrap();
        let copy = one.try_clone().unwrap();
        drop(one);
        assert!(is_locked(other.as_fd(), 0).unwrap());
        drop(copy);
        assert!(!is_locked(other.as_fd(), 0).unwrap());
    }

    #[test]
    fn other_descriptors_of_the_file_come_and_go() {
        let (folder, one, other) = opened_twice();
        lock(one.as_fd(), 0).unwrap();
        drop(File::open(folder.path().join("file")).unwrap());
        assert!(is_locked(other.as_fd(), 0).unwrap());
    }

    #[test]
    fn a_check_takes_no_lock_and_needs_no_right_to_write() {
        let (folder, one, other) = opened_twice();
        let reader = File::open(folder.path().join("file")).unwrap();
        assert!(!is_locked(reader.as_fd(), 0).unwrap());
        assert!(!is_locked(other.as_fd(), 0).unwrap());
        lock(one.as_fd(), 0).unwrap();
        assert!(is_locked(reader.as_fd(), 0).unwrap());
    }
}
