//! Typed system calls. Everything unsafe lives here, each block with its reason.
//!
//! A file holds one thing of the kernel's; nothing here knows what a guard, a job
//! or a token is.

pub mod apart;
pub mod clock;
pub mod exec;
pub mod fds;
pub mod file_size;
pub mod filesystem;
pub mod ofd;
pub mod pidfd;
pub mod poll;
pub mod priority;
pub mod process;
pub mod procfs;
pub mod random;
pub mod service_manager;
pub mod signals;
pub mod socket;
pub mod terminal;
pub mod timer;
pub mod user;
pub mod wait;
