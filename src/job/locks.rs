//! Two locks that prove whether anything of a run is alive on this host.
//!
//! They are on two bytes of one file, through two open file descriptions:
//!
//! - the *run lock* is the supervisor's alone;
//! - the *job lock* is handed to the guard, whose supervisor closes it, and the job
//!   inherits its descriptor, as the child of flock(1) does. So it is free when no
//!   process of the run is left that could be the job's, but for those that closed it.
//!
//! The kernel frees a lock when the last descriptor is gone, however its owners ended.
//! It is asked about without being taken, so that nobody who asks disturbs another, and
//! once free it is never taken again under the file's name, which is for one run. So whoever
//! finds both free has a proof that the run is dead, and no pid, boot or namespace was
//! looked at.
//!
//! # That very file
//!
//! The file has a random name. It is made under another, locked, and then renamed:
//! under its own name it is never seen unlocked while its run lives. The token's row names it,
//! without its directory, because another container may have mounted that elsewhere: it is
//! looked for in the looker's own directory for the same store. The name also says which
//! device, inode and time of birth the file has. A copy of it (a restored backup, a clone
//! of the directory) has the name but not those, and proves nothing.
//!
//! What proves nothing is never taken for death: no file, no right to open it, another
//! file, a file system that is not local, a kernel that has no such locks.

mod clerk;
mod holders;
mod name;
mod probe;
mod sweep;
mod taking;

pub use clerk::Clerk;
pub use holders::holders;
pub use name::LockName;
pub use probe::{Probed, probe, remove};
pub use sweep::sweep_if_due;
pub use taking::{JobLock, RunLock, take};

/// The byte that the supervisor locks.
const RUN_BYTE: u8 = 0;

/// The byte that guard and job lock.
const JOB_BYTE: u8 = 1;
