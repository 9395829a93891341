//! The machine, phase by phase and event by event.

#[path = "machine_tests/forgetting.rs"]
mod forgetting;
#[path = "machine_tests/progress.rs"]
mod progress;
#[path = "machine_tests/rig.rs"]
mod rig;
#[path = "machine_tests/table.rs"]
mod table;
#[path = "machine_tests/targeted.rs"]
mod targeted;
#[path = "machine_tests/waiting.rs"]
mod waiting;

use super::*;

impl Machine {
    /// The phase, for the search: everything that can change.
    pub(in crate::run) const fn phase(&self) -> &impl std::fmt::Debug {
        &self.phase
    }
}
