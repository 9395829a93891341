//! The records that a run leaves when it is over, and the pruning of old ones.

use std::time::Duration;

use super::world::World;
use crate::run::ending::Ending;
use crate::run::model::{carried_out, group};
use crate::store::model::ModelData;
use crate::store::{OUTPUT_BATCH, Request, Retention};
use crate::token::{Fence, Outcome, OutputRecord};

/// The fences of the records of the group.
struct Records {
    runs: Vec<Fence>,
    /// Of the newest run that succeeded.
    success: Option<Fence>,
    /// The newest first.
    outputs: Vec<Fence>,
}

impl Records {
    fn of(store: &ModelData) -> Self {
        let succeeded = store
            .runs
            .iter()
            .filter(|run| run.outcome == Outcome::Succeeded);
        let mut outputs: Vec<Fence> = store.outputs.iter().map(|it| it.fence).collect();
        outputs.sort_unstable_by(|one, other| other.cmp(one));
        Self {
            runs: store.runs.iter().map(|run| run.fence).collect(),
            success: succeeded.map(|run| run.fence).max(),
            outputs,
        }
    }
}

impl World {
    /// A run that is over keeps its output, and prunes old records.
    pub(super) fn last_requests(&mut self, process: usize) {
        let Some(retention) = self.retention else {
            return;
        };
        let p = &self.processes[process];
        let is_recorded = matches!(
            p.run.machine.ending(),
            Some(Ending::Ran { recorded: true, .. })
        );
        let Some(fence) = p.fence.filter(|_| is_recorded) else {
            return;
        };
        if self.nodes[p.node].cut_off || self.dice.one_in(20) {
            return;
        }
        let session = p.run.session().clone();
        let output = OutputRecord::new(group(), fence, session, 5, b"words");
        self.carry_out(&Request::KeepOutput(Box::new(output)));
        let before = Records::of(&self.store);
        let group = group();
        self.carry_out(&Request::Prune { group, retention });
        self.check_pruned(&before, retention);
    }

    fn carry_out(&mut self, request: &Request) {
        let now = self.store_time();
        carried_out(request, &mut self.store, &self.server, &now);
    }

    /// No record goes before its time, however the clock is set; and what is too much goes.
    fn check_pruned(&mut self, before: &Records, retention: Retention) {
        let after = Records::of(&self.store);
        let gone = |before: &[Fence], after: &[Fence]| -> Vec<Fence> {
            let gone = before.iter().filter(|fence| !after.contains(fence));
            gone.copied().collect()
        };
        let count = retention.outputs.count as usize;
        let last_kept = before.outputs.get(count.saturating_sub(1)).copied();
        let runs = gone(&before.runs, &after.runs);
        let outputs = gone(&before.outputs, &after.outputs);
        self.tally.pruned += (runs.len() + outputs.len()) as u64;
        if after.runs.iter().max() != before.runs.iter().max() || after.success != before.success {
            self.violated("the newest run, or the newest success, was pruned".to_owned());
        }
        for fence in runs {
            self.check_age(fence, retention.history);
        }
        for fence in outputs {
            if last_kept.is_none_or(|last| last <= fence) {
                self.check_age(fence, retention.outputs.retain);
            }
        }
        if after.outputs.len()
            > count.max(before.outputs.len().saturating_sub(OUTPUT_BATCH as usize))
        {
            let left = after.outputs.len();
            self.violated(format!("{left} outputs are left, of {count}"));
        }
    }

    fn check_age(&mut self, fence: Fence, retain: Duration) {
        let granted = self.granted_at.get(&fence.0).copied().unwrap_or_default();
        let age = Duration::from_millis(self.now - granted);
        if age < retain {
            self.violated(format!("a record was pruned after {age:?}, not {retain:?}"));
        }
    }
}
