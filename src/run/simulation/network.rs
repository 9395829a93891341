//! The network, and what the store does with what comes through it.

use super::happening::What;
use super::world::World;
use crate::run::event::Event;
use crate::run::model::{carried_out, unanswered, with_evidence};
use crate::store::Request;
use crate::store::model::ModelData;
use crate::token::{NoteSwap, StoreTime, Swap, Swapped};

/// History is cut to this length in a world without retention: no check reads further back.
const RUNS_KEPT: usize = 20;

impl World {
    /// A process sends a request: the request or its answer may be lost or late.
    pub(super) fn send(&mut self, process: usize, call: u64, request: Request) {
        let timing = self.processes[process].run.claim().timing;
        let timeout = u64::try_from(timing.store_timeout.as_millis()).unwrap();
        let error = unanswered(&request);
        self.after(
            timeout,
            What::Answer {
                process,
                call,
                event: Box::new(error),
            },
        );
        let node = self.processes[process].node;
        if self.nodes[node].cut_off || (!self.healed && self.dice.one_in(20)) {
            return self.say(|| format!("p{process} call {call} is lost on its way"));
        }
        let delay = self.delay(timeout);
        self.after(
            delay,
            What::Arrive {
                process,
                call,
                request: Box::new(request),
            },
        );
    }

    /// A delay: mostly short, sometimes longer than the sender waits.
    fn delay(&mut self, timeout: u64) -> u64 {
        if !self.healed && self.dice.one_in(12) {
            self.dice.within(0, 4 * timeout)
        } else {
            self.dice.within(0, 20)
        }
    }

    pub(super) fn arrive(&mut self, process: usize, call: u64, request: &Request) {
        let now = self.store_time();
        let answer = match request {
            Request::Swap(swap) => Event::Swapped(Ok(self.swap(process, swap, &now))),
            Request::Note(swap) => Event::Swapped(Ok(self.note(process, swap, &now))),
            Request::Join(_, waiter, ..) => {
                let was_alive = self.is_in_queue(waiter, &now);
                let looked = carried_out(request, &mut self.store, &self.server, &now);
                self.check_join(process, waiter, was_alive, &now);
                looked
            }
            other => carried_out(other, &mut self.store, &self.server, &now),
        };
        let answer = with_evidence(answer, |row| self.evidence(process, row));
        let node = self.processes[process].node;
        if self.nodes[node].cut_off || (!self.healed && self.dice.one_in(20)) {
            return self.say(|| format!("p{process} call {call}: its answer is lost"));
        }
        let delay = self.delay(2_000);
        self.after(
            delay,
            What::Answer {
                process,
                call,
                event: Box::new(answer),
            },
        );
    }

    fn note(&mut self, process: usize, swap: &NoteSwap, now: &StoreTime) -> Swapped {
        let saved = self.lossy.then(|| self.store.clone());
        let swapped = self.store.note(swap, now);
        self.say(|| format!("p{process} notes {:?}: {swapped:?}", swap.to));
        if matches!(swapped, Swapped::Done(_)) {
            self.committed(saved);
        }
        swapped
    }

    fn swap(&mut self, process: usize, swap: &Swap, now: &StoreTime) -> Swapped {
        let before = self.store.rows.get(&swap.to.group).cloned();
        let saved = self.lossy.then(|| self.store.clone());
        self.queue_before.clear();
        let queue = self.store.queue_of(&swap.to.group);
        self.queue_before.extend(queue.cloned());
        let swapped = self.store.swap(swap, now);
        self.say(|| {
            let (stamp, version) = (swap.stamp, swap.to.version.number() % 100_000);
            let fence = swap.to.fence;
            let answer = match &swapped {
                Swapped::Done(_) => "done",
                Swapped::Conflict => "conflict",
                Swapped::Expired(_) => "expired",
            };
            format!("p{process} swap {stamp:?} v{version} fence {fence}: {answer}")
        });
        if matches!(swapped, Swapped::Done(_)) {
            self.committed(saved);
            if self.retention.is_none() {
                let old = self.store.runs.len().saturating_sub(RUNS_KEPT);
                self.store.runs.drain(..old);
            }
            self.check_swap(process, swap, before.as_ref(), now);
        }
        swapped
    }

    /// Keeps the store's state before its last commits, for a failover to lose them.
    pub(super) fn committed(&mut self, before: Option<ModelData>) {
        self.older.extend(before);
        if self.older.len() > 3 {
            self.older.remove(0);
        }
    }
}
