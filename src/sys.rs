//! Typed system calls. Everything unsafe lives here, each block with its reason.
//!
//! A file holds one thing of the kernel's; nothing here knows what a guard, a job
//! or a token is.

#[cfg(target_env = "musl")]
pub mod allocator;
pub mod clock;
pub mod errno;
pub mod events;
pub mod exec;
pub mod fds;
pub mod file;
pub mod filesystem;
pub mod limits;
pub mod memory;
pub mod ofd;
pub mod pidfd;
pub mod pipe;
pub mod place;
pub mod poll;
pub mod process;
pub mod procfs;
pub mod random;
pub mod service_manager;
pub mod sharing;
pub mod signals;
pub mod socket;
pub mod sqlite_files;
pub mod terminal;
pub mod user;
pub mod wait;
