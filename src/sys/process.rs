//! Processes: to make one, to name one, to leave one, and to have one make a system call that may hang.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use nix::libc;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{self, ForkResult};

use super::wait::ends_within;

/// Which side of a fork this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forked {
    /// The process that forked.
    Parent {
        /// The new child's pid.
        child: i32,
    },
    /// The new process.
    Child,
}

/// Forks. Only for a process with a single thread: in the child of a process with several, a lock
/// that another thread held would stay locked for ever. Debug builds check that.
///
/// # Errors
/// Those of fork(2): EAGAIN (a limit of processes) or ENOMEM.
pub fn fork() -> io::Result<Forked> {
    debug_assert!(has_one_thread(), "fork in a process with several threads");
    // SAFETY: with a single thread, which the caller guarantees, everything is allowed in the child
    // that was allowed in the parent.
    Ok(match unsafe { unistd::fork() }? {
        ForkResult::Parent { child } => Forked::Parent {
            child: child.as_raw(),
        },
        ForkResult::Child => Forked::Child,
    })
}

/// Excludes this process's memory from core dumps, and hides it from other processes of its user. A
/// program that it executes is not affected, nor is any limit.
pub fn forbid_core_dumps() -> io::Result<()> {
    Ok(prctl::set_dumpable(false)?)
}

/// True if this process has one thread only, as far as is known.
pub fn has_one_thread() -> bool {
    // unshare(2): "CLONE_THREAD can be specified if the caller is single threaded;
    // in this case it has no effect". A sandbox may forbid the call: then nothing
    // is known.
    // SAFETY: it changes nothing, and takes no pointer.
    let done = unsafe { libc::unshare(libc::CLONE_THREAD) };
    done == 0 || nix::errno::Errno::last() != nix::errno::Errno::EINVAL
}

/// Ends this process at once: no destructor runs, nothing is flushed. A fork ends this way, because
/// its copies belong to its parent.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit(2) does not return and touches no memory of ours.
    unsafe { libc::_exit(code) }
}

/// Makes this process the parent of those of its descendants whose parent has ended.
///
/// # Errors
/// Those of prctl(2): a sandbox may forbid it.
pub fn become_subreaper() -> io::Result<()> {
    Ok(prctl::set_child_subreaper(true)?)
}

/// Sets the name of this process in ps(1) and killall(1); the kernel truncates it to 15 bytes.
pub fn set_name(name: &CStr) -> io::Result<()> {
    Ok(prctl::set_name(name)?)
}

/// Makes the kernel kill this process when its parent ends. The setting survives an exec, except of
/// a set-user-ID program, and not a fork. The parent may be gone already: compare [`parent_pid`]
/// afterwards.
pub fn die_with_parent() -> io::Result<()> {
    Ok(prctl::set_pdeathsig(Signal::SIGKILL)?)
}

/// Moves into a new session and process group. A process that leads a group stays.
pub fn leave_session() {
    let _ = unistd::setsid();
}

/// This process's pid, as its own pid namespace counts.
pub fn pid() -> i32 {
    unistd::getpid().as_raw()
}

/// The parent's pid; 0 if it is in another pid namespace.
pub fn parent_pid() -> i32 {
    unistd::getppid().as_raw()
}

/// The process group of a process, 0 for this one's. `None` if there is no such process.
pub fn group_of(pid: i32) -> Option<i32> {
    let group = unistd::getpgid(Some(unistd::Pid::from_raw(pid))).ok()?;
    Some(group.as_raw())
}

/// The host's name.
pub fn host_name() -> io::Result<String> {
    Ok(unistd::gethostname()?.to_string_lossy().into_owned())
}

/// Sends a signal to a child that is not reaped, so that its pid can't belong to another process.
/// The child may have ended. See [`super::pidfd::Target`] for other processes.
///
/// # Errors
/// EPERM if the child belongs to another user by now; EINVAL for a number that is no signal.
pub fn signal_child(pid: i32, signal: i32) -> io::Result<()> {
    if pid <= 0 {
        // kill(2) would treat it as a group.
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: kill(2) takes no pointer.
    nix::errno::Errno::result(unsafe { libc::kill(pid, signal) })?;
    Ok(())
}

/// Sends a signal to the parent, unless that is in another pid namespace, or is the
/// system's first process, which adopts orphans.
///
/// # Errors
/// Those of kill(2): EPERM if it belongs to another user; ESRCH if it must not be signalled.
pub fn signal_parent(signal: i32) -> io::Result<()> {
    match parent_pid() {
        0 | 1 => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        parent => signal_child(parent, signal),
    }
}

/// Removes a file, in a process of its own: a process that waits in the kernel for a file system can't even be
/// killed. What takes longer than `limit` happens later, or not at all.
pub fn remove_file_within(limit: Duration, path: &Path) {
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
    fn groups_are_never_signalled_by_mistake() {
        assert!(signal_child(0, 0).is_err());
        assert!(signal_child(-1, 0).is_err());
        assert!(signal_child(pid(), 0).is_ok());
    }

    #[test]
    fn a_process_with_two_threads_is_recognized() {
        std::thread::scope(|scope| {
            let (send, receive) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || receive.recv());
            assert!(!has_one_thread());
            drop(send);
        });
    }

    #[test]
    fn the_own_group_is_known() {
        assert_eq!(group_of(0), group_of(pid()));
        assert!(group_of(pid()).is_some());
    }

    #[test]
    fn a_file_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "x").unwrap();
        remove_file_within(Duration::from_secs(60), &path);
        assert!(!path.exists());
    }
}
