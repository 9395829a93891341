//! Waiting in the queue: how [`Seeking`] handles a refusal if it may wait.

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

/// The shortest time between two looks without a notification.
pub(super) const SHORTEST: Duration = Duration::from_millis(10);

/// How long the end of a run waits for the answer to its leaving the queue, and to the look that may be out before. A
/// waiter that ends without leaving delays no other for longer than [`queue::LIVES`]. But if all do, on a store whose
/// answers take that long, and wait shorter than that, none of them is ever the first.
const LEAVE: Duration = Duration::from_millis(250);

/// The delay from one waiter to the next when they look after a notification: the waiter at its
/// turn has the processor and the store to itself.
const TURN: Duration = Duration::from_millis(10);

/// The greatest such delay, however many waiters come before.
const LAST_TURN: Duration = Duration::from_millis(100);

/// A store without an answer for so long counts as away.
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
    /// Since when the session waits.
    pub(super) since: Option<Moment>,
    /// The session has requested its position at least once.
    joined: bool,
    /// When the next heartbeat is due; `None` while none is to be sent.
    stamp_at: Option<Moment>,
    /// The last store time seen: what is sent expires by it.
    seen: Option<HeardTime>,
    /// The last refusal, with its clause.
    last: Option<(Clause, Refusal)>,
    /// How many waiters were before it then.
    ahead: u32,
    /// How much longer the store was to be observed at the last look.
    pub(super) observing: Option<Duration>,
    /// The notifier has signalled, and a look is due for that.
    pub(super) notified: bool,
}

/// Shows what affects decisions, without the data for the final report: the search tells states
/// apart by it.
impl fmt::Debug for Queued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queued")
            .field("waits", &self.since.is_some())
            .field("joined", &self.joined)
            .field("stamp_at", &self.stamp_at)
            .field("seen", &self.seen)
            .field("ahead", &self.ahead)
            .field("notified", &self.notified)
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
            notified: false,
        }
    }

    pub(super) const fn is_joined(&self) -> bool {
        self.joined
    }

    /// Notes the refusal, in case the wait ends before the next look.
    pub(super) fn refused(&mut self, clause: Clause, why: Refusal) {
        self.last = Some((clause, why));
    }

    pub(super) fn is_due(&self, now: Moment) -> bool {
        self.stamp_at.is_some_and(|at| now >= at)
    }

    /// Notes the store's time of a look, for later heartbeats.
    pub(super) fn saw_time(&mut self, step: &Step<'_>, time: &StoreTime) {
        if step.limits.wait != Wait::No {
            self.seen = Some(HeardTime {
                time: time.clone(),
                heard_at: step.now,
            });
        }
    }

    /// Joins the queue, or stays in it. A part of the pause until the next heartbeat is random, so
    /// that many do not come at once.
    pub(super) fn stamp(&mut self, step: &mut Step<'_>) {
        let Some(HeardTime { time, heard_at }) = &self.seen else {
            // A session joins the queue only after a look.
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
    /// True if a look is useful as soon as the notifier signals.
    pub(crate) const fn listens(&self) -> bool {
        matches!(self.state, SeekingState::Waiting { .. })
            && self.queued.joined
            && !self.queued.notified
            && self.trouble.is_none()
    }

    /// The notifier has signalled. The first waiter looks at once, the others in their turn.
    pub(super) fn notified(&mut self, step: &mut Step<'_>) -> Next {
        let SeekingState::Waiting { until } = &mut self.state else {
            return Next::Stay;
        };
        let turn = TURN.saturating_mul(self.queued.ahead).min(LAST_TURN);
        if turn.is_zero() {
            return self.look(step);
        }
        self.queued.notified = true;
        *until = step.now.plus(turn).min(*until);
        Next::Stay
    }

    pub(super) const fn is_leaving(&self) -> bool {
        matches!(self.state, SeekingState::Leaving { .. })
    }

    pub(super) const fn has_waited(&self) -> bool {
        self.queued.since.is_some()
    }

    /// The store has answered. True if a message has said that it does not, and that the session waits for it.
    pub(super) fn answers_again(&mut self, step: &Step<'_>) -> bool {
        self.trouble.take().is_some() && step.limits.wait != Wait::No
    }

    /// The rule has refused: the run ends, or the session waits.
    pub(super) fn refused(
        &mut self,
        step: &mut Step<'_>,
        reading: &Reading,
        clause: Clause,
        why: Refusal,
    ) -> Next {
        if step.limits.wait == Wait::No {
            return match self.trouble.as_ref().filter(|_| self.is_in_doubt()) {
                // The grant is settled first, as long as the store's failures are borne.
                Some(trouble) => self.failed(step, trouble.last.clone()),
                None => Next::End(Ending::Refused { clause, why }),
            };
        }
        let again = self.answers_again(step);
        // A session that is refused for facts of its own host alone would delay the others.
        let knows_better = matches!(why, Refusal::AliveHere(_));
        if knows_better {
            self.queued.stamp_at = None;
        }
        let newly = self.queued.since.is_none() || again;
        self.queued.since.get_or_insert(step.now);
        let before = queue::before(&step.claim.session, &reading.queue, &reading.now);
        let entries: Vec<&QueueEntry> = before.collect();
        let ahead = entries.len();
        self.queued.ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        // Those of them that die are out of the queue by then.
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

    /// Does nothing until then. A session that may wait stays in the queue, with heartbeats.
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

    /// The waiting time is over.
    pub(super) fn give_up(&mut self, step: &mut Step<'_>) -> Next {
        let unanswered = match self.state {
            SeekingState::Looking { sent_at } | SeekingState::Marking { sent_at, .. } => {
                step.now.since(sent_at)
            }
            _ => Duration::ZERO,
        };
        let perhaps_granted = !self.unsettled.is_empty();
        let store_failed = |error| Ending::StoreFailed {
            error,
            perhaps_granted,
        };
        let is_in_doubt = self.is_in_doubt();
        let last = self.queued.last.take().filter(|_| !is_in_doubt);
        let ending = match (self.trouble.take(), last) {
            (Some(trouble), _) => store_failed(trouble.last),
            (None, Some((clause, why))) if unanswered < AWAY => Ending::Refused { clause, why },
            (None, _) => store_failed(no_answer_in_time()),
        };
        self.leave(step, ending)
    }

    /// Ends without the token. A waiter leaves the queue, if that takes no time.
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

    /// The request that was out when the session wanted to leave is answered.
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

/// The error for a store that did not answer until the wait was over.
pub(super) fn no_answer_in_time() -> StoreError {
    StoreError::unavailable("the store gave no answer until the time to wait was over")
}

/// When a refusal changes by itself at the latest, as far as it says.
const fn changes_in(why: &Refusal) -> Duration {
    match why {
        Refusal::Held { takeover_in, .. } => *takeover_in,
        Refusal::TooSoon { wait }
        | Refusal::Bound { wait, .. }
        | Refusal::Reserved { wait, .. }
        | Refusal::HeadStart { wait, .. }
        | Refusal::Observed { wait }
        | Refusal::Forgetful { wait, .. } => *wait,
        Refusal::AliveHere(_)
        | Refusal::Paused(_)
        | Refusal::ClientPaused(_)
        | Refusal::Behind { .. } => Duration::MAX,
    }
}
