//! Two locks that prove whether a process of a run is alive on this host.
//!
//! They are on two bytes of one file, through two open file descriptions:
//!
//! - the *run lock* is the supervisor's alone;
//! - the *job lock* goes to the guard, whose supervisor closes it, and the job inherits its
//!   descriptor, as the child of flock(1) does. So the lock is free when no process is left that
//!   could be the job's, except for processes that closed the descriptor.
//!
//! The kernel frees a lock when the last descriptor is gone, however its owners ended. A check of a
//! lock does not take it, so checks never disturb each other. A lock that is free under the file's
//! name is never taken again, because the name belongs to one run. So a process that finds both
//! locks free has proof that the run is dead, without any pid, boot or namespace.
//!
//! # Identity of the file
//!
//! The file has a random name. It is made under another name, locked, and then renamed:
//! under its own name it is never unlocked while its run lives. The token's row names it, without
//! its directory, because another container may have mounted the directory elsewhere: a reader
//! looks in its own directory for the same store. The name also contains the file's device, inode
//! and time of birth. A copy of the file (a restored backup, a clone of the directory) has the name
//! but not those, and proves nothing.
//!
//! Missing proof never counts as death: no file, no right to open it, another file, a file system
//! that is not local, a kernel without such locks.

mod clerk;
mod name;
mod probe;
mod sweep;
mod taking;

pub use clerk::Clerk;
pub use name::LockName;
pub use probe::{Probed, holders, probe, remove};
pub use sweep::sweep_if_due;
pub use taking::{JobLock, RunLock, take};

/// The byte that the supervisor locks.
const RUN_BYTE: u8 = 0;

/// The byte that guard and job lock.
const JOB_BYTE: u8 = 1;

/// Waits until it is so. A lock that was given up may be seen for a moment: another test's child holds a copy of the
/// descriptor until it executes its program.
#[cfg(test)]
fn becomes(mut is_so: impl FnMut() -> bool) -> bool {
    let begun = std::time::Instant::now();
    while !is_so() {
        if begun.elapsed().as_secs() > 20 {
            return false;
        }
        std::thread::yield_now();
    }
    true
}
