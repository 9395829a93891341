//! Invariants of the queue: no waiter is overtaken, and no wait is longer than requested.

use std::time::Duration;

use super::world::World;
use crate::run::ending::Ending;
use crate::run::machine::Wait;
use crate::run::model::group;
use crate::token::queue::{LIVES, position};
use crate::token::{Evidence, Look, Memory, QueueEntry, QueuePosition, Row, StoreTime, Waiter};

/// The clocks of nodes are wrong by at most one part in this number, so a waiter that has not
/// reached the store since its start is wrong about the store's time by that part of its life.
pub(super) const SLEWED: u64 = 25;
/// Additional tolerance of the tests.
const ALLOWED: Duration = Duration::from_secs(2);

impl World {
    /// What a session that asked to join the queue, or to stay in it, may not have got.
    pub(super) fn check_join(
        &mut self,
        process: usize,
        waiter: &Waiter,
        was_alive: bool,
        now: &StoreTime,
    ) {
        if !self.is_in_queue(waiter, now) {
            return;
        }
        if !was_alive {
            self.queued_since.insert(waiter.session.clone(), self.now);
        }
        let dead_for = self.processes[process].died_at.map(|at| self.now - at);
        let slewed = Duration::from_millis((self.now - self.processes[process].born) / SLEWED);
        if dead_for.is_some_and(|ms| Duration::from_millis(ms) > LIVES + ALLOWED + slewed) {
            self.violated(format!(
                "p{process} came into the queue, dead for {dead_for:?} ms"
            ));
        }
    }

    pub(super) fn is_in_queue(&self, waiter: &Waiter, now: &StoreTime) -> bool {
        let group = group();
        let mut queue = self.store.queue_of(&group);
        queue.any(|entry| entry.waiter == *waiter && entry.is_alive(now))
    }

    /// No session is granted the token past a waiter that has been in the queue since before the
    /// look, and that the rule would have let in then, and would now.
    pub(super) fn check_queue(&mut self, process: usize, before: &Row, now: &StoreTime) {
        let claim = self.processes[process].run.claim().clone();
        let handed = before.document.handoff.as_ref().map(|handoff| &handoff.to);
        if handed == Some(&claim.client) {
            return;
        }
        let timeout = u64::try_from(claim.timing.store_timeout.as_millis()).unwrap();
        let queue = std::mem::take(&mut self.queue_before);
        let mine = |entry: &QueueEntry| entry.waiter.session == claim.session;
        if self.queued_since.contains_key(&claim.session) && !queue.iter().any(mine) {
            // Its entry was deleted after its look: it had been suspended for a minute.
            return;
        }
        let stood = |entry: &&QueueEntry| {
            let since = self.queued_since.get(&entry.waiter.session);
            let own = entry.waiter.session == claim.session;
            own || since.is_some_and(|since| since + timeout < self.now)
        };
        let queue: Vec<QueueEntry> = queue.iter().filter(stood).cloned().collect();
        let mut looked = now.clone();
        looked.stamp.tick_ms -= i64::try_from(timeout).unwrap();
        looked.stamp.wall.0 -= i64::try_from(timeout).unwrap();
        let evidence = match self.evidence(process, Some(before)) {
            Evidence::Alive(_) => return,
            other => other,
        };
        let passed = |at: &StoreTime, queue: &[QueueEntry]| {
            let look = Look {
                row: Some(before),
                now: at,
                memory: &Memory::SOUND,
                position: QueuePosition::default(),
                evidence: &evidence,
                unchanged_for: Duration::MAX,
                heard: false,
            };
            position(&claim, &look, queue).ahead
        };
        // Its heartbeat may be younger than the look.
        let then: Vec<QueueEntry> = queue
            .iter()
            .filter(|entry| entry.is_alive(now))
            .cloned()
            .map(|mut entry| {
                entry.seen_at = looked.stamp;
                entry
            })
            .collect();
        let (now_ahead, then_ahead) = (passed(now, &queue), passed(&looked, &then));
        if now_ahead > 0 && then_ahead > 0 {
            self.violated(format!(
                "p{process} was granted the token past {now_ahead} ahead of it in the queue"
            ));
        }
    }

    /// Once the faults are over, no wait is longer than requested.
    pub(super) fn check_wait(&mut self, process: usize) {
        let p = &self.processes[process];
        let Wait::For(limit) = p.wait else { return };
        let ran = matches!(p.run.machine.ending(), Some(Ending::Ran { .. }));
        let since_heal = self.healed && p.born >= super::world::HEAL_AT + 10_000;
        if !since_heal || ran || p.stopped {
            return;
        }
        let timing = p.run.claim().timing;
        let latest = limit.max(Duration::from_secs(1)) + timing.store_timeout * 2 + LIVES;
        let took = self.moment(process).0;
        if took > latest {
            self.violated(format!(
                "p{process} waited {took:?}, {limit:?} was asked for"
            ));
        }
    }
}
