//! A run: from the first look at the group to the release of its token.
//!
//! [`machine`] is the pure state machine: it takes events with their time, and returns actions.
//! [`driver`] gives it a real clock, a real store and a real guard; the simulation gives it
//! simulated ones.

mod answers;
mod catching;
pub mod driver;
pub mod ending;
pub mod environment;
pub mod event;
pub mod finishing;
mod first;
mod guarding;
pub mod holding;
mod last_requests;
pub mod lease;
pub mod locking;
pub mod machine;
mod refusing;
pub mod runtime_file;
pub mod runtime_keeper;
mod second_primary;
pub mod seeking;
pub mod setup;

#[cfg(test)]
mod model;
#[cfg(test)]
mod search;
#[cfg(test)]
mod simulation;
