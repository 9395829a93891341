//! Error numbers of the kernel that the program gives itself, or tells apart.

use std::fmt;
use std::io;

use nix::errno::Errno as Known;
use nix::libc;

/// An error number, as `errno(3)` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(i32);

/// By their names in `errno(3)`.
impl Errno {
    pub const EACCES: Self = Self(libc::EACCES);
    pub const EBADF: Self = Self(libc::EBADF);
    pub const ECHILD: Self = Self(libc::ECHILD);
    pub const EDQUOT: Self = Self(libc::EDQUOT);
    pub const EFBIG: Self = Self(libc::EFBIG);
    pub const EIO: Self = Self(libc::EIO);
    pub const EINVAL: Self = Self(libc::EINVAL);
    pub const EISDIR: Self = Self(libc::EISDIR);
    pub const ELOOP: Self = Self(libc::ELOOP);
    pub const EMFILE: Self = Self(libc::EMFILE);
    pub const ENAMETOOLONG: Self = Self(libc::ENAMETOOLONG);
    pub const ENFILE: Self = Self(libc::ENFILE);
    pub const ENOENT: Self = Self(libc::ENOENT);
    pub const ENOSPC: Self = Self(libc::ENOSPC);
    pub const ENOTDIR: Self = Self(libc::ENOTDIR);
    pub const EPERM: Self = Self(libc::EPERM);
    pub const EROFS: Self = Self(libc::EROFS);
}

impl Errno {
    /// The error with this number.
    pub const fn from_raw(number: i32) -> Self {
        Self(number)
    }

    /// The number in an error of the system's; `None` if it is another error.
    pub fn of(error: &io::Error) -> Option<Self> {
        error.raw_os_error().map(Self)
    }

    /// The number.
    pub const fn raw(self) -> i32 {
        self.0
    }

    /// What it means, in a few words: "No such file or directory".
    pub fn description(self) -> &'static str {
        Known::from_raw(self.0).desc()
    }
}

/// The name and what it means: "ENOENT: No such file or directory".
impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Known::from_raw(self.0).fmt(f)
    }
}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> Self {
        Self::from_raw_os_error(errno.0)
    }
}

impl From<Known> for Errno {
    fn from(errno: Known) -> Self {
        Self(errno as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_system_has_a_number_and_others_have_none() {
        let missing = std::fs::metadata("/no/such/path").unwrap_err();
        assert_eq!(Errno::of(&missing), Some(Errno::ENOENT));
        assert_eq!(Errno::of(&io::Error::other("x")), None);
        let back = io::Error::from(Errno::EMFILE);
        assert_eq!(Errno::of(&back), Some(Errno::EMFILE));
    }

    #[test]
    fn a_number_is_told_in_words() {
        let errno = Errno::from_raw(Errno::ENOENT.raw());
        assert_eq!(errno.description(), "No such file or directory");
        assert_eq!(errno.to_string(), "ENOENT: No such file or directory");
    }
}
