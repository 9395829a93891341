//! The real binary, real processes and real signals: what a user sees, a behaviour a
//! file. One program, so that those that wait for a takeover wait side by side.

// clippy.toml allows these in tests, and knows a test by an attribute that the
// helpers lack.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

#[path = "behaviour/first_minutes.rs"]
mod first_minutes;
