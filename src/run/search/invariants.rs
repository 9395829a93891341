//! What must never happen.

use super::network::Sender;
use super::world::{SECOND, World};
use crate::moment::Moment;
use crate::token::queue;
use crate::token::{QueueEntry, Row, SessionId, StampOf, State, StoreTime, Swap};

impl World {
    /// What a swap that was carried out may not have done.
    pub(super) fn check_swap(
        &mut self,
        sender: &Sender,
        swap: &Swap,
        before: Option<&Row>,
        queue: &[QueueEntry],
        now: &StoreTime,
    ) {
        match swap.stamp {
            Some(StampOf::Granted) => {
                let mut looked = now.clone();
                looked.stamp.tick_ms = swap.expiry.tick_ms() - 1_000;
                self.check_queue(&sender.session, before, queue, &looked);
                self.check_grant(swap, before, now, sender.died_at);
            }
            Some(StampOf::Heartbeat) if before.and_then(Row::session) != Some(&sender.session) => {
                self.violated("a heartbeat overwrote another session's grant");
            }
            Some(StampOf::Released) => {
                let process = self.clients[sender.client].process.as_ref();
                if process.is_some_and(|process| process.run.job_alive()) {
                    self.violated("the token was released while its job was alive");
                }
            }
            Some(StampOf::Heartbeat | StampOf::Created) | None => {}
        }
    }

    /// Of two live waiters, the earlier one is granted the token first, unless an operator has
    /// named the other. A waiter that seemed dead at that look may have come back since.
    fn check_queue(
        &mut self,
        session: &SessionId,
        before: Option<&Row>,
        queue: &[QueueEntry],
        looked: &StoreTime,
    ) {
        let in_queue = queue.iter().any(|entry| entry.waiter.session == *session);
        let named = before.is_some_and(|row| row.document.handoff.is_some());
        let back = |entry: &&QueueEntry| entry.seen_at.tick_ms >= looked.stamp.tick_ms;
        let before = queue::before(session, queue, looked);
        let passed = before.filter(|entry| !back(entry)).count();
        if in_queue && !named && passed > 0 && self.all_awake() {
            self.violated("the token was granted past a live waiter");
        }
    }

    /// True if no waiter's heartbeat is late.
    fn all_awake(&self) -> bool {
        self.clients.iter().all(|client| !client.frozen)
    }

    fn check_grant(
        &mut self,
        swap: &Swap,
        before: Option<&Row>,
        now: &StoreTime,
        died_at: Option<Moment>,
    ) {
        self.granted = true;
        let fence = swap.to.fence.0;
        if fence <= self.highest_fence {
            self.violated("the fence did not rise");
        }
        self.highest_fence = fence;
        if died_at.is_some_and(|died| self.moment() > died.plus(SECOND)) {
            self.violated("the token was granted to a process long dead");
        }
        let Some(before) = before else { return };
        if before.document.paused.is_some() {
            self.violated("a paused token was granted");
        }
        if let State::Idle { client } = &before.state {
            let taker = swap.to.client_bound();
            let age = before.age(now);
            let young = age.is_some_and(|age| age < before.document.keep);
            let handed = before.document.handoff.as_ref().map(|h| &h.to) == taker;
            let waited = swap.leaves.is_some();
            if young && !handed && !waited && taker != Some(client) {
                self.violated("a slot that has just run was granted to another");
            }
        }
    }

    /// Never two jobs alive at once.
    pub(super) fn check_overlap(&mut self) {
        let mut alive = 0;
        for client in self.clients.iter().filter(|client| !client.frozen) {
            let runs = client.process.as_ref().filter(|p| p.run.job_alive());
            let sessions = runs.map(|p| p.run.session());
            let orphan = client.orphan.as_ref().map(|orphan| &orphan.session);
            for session in sessions.into_iter().chain(orphan) {
                let excused = |(other, _): &(SessionId, Moment)| other == session;
                alive += usize::from(!self.excused.iter().any(excused));
            }
        }
        if alive > 1 {
            self.violated("two jobs are alive");
        }
    }
}
