//! A system call that may hang, in a process of its own: a process that waits in the kernel for
//! a file system can't even be killed.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use nix::libc;

use super::process::{exit_now, signal_child};
use super::wait::ends_within;

/// Renames a file. What takes longer than `limit` happens later, or not at all.
pub fn rename(from: &Path, to: &Path, limit: Duration) {
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes());
    let (Ok(from), Ok(to)) = (text(from), text(to)) else {
        return;
    };
    // SAFETY: until it leaves, the child makes system calls and nothing else, which is
    // allowed however many threads this process has.
    match unsafe { libc::fork() } {
        // There is no process for it: the file stays.
        -1 => {}
        0 => {
            // It may outlive this process, and is to keep nothing of it open.
            // SAFETY: it takes numbers only.
            unsafe { libc::syscall(libc::SYS_close_range, 0u32, u32::MAX, 0u32) };
            // SAFETY: both are strings that live until the child leaves.
            unsafe { libc::rename(from.as_ptr(), to.as_ptr()) };
            exit_now(0)
        }
        child if ends_within(child, limit) => {}
        child => {
            let _ = signal_child(child, libc::SIGKILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_renamed() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
        std::fs::write(&from, "x").unwrap();
        rename(&from, &to, Duration::from_secs(60));
        assert!(!from.exists() && to.exists());
    }
}
