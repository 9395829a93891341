//! What must never happen.

use super::world::World;
use crate::token::swap::EPOCH_FENCE_STEP;
use crate::token::{Row, StampOf, State, StoreTime, Swap};

impl World {
    /// What a swap that was carried out may not have done.
    pub(super) fn check_swap(
        &mut self,
        process: usize,
        swap: &Swap,
        before: Option<&Row>,
        now: &StoreTime,
    ) {
        let session = self.processes[process].run.session().clone();
        match swap.stamp {
            Some(StampOf::Granted) => self.check_grant(process, swap, before, now),
            Some(StampOf::Heartbeat) => {
                if before.and_then(Row::session) != Some(&session) {
                    self.violated(format!(
                        "p{process}'s heartbeat overwrote another session's grant"
                    ));
                }
            }
            Some(StampOf::Released) => {
                if self.processes[process].run.job_alive() {
                    self.violated(format!("p{process} released while its job was alive"));
                }
            }
            Some(StampOf::Created) | None => {}
        }
    }

    fn check_grant(&mut self, process: usize, swap: &Swap, before: Option<&Row>, now: &StoreTime) {
        self.tally.grants += 1;
        self.granted_since_heal |= self.healed;
        self.processes[process].fence = Some(swap.to.fence);
        let fence = swap.to.fence.0;
        self.granted_at.insert(fence, self.now);
        if fence <= self.highest_fence {
            let highest = self.highest_fence;
            self.violated(format!("fence {fence} was granted after {highest}"));
        }
        self.highest_fence = fence;
        let other_epoch = |row: &Row| row.document.granted_epoch.as_ref() != Some(&now.epoch);
        let leaps = fence >= now.stamp.wall.0 + EPOCH_FENCE_STEP;
        if leaps || before.is_none_or(other_epoch) {
            self.last_leap_of_fence = self.now;
            self.behind = 0;
        }
        let timing = self.processes[process].run.claim().timing;
        if let Some(died) = self.processes[process].died_at {
            let timeout = u64::try_from(timing.store_timeout.as_millis()).unwrap();
            if self.now > died + timeout {
                self.violated(format!(
                    "the token was granted to p{process}, a dead process"
                ));
            }
        }
        let Some(before) = before else { return };
        // A pause that ends by the calendar may end between the look and the swap, and begin again
        // when the wall clock leaps.
        if before
            .document
            .paused
            .as_ref()
            .is_some_and(|p| p.until.is_none())
        {
            self.violated(format!("p{process} was granted a paused token"));
        }
        self.check_queue(process, before, now);
        let acquired = before
            .acquired_at()
            .zip(before.document.granted_epoch.as_ref());
        let age = acquired.and_then(|(at, epoch)| now.age_of(at, Some(epoch)));
        if age.is_some_and(|age| age < before.document.not_before) {
            self.violated(format!(
                "p{process} was granted a token within its --at-least"
            ));
        }
        let client = &self.processes[process].run.claim().client;
        if before.client_bound().is_some_and(|bound| bound != client) {
            self.tally.takeovers += 1;
        }
        if let State::Idle { client: bound } = &before.state {
            let young = before
                .age(now)
                .is_some_and(|age| age < before.document.keep);
            let handed = before
                .document
                .handoff
                .as_ref()
                .is_some_and(|h| h.to == *client);
            let waited = swap.leaves.is_some();
            if bound != client && young && !handed && !waited {
                self.violated(format!(
                    "p{process} was granted a token whose slot has just run"
                ));
            }
        }
        if before.session().is_some() {
            self.tally.losses += 1;
        }
    }

    /// The invariant: never two jobs alive at once.
    pub(super) fn check_overlap(&mut self) {
        let processes = &self.processes;
        self.with_jobs.retain(|it| processes[*it].run.job_alive());
        let is_awake = |it: &usize| !self.nodes[processes[*it].node].suspended;
        let alive: Vec<usize> = self.with_jobs.iter().copied().filter(is_awake).collect();
        for (i, one) in alive.iter().enumerate() {
            for other in &alive[i + 1..] {
                let excused = [one, other].iter().any(|p| {
                    let session = self.processes[**p].run.session();
                    self.excused
                        .get(session)
                        .is_some_and(|until| self.now <= *until)
                });
                if !excused {
                    self.violated(format!("two jobs are alive: p{one}'s and p{other}'s"));
                }
            }
        }
    }
}
