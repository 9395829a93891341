//! The line: who waits for a token, and who of them comes before whom. Pure.
//!
//! Arrival order holds among those whom the rule would let in: somebody in the queue whom it
//! refuses (it is paused for all, reserved for another, too soon) stands there, and holds
//! up nobody. Whether it would is asked of the rule itself, as if that one came first.

use std::time::Duration;

use super::claim::{About, Claim, Look, QueuePosition};
use super::names::{ClientId, SessionId};
use super::rule::{Verdict, decide};
use super::time::{ClockEpoch, Stamp, StoreTime, Until};

/// How often who waits says that it lives, at most; the rest of a second is left to chance.
pub const STAMP_EVERY: Duration = Duration::from_millis(800);

/// Who has not said for so long that it lives is not in the queue any more: two signs of life
/// may be late, and a dead one is gone within three seconds; within five if its last one was
/// still under way.
pub const LIVES: Duration = Duration::from_millis(2_500);

/// Until when a sign of life may reach the store that is sent `passed` after the store's time
/// was `seen`. One that is under way for longer than [`LIVES`] proves nothing: who has sent it
/// may be dead by then.
#[must_use]
pub fn expiry(seen: &StoreTime, passed: Duration, store_timeout: Duration) -> Until {
    seen.until(passed.saturating_add(store_timeout.min(LIVES)))
}

/// After so long without a sign of life a place is given up for good.
pub const FORGOTTEN: Duration = Duration::from_mins(1);

/// Who waits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Waiter {
    pub session: SessionId,
    /// Which client it is of.
    pub client: ClientId,
    /// Whether it takes the token back as the expected client.
    pub failback: bool,
}

/// Somebody's position in the queue, as a store keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QueueEntry {
    pub waiter: Waiter,
    /// The order of arrival: who has a lower number comes first.
    pub number: i64,
    /// The last sign of life.
    pub seen_at: Stamp,
    /// Which clock stamped it.
    pub epoch: ClockEpoch,
}

impl Waiter {
    /// Who waits with this claim.
    #[must_use]
    pub fn of(claim: &Claim) -> Self {
        Self {
            session: claim.session.clone(),
            client: claim.client.clone(),
            failback: claim.failback,
        }
    }

    /// The claim that it would make, with the terms of another: the rule judges none of those.
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
    /// Whether it is still in the queue. A sign of life by another clock counts as none: who
    /// lives gives the next within a second.
    #[must_use]
    pub fn is_alive(&self, now: &StoreTime) -> bool {
        !self.lives_for(now).is_zero()
    }

    /// How much longer it is, if it gives no further sign of life.
    #[must_use]
    pub fn lives_for(&self, now: &StoreTime) -> Duration {
        let age = now.age_of(self.seen_at, Some(&self.epoch));
        age.map_or(Duration::ZERO, |age| LIVES.saturating_sub(age))
    }
}

/// Those in the queue who live and have come before this session; all who live, if it does not wait.
pub fn before<'a>(
    session: &'a SessionId,
    queue: &'a [QueueEntry],
    now: &'a StoreTime,
) -> impl Iterator<Item = &'a QueueEntry> {
    let own = queue.iter().find(|entry| entry.waiter.session == *session);
    let rank = |entry: &QueueEntry| (entry.number, entry.waiter.session.clone());
    let own = own.map(rank);
    queue
        .iter()
        .filter(|entry| entry.waiter.session != *session && entry.is_alive(now))
        .filter(move |entry| own.as_ref().is_none_or(|own| rank(entry) < *own))
}

/// The claimant's place among those whom the rule would let in after this look.
#[must_use]
pub fn position(claim: &Claim, look: &Look<'_>, queue: &[QueueEntry]) -> QueuePosition {
    let first = Look {
        position: QueuePosition {
            ahead: 0,
            waiting: true,
        },
        ..*look
    };
    let would_be_let_in = |entry: &&QueueEntry| {
        let verdict = decide(&entry.waiter.claim(claim), &first).verdict;
        !matches!(verdict, Verdict::Refused(_))
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
