//! Descriptors: which ones a process has, and closing those that it must not have.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl, open};
use nix::libc;
use nix::sys::stat::Mode;

/// Fills the closed ones of the descriptors 0, 1 and 2 with /dev/null, so that no file that is
/// opened later takes their place and receives messages. They close on exec: a job still finds them
/// closed, as this process did.
///
/// # Errors
/// Those of open(2) for /dev/null.
pub fn fill_standard() -> io::Result<()> {
    // In order, because open(2) gives the lowest that is free.
    for fd in 0..=2 {
        if !is_open(fd) {
            let filled = std::os::fd::IntoRawFd::into_raw_fd(open_null()?);
            debug_assert_eq!(filled, fd);
        }
    }
    Ok(())
}

/// Points the descriptors 0, 1 and 2 at /dev/null, or closes them where it can't be opened: in any
/// case they keep no pipe or terminal open.
pub fn silence_standard() {
    let null = open_null();
    for fd in 0..=2 {
        // SAFETY: both calls take numbers only; the standard descriptors have no
        // owner in Rust that would close them.
        unsafe {
            match &null {
                Ok(null) => libc::dup2(null.as_raw_fd(), fd),
                Err(_) => libc::close(fd),
            };
        }
    }
}

/// Closes every descriptor of this process except 0, 1, 2 and those to `keep`.
///
/// Only for a forked process that leaves by `exit_now` and never uses, or drops,
/// a descriptor that its parent has opened.
pub fn close_all_except(keep: &[BorrowedFd<'_>]) {
    let mut kept: Vec<u32> = keep.iter().map(number).collect();
    kept.sort_unstable();
    for (first, last) in gaps(&kept) {
        if close_range(first, last).is_err() {
            close_one_by_one(first, last);
        }
    }
}

/// Closes inherited pipes and sockets that this process does not need; /dev/null replaces stdin and
/// stdout. stderr stays, and so do files: a parent may have locked one for as long as this process
/// lives. Everything that this program opens closes on exec, so the rest is inherited.
pub fn let_go_of_inherited() {
    let null = open_null();
    for fd in open_descriptors().into_iter().filter(|fd| *fd != 2) {
        if !is_inherited_pipe(fd) {
            continue;
        }
        // SAFETY: both calls take numbers only; this program has not opened the descriptor, so it
        // has no owner here.
        unsafe {
            match &null {
                Ok(null) if fd < 2 => libc::dup3(null.as_raw_fd(), fd, libc::O_CLOEXEC),
                // Otherwise the next opened file would become stdin or stdout.
                Err(_) if fd < 2 => fd,
                Ok(_) | Err(_) => libc::close(fd),
            };
        }
    }
}

/// True if this process inherited a stdout. A replacement by [`fill_standard`] closes on exec; an
/// inherited one does not.
pub fn has_stdout() -> bool {
    is_inherited(libc::STDOUT_FILENO)
}

fn is_inherited(fd: RawFd) -> bool {
    // SAFETY: the call only reads the descriptor's flags, and the descriptor may be closed.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
    flags != -1 && flags & libc::FD_CLOEXEC == 0
}

fn is_inherited_pipe(fd: RawFd) -> bool {
    if !is_inherited(fd) {
        return false;
    }
    // SAFETY: all zeroes is a valid stat, and it is overwritten.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: fstat(2) writes to a place that is ours.
    let done = unsafe { libc::fstat(fd, &mut stat) };
    done == 0 && matches!(stat.st_mode & libc::S_IFMT, libc::S_IFIFO | libc::S_IFSOCK)
}

/// Lets a descriptor stay open in programs that are executed from now on.
pub fn keep_on_exec(fd: BorrowedFd<'_>) -> io::Result<()> {
    fcntl(fd, FcntlArg::F_SETFD(FdFlag::empty()))?;
    Ok(())
}

/// The least number for a descriptor that a program inherits without knowing: shells use lower
/// numbers for themselves (bash up to 255), and scripts use numbers below 10. The smaller values
/// are for a limit (ulimit -n) that does not allow the first.
const OUT_OF_THE_WAY: [RawFd; 5] = [256, 128, 64, 32, 16];

/// Passes a duplicate of a descriptor to the next program that this process executes, with a number
/// that the program is unlikely to use. Not closed here: only for a process that is about to
/// execute a program.
pub fn hand_down(fd: BorrowedFd<'_>) -> io::Result<()> {
    for least in OUT_OF_THE_WAY {
        match fcntl(fd, FcntlArg::F_DUPFD(least)) {
            Ok(_) => return Ok(()),
            Err(Errno::EINVAL | Errno::EMFILE) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    // Better its own number than none.
    keep_on_exec(fd)
}

fn number(fd: &BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd().unsigned_abs()
}

/// The ranges of numbers above 2 that lie between the sorted `kept` ones.
fn gaps(kept: &[u32]) -> Vec<(u32, u32)> {
    let mut gaps = Vec::with_capacity(kept.len() + 1);
    let mut first = 3;
    for &fd in kept {
        if fd > first {
            gaps.push((first, fd - 1));
        }
        first = first.max(fd.saturating_add(1));
    }
    gaps.push((first, u32::MAX));
    gaps
}

fn close_range(first: u32, last: u32) -> nix::Result<()> {
    // By its number, because older C libraries don't have it.
    // SAFETY: it takes numbers only; the caller answers for the descriptors' owners.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0u32) };
    Errno::result(done).map(drop)
}

fn close_one_by_one(first: u32, last: u32) {
    for fd in open_descriptors() {
        if u32::try_from(fd).is_ok_and(|fd| (first..=last).contains(&fd)) {
            // SAFETY: as in `close_range`. One that is closed already (the
            // directory's own) gives EBADF.
            unsafe { libc::close(fd) };
        }
    }
}

fn open_descriptors() -> Vec<RawFd> {
    match std::fs::read_dir("/proc/self/fd") {
        Ok(entries) => entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect(),
        // Without /proc the open ones are unknown. Few programs have more.
        Err(_) => (0..4096).collect(),
    }
}

fn is_open(fd: RawFd) -> bool {
    // SAFETY: the call only reads the descriptor's flags, and the descriptor may be closed.
    let asked = unsafe { libc::fcntl(fd, libc::F_GETFD) };
    asked != -1
}

fn open_null() -> io::Result<std::os::fd::OwnedFd> {
    let flags = OFlag::O_RDWR | OFlag::O_CLOEXEC | OFlag::O_NOCTTY;
    Ok(open("/dev/null", flags, Mode::empty())?)
}

/// Writes to stderr past the lock of the standard library, by one write(2): it waits for no other thread. Returns how many were written.
pub fn write_past_locks(bytes: &[u8]) -> io::Result<usize> {
    Ok(nix::unistd::write(io::stderr(), bytes)?)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn gaps_exclude_kept_and_standard_descriptors() {
        assert_eq!(gaps(&[]), [(3, u32::MAX)]);
        assert_eq!(gaps(&[3, 4, 9]), [(5, 8), (10, u32::MAX)]);
        assert_eq!(gaps(&[1, 5, 5]), [(3, 4), (6, u32::MAX)]);
    }

    #[test]
    fn open_descriptors_are_distinguished_from_closed_ones() {
        assert!(is_open(open_null().unwrap().as_raw_fd()));
        assert!(!is_open(RawFd::MAX));
    }

    #[test]
    fn a_descriptor_can_be_made_to_survive_an_exec() {
        let fd = open_null().unwrap();
        keep_on_exec(fd.as_fd()).unwrap();
        assert_eq!(fcntl(&fd, FcntlArg::F_GETFD).unwrap(), 0);
    }

    /// Other tests of this process may have the first number meanwhile.
    #[test]
    fn a_descriptor_is_handed_down_out_of_the_way() {
        let file = tempfile::NamedTempFile::new().unwrap();
        hand_down(file.as_fd()).unwrap();
        let is_it = |number: &RawFd| {
            let link = std::fs::read_link(format!("/proc/self/fd/{number}"));
            link.is_ok_and(|link| link == file.path())
        };
        let mut numbers = OUT_OF_THE_WAY[0]..OUT_OF_THE_WAY[0] + 1_000;
        assert!(numbers.any(|number| is_it(&number)));
        let flags = fcntl(file.as_fd(), FcntlArg::F_GETFD).unwrap();
        assert_eq!(flags, FdFlag::FD_CLOEXEC.bits());
    }
}
