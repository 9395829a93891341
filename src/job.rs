//! The job: how it is started, guarded and ended. It never sees the store.
//!
//! Three processes. The *supervisor* (tokenrun) holds the lease and talks to the
//! store. The *guard* is forked from it while it has one thread; it is the job's
//! parent and a dead man's switch: the supervisor sends it every new deadline, and
//! when one passes without news, or the supervisor is gone, it ends the *job* with
//! all its descendants by itself.
//!
//! # What the guard does, and when
//!
//! 1. It waits for [`protocol::ToGuard::Start`]. When the job's lock arrives, the guard forks the
//!    process that becomes the job; that process waits for the go-ahead. If the supervisor ends
//!    before the start, or orders the end, both leave: nothing was started.
//! 2. It gives the go-ahead, unless the deadline's TERM would be due already, and sends
//!    `Started` once the program is executed, or `NotStarted`.
//! 3. It checks the deadline first after every wake-up, and at least every second. At `term_at`
//!    the whole tree gets TERM, at `kill_at` it is killed. After `term_at` the end is final: a
//!    later deadline changes nothing.
//! 4. When the supervisor is gone, the tree gets TERM at once, and is killed after
//!    the grace or at the deadline, whichever is first.
//! 5. When the job's main process ends, it sends `Exited`. The processes that the main process left
//!    behind are ended as well, with `Leftovers`, or left alone if the settings say so and the
//!    lease is not at stake.
//! 6. Once no descendant is left, it sends `Gone`, and leaves.
//!
//! # What it relies on
//!
//! The guard is a child subreaper: a process below it that loses its parent becomes the guard's
//! child. So a process that called setsid(2) or forked twice is still found, and ECHILD from
//! `waitpid` proves that no process is left. The guard reads /proc only when it has to end a tree,
//! and only if /proc belongs to this pid namespace.
//!
//! A process that forks and leaves, and whose child does the same, lives for some 100 µs. The guard
//! catches it because an unreaped child can be signalled without any check, because the guard gets
//! every orphan, and because KILL aborts a fork that is under way; see `killing`. The guard raises
//! its own priority ([`crate::sys::limits::run_first`]), so that the processes that it must end
//! cannot starve it.
//! The guard stays in tokenrun's process group and session, as the job does. It blocks every
//! signal; once the job runs it holds no descriptor of the user's.
//!
//! If the job's output is caught ([`capture`]), the supervisor reads it; the guard has no part in it.

pub mod ancestry;
pub mod capture;
pub mod handle;
pub mod hooks;
pub mod locks;
pub mod protocol;

mod adopted;
mod batches;
mod deadlines;
mod deduplication;
mod guard;
mod killing;
mod link;
mod running;
mod spawn;
mod tree;
mod walk;

pub use capture::{Capture, Captured, Capturing};
pub use handle::{GuardHandle, Received, TreeEnd};
pub use protocol::{
    Deadline, FromGuard, GuardSettings, Leftovers, Stage, Survivor, ToGuard, Unkillable,
};

/// The guard's name in ps(1). Not `tokenrun`, so that `killall tokenrun` leaves the guard alive.
const GUARD_NAME: &std::ffi::CStr = c"lease-guard";
