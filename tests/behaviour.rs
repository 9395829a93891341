//! The real binary, real processes and real signals: what a user sees, a behaviour a
//! file. One program, so that those that wait for a takeover wait side by side.

// clippy.toml allows these in tests, and knows a test by an attribute that the
// helpers lack.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

#[path = "behaviour/between_runs.rs"]
mod between_runs;
#[path = "behaviour/blocked_messages.rs"]
mod blocked_messages;
#[path = "behaviour/capture.rs"]
mod capture;
#[path = "behaviour/clocks.rs"]
mod clocks;
#[path = "behaviour/config_file.rs"]
mod config_file;
#[path = "behaviour/configuration.rs"]
mod configuration;
#[path = "behaviour/contention.rs"]
mod contention;
#[path = "behaviour/documentation.rs"]
mod documentation;
#[path = "behaviour/durability.rs"]
mod durability;
#[path = "behaviour/exit_codes.rs"]
mod exit_codes;
#[path = "behaviour/fair_share.rs"]
mod fair_share;
#[path = "behaviour/first_minutes.rs"]
mod first_minutes;
#[path = "behaviour/full_disk.rs"]
mod full_disk;
#[path = "behaviour/guarding.rs"]
mod guarding;
#[path = "behaviour/heartbeats.rs"]
mod heartbeats;
#[path = "behaviour/hooks.rs"]
mod hooks;
#[path = "behaviour/hostile.rs"]
mod hostile;
#[path = "behaviour/lease.rs"]
mod lease;
#[path = "behaviour/leftovers.rs"]
mod leftovers;
#[path = "behaviour/limits.rs"]
mod limits;
#[path = "behaviour/listings.rs"]
mod listings;
#[path = "behaviour/locked_store.rs"]
mod locked_store;
#[path = "behaviour/locks.rs"]
mod locks;
#[path = "behaviour/messages.rs"]
mod messages;
#[path = "behaviour/nesting.rs"]
mod nesting;
#[path = "behaviour/operators.rs"]
mod operators;
#[path = "behaviour/paths.rs"]
mod paths;
#[path = "behaviour/permissions.rs"]
mod permissions;
#[path = "behaviour/pid1.rs"]
mod pid1;
#[path = "behaviour/pipelines.rs"]
mod pipelines;
#[path = "behaviour/report.rs"]
mod report;
#[path = "behaviour/screens.rs"]
mod screens;
#[path = "behaviour/serving.rs"]
mod serving;
#[path = "behaviour/shared.rs"]
mod shared;
#[path = "behaviour/signals.rs"]
mod signals;
#[path = "behaviour/starving.rs"]
mod starving;
#[path = "behaviour/stopping.rs"]
mod stopping;
#[path = "behaviour/store_file.rs"]
mod store_file;
#[path = "behaviour/suspended.rs"]
mod suspended;
#[path = "behaviour/terminal.rs"]
mod terminal;
#[path = "behaviour/the_job.rs"]
mod the_job;
#[path = "behaviour/transparency.rs"]
mod transparency;
#[path = "behaviour/usage.rs"]
mod usage;
#[path = "behaviour/variables.rs"]
mod variables;
#[path = "behaviour/waiting.rs"]
mod waiting;

use support::programs;
