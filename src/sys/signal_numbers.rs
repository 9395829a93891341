//! The numbers of the signals that the program names, as `signal(7)` has them.

use nix::libc;

pub const SIGCHLD: i32 = libc::SIGCHLD;
pub const SIGCONT: i32 = libc::SIGCONT;
pub const SIGHUP: i32 = libc::SIGHUP;
pub const SIGINT: i32 = libc::SIGINT;
pub const SIGKILL: i32 = libc::SIGKILL;
pub const SIGQUIT: i32 = libc::SIGQUIT;
pub const SIGTERM: i32 = libc::SIGTERM;
pub const SIGTSTP: i32 = libc::SIGTSTP;

/// Whether this signal asks a process to end.
pub const fn asks_for_end(signal: i32) -> bool {
    matches!(signal, SIGTERM | SIGINT | SIGHUP | SIGQUIT)
}
