//! What surrounds a run's machine, as values: its guard, its job, and the answers of a store.
//! The simulation and the search share these. Neither time nor chance is in them, and no
//! invariant: when something happens, and what must never happen, each world says for itself.

mod guard;
mod job;
mod requests;
mod run;

use crate::token::GroupName;
pub(super) use guard::{Due, Guard, Obeyed};
pub(super) use job::Job;
pub(super) use requests::{carried_out, row_with_locks, unanswered, with_evidence};
pub(super) use run::Run;

/// The group of every run in both worlds.
pub(super) fn group() -> GroupName {
    GroupName::new("g").unwrap()
}
