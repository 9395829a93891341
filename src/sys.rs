//! Typed system calls.
pub mod process;
