//! Typed system calls. Everything unsafe lives here, each block with its reason.
//!
//! A file holds one thing of the kernel's; nothing here knows what a guard, a job
//! or a token is.

pub mod access;
pub mod apart;
pub mod clock;
pub mod errno;
pub mod eventfd;
pub mod exec;
pub mod fds;
pub mod file_size;
pub mod filesystem;
pub mod inode;
pub mod inotify;
pub mod ofd;
pub mod open_flags;
pub mod pidfd;
pub mod pipe;
pub mod place;
pub mod poll;
pub mod priority;
pub mod process;
pub mod procfs;
pub mod random;
pub mod service_manager;
pub mod sharing;
pub mod signal_numbers;
pub mod signals;
pub mod socket;
pub mod sqlite_files;
pub mod stderr;
pub mod tcp;
pub mod terminal;
pub mod timer;
pub mod unnamed_file;
pub mod user;
pub mod wait;
