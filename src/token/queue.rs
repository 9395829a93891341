//! The queue: the waiters for a token, and their order. Pure.
//!
//! Arrival order holds among the waiters that the rule would let in. A waiter that the rule refuses
//! (paused for all, reserved for another, too soon) keeps its position and delays no other. The
//! rule itself decides that, as if the waiter came first.

use std::time::Duration;

use super::claim::{About, Claim, Look, QueuePosition};
use super::names::{ClientId, SessionId};
use super::rule::{Verdict, decide};
use super::time::{ClockEpoch, Stamp, StoreTime, Until};

/// The longest pause between two heartbeats of a waiter; the rest of a second is random.
pub const STAMP_EVERY: Duration = Duration::from_millis(800);

/// A waiter without a heartbeat for so long leaves the queue. Two heartbeats may be late. A dead
/// waiter is gone within three seconds; within five if its last heartbeat was still under way.
pub const LIVES: Duration = Duration::from_millis(2_500);

/// The expiry of a heartbeat that is sent `passed` after the store's time was `seen`. A heartbeat
/// that is under way for longer than [`LIVES`] proves nothing: its sender may be dead by then.
pub fn expiry(seen: &StoreTime, passed: Duration, store_timeout: Duration) -> Until {
    seen.until(passed.saturating_add(store_timeout.min(LIVES)))
}

/// After so long without a heartbeat an entry is deleted.
pub const FORGOTTEN: Duration = Duration::from_mins(1);

/// A session that waits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Waiter {
    pub session: SessionId,
    pub client: ClientId,
    /// True if the waiter takes the token back as the expected client.
    pub failback: bool,
}

/// A waiter's entry in the queue, as a store keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QueueEntry {
    pub waiter: Waiter,
    /// The order of arrival: a lower number comes first.
    pub number: i64,
    /// The time of the last heartbeat.
    pub seen_at: Stamp,
    /// The clock epoch of that time.
    pub epoch: ClockEpoch,
}

impl Waiter {
    /// The waiter with this claim.
    pub fn of(claim: &Claim) -> Self {
        Self {
            session: claim.session.clone(),
            client: claim.client.clone(),
            failback: claim.failback,
        }
    }

    /// The waiter's claim, with the terms of another: the rule judges none of those here.
    fn claim(&self, like: &Claim) -> Claim {
        Claim {
            group: like.group.clone(),
            client: self.client.clone(),
            session: self.session.clone(),
            expected: None,
            failback: self.failback,
            nested_in: None,
            timing: like.timing,
            about: About::default(),
        }
    }
}

impl QueueEntry {
    /// True if the waiter is still in the queue. A heartbeat of another clock epoch does not count:
    /// a live waiter sends the next within a second.
    pub fn is_alive(&self, now: &StoreTime) -> bool {
        !self.lives_for(now).is_zero()
    }

    /// How much longer the waiter stays without a further heartbeat.
    pub fn lives_for(&self, now: &StoreTime) -> Duration {
        let age = now.age_of(self.seen_at, Some(&self.epoch));
        age.map_or(Duration::ZERO, |age| LIVES.saturating_sub(age))
    }
}

/// The live waiters before this session; all live waiters, if this session is none of them.
pub fn before<'a>(
    session: &'a SessionId,
    queue: &'a [QueueEntry],
    now: &'a StoreTime,
) -> impl Iterator<Item = &'a QueueEntry> {
    let own = queue.iter().find(|entry| entry.waiter.session == *session);
    let rank = |entry: &'a QueueEntry| (entry.number, &entry.waiter.session);
    let own = own.map(rank);
    queue
        .iter()
        .filter(|entry| entry.is_alive(now))
        .filter(move |entry| own.is_none_or(|own| rank(entry) < own))
}

/// The claimant's position among the waiters that the rule would let in after this look.
///
/// How long the claimant has observed the row says nothing about a waiter: each observes by itself, and a
/// waiter takes the token when its own observation is over. So a waiter that must observe does not count.
/// If it did, waiters that leave before the end of their observation would keep all others out. One that
/// gives way does not count either.
pub fn position(claim: &Claim, look: &Look<'_>, queue: &[QueueEntry]) -> QueuePosition {
    let first = Look {
        position: QueuePosition {
            ahead: 0,
            waiting: true,
        },
        unchanged_for: Duration::ZERO,
        ..*look
    };
    let gives_way = |client: &ClientId| look.row.is_some_and(|row| row.gives_way(client));
    let would_be_let_in = |entry: &&QueueEntry| {
        if gives_way(&entry.waiter.client) {
            return false;
        }
        let verdict = decide(&entry.waiter.claim(claim), &first).verdict;
        !matches!(verdict, Verdict::Refused(_) | Verdict::Observe(_))
    };
    let ahead = before(&claim.session, queue, look.now);
    QueuePosition {
        ahead: ahead.filter(would_be_let_in).count(),
        waiting: queue
            .iter()
            .any(|entry| entry.waiter.session == claim.session),
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
