//! The job: how it is started, watched over and ended. Never sees the store.
//!
//! Three processes. The *supervisor* (tokenrun) holds the lease and talks to the
//! store. The *guard* is forked from it while it has one thread; it is the job's
//! parent and a dead man's switch: the supervisor sends it every new deadline, and
//! when one passes without news, or the supervisor is gone, it ends the *job* with
//! all its descendants by itself.
//!
//! # What the guard does, and when
//!
//! 1. It waits for [`messages::ToGuard::Start`]. When the job's lock comes, it forks the
//!    process that is to become the job, which waits for its word. If the supervisor
//!    ends before the start, or asks for an end, both leave: nothing was started.
//! 2. It gives the word, unless the deadline's TERM would be due already, and says
//!    `Started` once the program has been executed, or `NotStarted`.
//! 3. It looks at the deadline first after every wake-up and at least every
//!    second. At `term_at` the whole tree gets TERM, at `kill_at` it is killed.
//!    From `term_at` on there is no way back: later news change nothing.
//! 4. When the supervisor is gone, the tree gets TERM at once, and is killed after
//!    the grace or at the deadline, whichever is first.
//! 5. When the job's main process ends it says `Exited`. What it left behind is
//!    ended as well, with `Leftovers`, or left alone if that is wished and the
//!    lease is not at stake.
//! 6. Once no descendant is left it says `Gone`, and leaves.
//!
//! # What it relies on
//!
//! The guard is a child subreaper: whoever loses its parent below the guard becomes
//! the guard's child, so a process that called setsid(2) or forked twice is still
//! found, and `waitpid` saying ECHILD proves that nobody is left. /proc is looked
//! at only when a tree has to be ended, and only if it is of this pid namespace.
//!
//! Whoever forks and leaves, and whose child does so too, lives for some 100 µs. It is
//! caught because a child that was not waited for can be signalled without any look at
//! it, because the guard gets every orphan, and because a KILL aborts a fork that is
//! under way. `killing` tells more. So that it is not starved by those whom it is to
//! end, the guard asks to be run first ([`crate::sys::priority::run_first`]).
//!
//! The guard stays in tokenrun's process group and session, as the job does. It
//! blocks every signal; once the job runs it holds no descriptor of the user's.

pub mod ancestry;
pub mod handle;
pub mod locks;
pub mod messages;

mod adopted;
mod asking;
mod deduplication;
mod ears;
mod guard;
mod killing;
mod link;
mod reaping;
mod running;
mod settings;
mod spawn;
mod tree;
mod walk;
mod watch;

pub use handle::{GuardHandle, Received, TreeEnd};
pub use messages::{Deadline, FromGuard, Stage, Survivor, ToGuard, Unkillable};
pub use settings::{GuardSettings, Leftovers};

/// The name under which ps(1) shows a guard. Not `tokenrun`, so that
/// `killall tokenrun` leaves it to do its duty.
const GUARD_NAME: &std::ffi::CStr = c"lease-guard";
