//! Flags for a path that another user may have put there, for
//! [`std::os::unix::fs::OpenOptionsExt::custom_flags`].

use nix::libc;

/// A symbolic link at the end of the path is an error.
pub const NO_FOLLOW: i32 = libc::O_NOFOLLOW;

/// To open a pipe or a device waits for nothing.
pub const NO_WAIT: i32 = libc::O_NONBLOCK;

/// A terminal does not become this process's own.
pub const NO_TERMINAL: i32 = libc::O_NOCTTY;
