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

/// Removes a file. What takes longer than `limit` happens later, or not at all.
pub fn remove(path: &Path, limit: Duration) {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else {
        return;
    };
    // SAFETY: until it leaves, the child makes system calls and nothing else, which is
    // allowed however many threads this process has.
    match unsafe { libc::fork() } {
        // No process can be created: the file stays.
        -1 => {}
        0 => {
            // It may outlive this process, and must keep none of its descriptors open.
            // SAFETY: it takes numbers only.
            unsafe { libc::syscall(libc::SYS_close_range, 0u32, u32::MAX, 0u32) };
            // SAFETY: it is a string that lives until the child leaves.
            unsafe { libc::unlink(path.as_ptr()) };
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
    fn a_file_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "x").unwrap();
        remove(&path, Duration::from_secs(60));
        assert!(!path.exists());
    }
}
