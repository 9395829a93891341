//! The store: what it holds, what is written, and what it loses.

use std::time::Duration;

use super::network::Sender;
use super::world::World;
use crate::run::model::group;
use crate::store::model::{ModelData, Server};
use crate::token::{Memory, NoteSwap, QueueEntry, Row, Served, SessionId, Stamp, Swap, Swapped};

impl World {
    pub(super) fn server(&self) -> Server {
        Server::named(&format!("s{}", self.server))
    }

    /// True if the store's note requires an observation.
    pub(super) fn is_observed(&self) -> bool {
        let note = self.store.incarnation.as_ref();
        note.is_some_and(|note| note.served != Served::Everything)
    }

    /// What the store may have forgotten.
    pub(super) fn memory(&self) -> Memory {
        self.store.memory(&self.server())
    }

    pub(super) fn row(&self) -> Option<&Row> {
        self.store.rows.get(&group())
    }

    /// The queue as the search tells states apart by it: the sessions, their order, and their last
    /// heartbeats.
    pub(super) fn queue(&self) -> Vec<(SessionId, Option<Stamp>)> {
        let now = self.store_time();
        let seen = |entry: &QueueEntry| {
            let alive = entry.is_alive(&now);
            (entry.waiter.session.clone(), alive.then_some(entry.seen_at))
        };
        self.store.queue_of(&group()).map(seen).collect()
    }

    /// Writes an operator's swap.
    pub(super) fn operate(&mut self, swap: &Swap, old_job_for: Duration, releases: bool) {
        let now = self.store_time();
        let holder = self.row().and_then(Row::session).cloned();
        self.before = None;
        self.store.swap(swap, &now);
        if let (true, Some(holder)) = (releases, holder) {
            self.excused.push((holder, self.moment().plus(old_job_for)));
        }
    }

    pub(super) fn change_clock(&mut self) {
        self.epoch += 1;
    }

    /// A failover to a server that had not yet received the last commit.
    pub(super) fn lose_commit(&mut self) {
        let left = self.before.take().unwrap_or_default();
        let lost = std::mem::replace(&mut self.store, left);
        match self.servers {
            // A snapshot was put back in place: the store does not show that, so its holder is
            // excused.
            1 => {
                self.put_back += 1;
                // A fence may be granted again without a trace, too.
                self.highest_fence = self.row().map_or(0, |row| row.fence.0);
                return self.excuse_holder(&lost);
            }
            // A server comes back: the note of the one in between is not lost.
            2 => self.store.keep_notes(&lost),
            _ => {}
        }
        self.fail_over();
    }

    /// Everything is lost, and another server has the store.
    pub(super) fn wipe(&mut self) {
        self.before = None;
        self.store = ModelData::default();
        self.fail_over();
    }

    fn excuse_holder(&mut self, lost: &ModelData) {
        let Some(row) = lost.rows.get(&group()) else {
            return;
        };
        let kept = self.row().and_then(Row::session) == row.session();
        if let (Some(holder), false) = (row.session(), kept) {
            let until = self.moment().plus(row.document.takeover_after);
            self.excused.push((holder.clone(), until));
        }
    }

    fn fail_over(&mut self) {
        self.server = (self.server + 1) % self.servers;
        self.change_clock();
    }

    pub(super) fn note(&mut self, swap: &NoteSwap) -> Swapped {
        let store = (self.left.commits > 0).then(|| self.store.clone());
        let swapped = self.store.note(swap, &self.store_time());
        if matches!(swapped, Swapped::Done(_)) {
            self.before = store;
        }
        swapped
    }

    pub(super) fn swap(&mut self, sender: &Sender, swap: &Swap) -> Swapped {
        let now = self.store_time();
        let before = self.row().cloned();
        let queue: Vec<QueueEntry> = self.store.queue_of(&group()).cloned().collect();
        let store = (self.left.commits > 0).then(|| self.store.clone());
        let swapped = self.store.swap(swap, &now);
        if matches!(swapped, Swapped::Done(_)) {
            self.before = store;
            self.check_swap(sender, swap, before.as_ref(), &queue, &now);
        }
        swapped
    }

    /// History decides nothing, so none is kept.
    pub(super) fn forget_history(&mut self) {
        self.store.runs.clear();
    }
}
