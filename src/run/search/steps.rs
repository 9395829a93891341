//! The possible next steps and their results.

use std::time::Duration;

use super::Scenario;
use super::world::World;
use crate::token::operator::{Act, Effect, perform};
use crate::token::{ClientId, Others, Pause, Version};

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Pass,
    Start(usize),
    Exchange(usize),
    Arrive(usize),
    Deliver(usize),
    MainExits(usize),
    TreeEnds(usize),
    OrphanEnds(usize),
    Thaw(usize),
    Resume,
    // Faults.
    TimeOut(usize),
    ArriveAdrift(usize),
    Kill(usize),
    PowerOff(usize),
    Freeze(usize),
    Operate(&'static str),
    ChangeClock,
    LoseCommit,
    Wipe,
}

impl Action {
    pub(super) const fn is_fault(self) -> bool {
        !matches!(
            self,
            Self::Pass
                | Self::Start(_)
                | Self::Exchange(_)
                | Self::Arrive(_)
                | Self::Deliver(_)
                | Self::MainExits(_)
                | Self::TreeEnds(_)
                | Self::OrphanEnds(_)
                | Self::Thaw(_)
                | Self::Resume
        )
    }
}

impl World {
    /// The possible next steps.
    pub(super) fn actions(&self, scenario: &Scenario) -> Vec<Action> {
        let mut all = Vec::new();
        let mut may = |condition: bool, action| {
            if condition {
                all.push(action);
            }
        };
        may(self.may_pass(), Action::Pass);
        for (n, client) in self.clients.iter().enumerate() {
            let process = client.process.as_ref();
            let awake = !client.frozen;
            let may_start = process.is_none() && self.left.starts[n] > 0;
            may(awake && may_start, Action::Start(n));
            may(!awake, Action::Thaw(n));
            may(n == 0 && awake && self.left.frozen > 0, Action::Freeze(n));
            may(awake && client.orphan.is_some(), Action::OrphanEnds(n));
            may(!client.adrift.is_empty(), Action::ArriveAdrift(n));
            let Some(process) = process else { continue };
            may(n == 0 && self.left.killed > 0 && awake, Action::Kill(n));
            may(n == 0 && self.left.off > 0, Action::PowerOff(n));
            may(awake && process.job_runs(), Action::MainExits(n));
            may(awake && process.has_leftovers(), Action::TreeEnds(n));
            let Some(out) = &process.out else { continue };
            // Without slow requests and suspensions a call is one step: writes of others before its
            // answer might as well come after it.
            let sent = out.answer.is_none();
            may(sent && awake, Action::Exchange(n));
            may(
                sent && (!awake || (n == 0 && self.left.slow > 0)),
                Action::Arrive(n),
            );
            may(!sent && awake, Action::Deliver(n));
            let late = self.is_late(out);
            may(late && awake, Action::TimeOut(n));
        }
        let row = self.row();
        may(
            row.is_some_and(|row| row.document.paused.is_some()),
            Action::Resume,
        );
        for act in scenario.acts {
            may(row.is_some() && self.left.acts > 0, Action::Operate(act));
        }
        let observed = row.is_none() && self.is_observed();
        may(
            self.left.clocks > 0 && (row.is_some() || observed),
            Action::ChangeClock,
        );
        may(
            self.before.is_some() && self.left.commits > 0,
            Action::LoseCommit,
        );
        may(self.left.wipes > 0 && row.is_some(), Action::Wipe);
        all
    }

    /// The state after one step.
    pub(super) fn after(&self, action: Action, scenario: &Scenario) -> Self {
        let mut next = self.clone();
        next.granted = false;
        match action {
            Action::Pass => next.pass(),
            Action::Start(n) => next.start(n, scenario),
            Action::Exchange(n) => {
                next.arrive(n);
                next.deliver(n);
            }
            Action::Arrive(n) => next.arrive(n),
            Action::Deliver(n) => next.deliver(n),
            Action::MainExits(n) => {
                next.main_exits(n);
                if !scenario.leftovers {
                    next.tree_ends(n);
                }
            }
            Action::TreeEnds(n) => next.tree_ends(n),
            Action::OrphanEnds(n) => next.orphan_ends(n),
            Action::Thaw(n) => {
                next.clients[n].frozen = false;
                next.catch_up(n);
            }
            Action::Resume => next.operated("resume"),
            Action::TimeOut(n) => next.time_out(n),
            Action::ArriveAdrift(n) => next.arrive_adrift(n),
            Action::Kill(n) => {
                next.left.killed -= 1;
                next.supervisor_dies(n, false);
            }
            Action::PowerOff(n) => {
                next.left.off -= 1;
                next.power_off(n);
            }
            Action::Freeze(n) => {
                next.left.frozen -= 1;
                next.clients[n].frozen = true;
            }
            Action::Operate(act) => {
                next.left.acts -= 1;
                next.operated(act);
            }
            Action::ChangeClock => {
                next.left.clocks -= 1;
                next.change_clock();
            }
            Action::LoseCommit => {
                next.left.commits -= 1;
                next.lose_commit();
            }
            Action::Wipe => {
                next.left.wipes -= 1;
                next.wipe();
            }
        }
        next.forget_what_cannot_happen();
        next.check_overlap();
        next
    }

    fn operated(&mut self, act: &str) {
        let Some(row) = self.row() else { return };
        let act = match act {
            "pause" => Act::Pause(Pause {
                by: "operator".into(),
                reason: "because".into(),
                until: None,
                other: Others::new(),
            }),
            "resume" => Act::Resume(None),
            "hand off to b" => Act::Handoff(ClientId::new("b").unwrap()),
            "revoke" => Act::Revoke,
            "expect b" => Act::Expect(Some(ClientId::new("b").unwrap())),
            _ => Act::Release { force: true },
        };
        // Its version belongs to no session: there is at most one such act, and a resume.
        let version = Version::from_stored(row.version.number() - 500_000);
        let limit = Duration::from_secs(1);
        let effect = perform(&act, row, &self.store_time(), limit, version);
        if let Effect::Swap { swap, old_job_for } = effect {
            let releases = matches!(act, Act::Release { .. });
            self.operate(&swap, old_job_for, releases);
        }
    }
}
