//! Waiting in the queue: what [`Seeking`] does with a refusal if it may wait.

use std::fmt;
use std::time::Duration;

use super::{Seeking, SeekingState};
use crate::moment::Moment;
use crate::run::ending::Ending;
use crate::run::event::Note;
use crate::run::machine::{Next, Step, Wait};
use crate::store::{Reading, StoreError};
use crate::token::queue::{self, STAMP_EVERY};
use crate::token::{Clause, QueueEntry, Refusal, StoreTime};

/// The shortest time between two looks that nothing rang for.
pub(super) const SHORTEST: Duration = Duration::from_millis(10);

/// How long the end of a run waits to have left the line. Who dies without having left it
/// holds up nobody for longer than [`line::LIVES`].
const LEAVE: Duration = Duration::from_millis(25);

/// How much later than the one before it everybody in the queue looks when the store rings: whose
/// turn it is has the processor and the store to itself.
const TURN: Duration = Duration::from_millis(10);

/// It looks by then all the same, however many are before it.
const LAST_TURN: Duration = Duration::from_millis(100);

/// Without an answer for so long the store counts as away.
pub(super) const AWAY: Duration = Duration::from_secs(1);

/// A store time, and when it was heard of on the session's own clock.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HeardTime {
    time: StoreTime,
    heard_at: Moment,
}

/// A session's wait in the queue.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Queued {
    /// Since when it waits.
    pub(super) since: Option<Moment>,
    /// It asked to be in the queue at least once.
    joined: bool,
    /// When the next sign of life is due; `None` while none is to be given.
    stamp_at: Option<Moment>,
    /// The last store time seen: what is sent expires by it.
    seen: Option<HeardTime>,
    /// The last refusal, with its clause.
    last: Option<(Clause, Refusal)>,
    /// How many were before it then.
    ahead: u32,
    /// For how much longer the store was to be observed at the last look.
    pub(super) observing: Option<Duration>,
    /// The store rang, and a look is due for that.
    pub(super) rung: bool,
}

/// Shows what decides, and nothing of what is only told at the end: the search tells
/// states apart by it.
impl fmt::Debug for Queued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queued")
            .field("waits", &self.since.is_some())
            .field("joined", &self.joined)
            .field("stamp_at", &self.stamp_at)
            .field("seen", &self.seen)
            .field("ahead", &self.ahead)
            .field("rung", &self.rung)
            .finish_non_exhaustive()
    }
}

impl Queued {
    pub(super) const fn new() -> Self {
        Self {
            since: None,
            joined: false,
            stamp_at: None,
            seen: None,
            last: None,
            ahead: 0,
            observing: None,
            rung: false,
        }
    }

    pub(super) const fn is_joined(&self) -> bool {
        self.joined
    }

    /// Why not now, should the wait end before the next look.
    pub(super) fn refused(&mut self, clause: Clause, why: Refusal) {
        self.last = Some((clause, why));
    }

    pub(super) fn is_due(&self, now: Moment) -> bool {
        self.stamp_at.is_some_and(|at| now >= at)
    }

    /// Notes the store's time that a look has brought, for who waits.
    pub(super) fn saw_time(&mut self, step: &Step<'_>, time: &StoreTime) {
        if step.limits.wait != Wait::No {
            self.seen = Some(HeardTime {
                time: time.clone(),
                heard_at: step.now,
            });
        }
    }

    /// Gets into the line, or stays in it. A part of the pause until the next time is left
    /// to chance, so that many do not come at once.
    pub(super) fn stamp(&mut self, step: &mut Step<'_>) {
        let Some(HeardTime { time, heard_at }) = &self.seen else {
            // Only a look leads into the line.
            return step.read();
        };
        let passed = step.now.since(*heard_at);
        let expiry = queue::expiry(time, passed, step.claim.timing.store_timeout);
        let chance = Duration::from_millis((step.draw)() % 200);
        self.stamp_at = Some(step.now.plus(STAMP_EVERY + chance));
        self.joined = true;
        step.join(expiry);
    }
}

impl Seeking {
    /// Whether a look is worth it as soon as the store rings.
    pub(crate) const fn listens(&self) -> bool {
        matches!(self.state, SeekingState::Waiting { .. })
            && self.queued.joined
            && !self.queued.rung
            && self.trouble.is_none()
    }

    /// The store has rung. Who is first looks at once, the others in their turn.
    pub(super) fn rung(&mut self, step: &mut Step<'_>) -> Next {
        let SeekingState::Waiting { until } = &mut self.state else {
            return Next::Stay;
        };
        let turn = TURN.saturating_mul(self.queued.ahead).min(LAST_TURN);
        if turn.is_zero() {
            return self.look(step);
        }
        self.queued.rung = true;
        *until = step.now.plus(turn).min(*until);
        Next::Stay
    }

    pub(super) const fn is_leaving(&self) -> bool {
        matches!(self.state, SeekingState::Leaving { .. })
    }

    pub(super) const fn has_waited(&self) -> bool {
        self.queued.since.is_some()
    }

    /// The rule has refused: that is the end, or the session waits.
    pub(super) fn refused(
        &mut self,
        step: &mut Step<'_>,
        reading: &Reading,
        clause: Clause,
        why: Refusal,
    ) -> Next {
        if step.limits.wait == Wait::No {
            return Next::End(Ending::Refused { clause, why });
        }
        self.trouble = None;
        // Who is refused for what only its own host knows would hold up the others.
        let knows_better = matches!(why, Refusal::AliveHere(_));
        if knows_better {
            self.queued.stamp_at = None;
        }
        let newly = self.queued.since.is_none();
        self.queued.since.get_or_insert(step.now);
        let before = queue::before(&step.claim.session, &reading.queue, &reading.now);
        let entries: Vec<&QueueEntry> = before.collect();
        let ahead = entries.len();
        self.queued.ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        // Whoever of them dies is out of the queue by then.
        let lives = entries
            .iter()
            .map(|entry| entry.lives_for(&reading.now))
            .min()
            .filter(|_| matches!(why, Refusal::Behind { .. }));
        step.say(Note::Queued {
            row: reading.row.clone().map(Box::new),
            now: reading.now.clone(),
            why: why.clone(),
            ahead,
            left: match step.limits.wait {
                Wait::For(limit) => Some(limit.saturating_sub(step.now.0)),
                Wait::No | Wait::Forever => None,
            },
            newly,
        });
        let changes = lives.unwrap_or(changes_in(&why));
        let until = step.now.plus(changes.max(SHORTEST));
        self.queued.last = Some((clause, why));
        if knows_better {
            self.state = SeekingState::Waiting {
                until: until.min(step.now.plus(STAMP_EVERY)),
            };
            return Next::Stay;
        }
        self.wait_until(step, until)
    }

    /// Nothing is done until then; in the queue, if the session may wait, and alive.
    pub(super) fn wait_until(&mut self, step: &mut Step<'_>, until: Moment) -> Next {
        if step.limits.wait == Wait::No {
            self.state = SeekingState::Waiting { until };
            return Next::Stay;
        }
        self.queued.since.get_or_insert(step.now);
        let stamp_at = *self.queued.stamp_at.get_or_insert(step.now);
        if step.now >= stamp_at {
            self.queued.stamp(step);
            self.state = SeekingState::Looking { sent_at: step.now };
            return Next::Stay;
        }
        self.state = SeekingState::Waiting {
            until: until.min(stamp_at),
        };
        Next::Stay
    }

    /// The time to wait is over.
    pub(super) fn give_up(&mut self, step: &mut Step<'_>) -> Next {
        let unanswered = match self.state {
            SeekingState::Looking { sent_at }
            | SeekingState::Marking { sent_at, .. }
            | SeekingState::AskingOnce { sent_at } => step.now.since(sent_at),
            _ => Duration::ZERO,
        };
        let perhaps_granted = !self.unsettled.is_empty();
        let store_failed = |error| Ending::StoreFailed {
            error,
            perhaps_granted,
        };
        let ending = match (self.trouble.take(), self.queued.last.take()) {
            (Some(trouble), _) => store_failed(trouble.last),
            (None, Some((clause, why))) if unanswered < AWAY => Ending::Refused { clause, why },
            (None, _) => store_failed(no_answer_in_time()),
        };
        self.leave(step, ending)
    }

    /// Ends without the token. Who was in the queue leaves it, if that takes no time.
    pub(super) fn leave(&mut self, step: &mut Step<'_>, ending: Ending) -> Next {
        if let SeekingState::Leaving { ending, .. } = &self.state {
            return Next::End(ending.as_ref().clone());
        }
        if !self.queued.joined {
            return Next::End(ending);
        }
        // One request is out at a time.
        let asked = !matches!(
            self.state,
            SeekingState::Looking { .. } | SeekingState::Marking { .. }
        );
        if asked {
            step.leave();
        }
        self.state = SeekingState::Leaving {
            by: step.now.plus(LEAVE),
            ending: Box::new(ending),
            asked,
        };
        Next::Stay
    }

    /// The request that was out while the session wanted to leave is answered.
    pub(super) fn leave_now(&mut self, step: &mut Step<'_>) -> Next {
        match &mut self.state {
            SeekingState::Leaving { asked, .. } if !*asked => {
                *asked = true;
                step.leave();
                Next::Stay
            }
            SeekingState::Leaving { ending, .. } => Next::End(ending.as_ref().clone()),
            _ => Next::Stay,
        }
    }
}

/// Nothing was heard of the store until the wait was over.
pub(super) fn no_answer_in_time() -> StoreError {
    StoreError::unavailable("the store gave no answer until the time to wait was over")
}

/// When a refusal will change by itself at the latest, as far as it says.
const fn changes_in(why: &Refusal) -> Duration {
    match why {
        Refusal::Held { takeover_in, .. } => *takeover_in,
        Refusal::TooSoon { wait }
        | Refusal::Bound { wait, .. }
        | Refusal::Reserved { wait, .. }
        | Refusal::Forgetful { wait, .. } => *wait,
        Refusal::AliveHere(_) | Refusal::Paused(_) | Refusal::Behind { .. } => Duration::MAX,
    }
}
