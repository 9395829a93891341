//! Before the token is held: looks and waits, until the rule allows a grant.

mod granting;
mod looking;
mod waiting;

use std::time::Duration;

use self::granting::{Grant, Held, Intent};
use self::looking::Watch;
use self::waiting::{AWAY, Queued, no_answer_in_time};
use super::ending::{Ending, Unstarted};
use super::event::{Event, Note};
use super::lease::{SeenTime, Unsettled};
use super::machine::{Next, Step, Wait};
use crate::moment::Moment;
use crate::store::{StoreError, Trouble};
use crate::token::{Claim, Clause, OnceMark, Refusal, Swapped};

/// How long after the end of the wait the answer to a grant may come; the store rejects the grant
/// after that end.
const LAST_ANSWER: Duration = Duration::from_millis(25);

/// Twice the time in which a process that is at work looks at its clock.
const SOON: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SeekingState {
    /// Nothing yet.
    Fresh,
    /// A read is out.
    Looking { sent_at: Moment },
    /// Nothing is out until the next look.
    Waiting { until: Moment },
    /// The creation of the row, a hand-off to the own client, or the note of the store's
    /// incarnation is out.
    Marking {
        sent_at: Moment,
        then: Option<(Clause, Refusal)>,
    },
    /// The rule allows a grant; the locks that its row will name are being taken.
    Locking { intent: Box<Intent> },
    /// A grant is out.
    Claiming { grant: Box<Grant> },
    /// The run is over without the token; it leaves the queue, if that takes no time.
    Leaving {
        by: Moment,
        ending: Box<Ending>,
        /// The request to leave is out; otherwise another request is.
        asked: bool,
    },
    /// The request for the state of the key of `--once` is out, with the token held and no job yet:
    /// repeated at `again_at`, if no answer is out.
    Checking {
        held: Box<Held>,
        again_at: Option<Moment>,
    },
}

/// Failures of the store, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoreFailures {
    /// When the first came.
    since: Moment,
    /// How many have come.
    count: u32,
    /// What the last one said.
    pub(super) last: StoreError,
}

/// A session without the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeking {
    pub(super) state: SeekingState,
    watch: Option<Watch>,
    /// Grants that were sent and whose result is unknown.
    pub(super) unsettled: Unsettled,
    /// The last of those grants.
    last_grant: Option<Box<Grant>>,
    /// `None` while the store answers.
    pub(super) trouble: Option<StoreFailures>,
    /// Why no job may be started any more.
    stopped: Option<Unstarted>,
    /// The locks are taken, or can't be.
    locked: bool,
    /// The wait in the queue.
    queued: Queued,
}

impl Seeking {
    pub(crate) const fn new() -> Self {
        Self {
            state: SeekingState::Fresh,
            watch: None,
            unsettled: Unsettled::new(),
            last_grant: None,
            trouble: None,
            stopped: None,
            locked: false,
            queued: Queued::new(),
        }
    }

    pub(crate) fn step(&mut self, step: &mut Step<'_>, event: Event) -> Next {
        match event {
            Event::Tick => self.tick(step),
            Event::Looked(_) | Event::Swapped(_) | Event::Left(_) if self.is_leaving() => {
                self.leave_now(step)
            }
            Event::Notified if self.listens() => self.notified(step),
            Event::Looked(Ok((reading, evidence))) => self.looked(step, &reading, &evidence),
            Event::Looked(Err(error)) | Event::Swapped(Err(error)) => self.failed(step, error),
            Event::OnceLooked(found) => self.once_looked(step, found),
            Event::LocksTaken(taken) => self.locked(step, taken),
            Event::Swapped(Ok(swapped)) => self.swapped(step, swapped),
            Event::Signal { signal, stop, .. } if stop => {
                self.stop(step, Unstarted::Signal(signal))
            }
            Event::GuardGone => self.stop(step, Unstarted::GuardGone),
            // This process was stopped for so long that the guard has left, or the guard lacks what
            // it needs.
            Event::JobNotStarted(why) => self.stop(step, Unstarted::Guard(why)),
            // Other signals are for the job, which does not exist yet, like the job's events and
            // its record.
            Event::Signal { .. }
            | Event::Recorded(_)
            | Event::Left(_)
            | Event::Notified
            | Event::JobStarted
            | Event::JobExited { .. }
            | Event::TreeGone
            | Event::GuardAnswered => Next::Stay,
        }
    }

    /// Until when the job may start that the last grant is for: one that was sent, and may happen or
    /// has happened. `None` if this is soon: a process that is at work expects no such start any more.
    pub(crate) fn start_by(&self, claim: &Claim, now: Moment) -> Option<Moment> {
        let sent = self.unsettled.last()?;
        let latest = claim.timing.last_start(sent.at);
        (latest > now.plus(SOON)).then_some(latest)
    }

    pub(crate) fn wake_at(&self, claim: &Claim, wait: Wait) -> Option<Moment> {
        let due = self.due(claim, wait);
        let over = self.over_at(wait);
        due.into_iter().chain(over).min()
    }

    /// When the present state has lasted long enough.
    fn due(&self, claim: &Claim, wait: Wait) -> Option<Moment> {
        match &self.state {
            SeekingState::Fresh => Some(Moment::default()),
            SeekingState::Locking { .. } => None,
            SeekingState::Waiting { until } => Some(*until),
            // A waiter also waits for the store.
            SeekingState::Looking { .. } | SeekingState::Marking { .. } if wait != Wait::No => None,
            SeekingState::Looking { sent_at } | SeekingState::Marking { sent_at, .. } => {
                Some(sent_at.plus(patience(claim)))
            }
            SeekingState::Checking { held, again_at } => {
                let latest = claim.timing.last_start(held.grant.sent.at);
                let out_until = latest.plus(patience(claim));
                Some(again_at.map_or(out_until, |at| at.min(latest)))
            }
            SeekingState::Claiming { grant } => {
                let patient_until = grant.sent.at.plus(patience(claim));
                let over = self.wait_ends_at(wait).map(|over| over.plus(LAST_ANSWER));
                match wait {
                    Wait::No => Some(patient_until),
                    // A stopped run waits only to settle the grant.
                    _ if self.stopped.is_some() => over.into_iter().chain([patient_until]).min(),
                    Wait::For(_) | Wait::Forever => over,
                }
            }
            SeekingState::Leaving { by, .. } => Some(*by),
        }
    }

    /// When the wait in the queue is over; a grant that is out is settled first.
    fn over_at(&self, wait: Wait) -> Option<Moment> {
        let may_end = !matches!(
            self.state,
            SeekingState::Locking { .. }
                | SeekingState::Claiming { .. }
                | SeekingState::Checking { .. }
                | SeekingState::Leaving { .. }
        );
        self.wait_ends_at(wait).filter(|_| may_end)
    }

    /// When the waiting time is over. Without any waiting time the session still makes a first
    /// look.
    pub(super) fn wait_ends_at(&self, wait: Wait) -> Option<Moment> {
        match wait {
            Wait::For(limit) if !self.has_waited() => Some(Moment(limit.max(AWAY))),
            Wait::For(limit) => Some(Moment(limit)),
            Wait::No | Wait::Forever => None,
        }
    }

    fn tick(&mut self, step: &mut Step<'_>) -> Next {
        let due = self.due(step.claim, step.limits.wait);
        let due = due.is_some_and(|at| step.now >= at);
        let over = self.over_at(step.limits.wait);
        let has_looked = !matches!(self.state, SeekingState::Fresh);
        if has_looked && over.is_some_and(|at| step.now >= at) {
            return self.give_up(step);
        }
        match &self.state {
            SeekingState::Fresh => self.look(step),
            SeekingState::Waiting { .. } if due => self.look(step),
            SeekingState::Leaving { ending, .. } if due => Next::End(ending.as_ref().clone()),
            SeekingState::Checking {
                again_at: Some(_), ..
            } if due => self.check_again(step),
            SeekingState::Looking { .. }
            | SeekingState::Marking { .. }
            | SeekingState::Checking { .. }
            | SeekingState::Claiming { .. }
                if due =>
            {
                let ends_at = self.wait_ends_at(step.limits.wait);
                let is_over = ends_at.is_some_and(|at| step.now >= at);
                let error = match self.trouble.take() {
                    Some(trouble) if is_over => trouble.last,
                    None if is_over => no_answer_in_time(),
                    _ => {
                        let waited = humantime::format_duration(patience(step.claim));
                        StoreError::unavailable(format!("the store gave no answer for {waited}"))
                    }
                };
                Next::End(Ending::StoreFailed {
                    error,
                    perhaps_granted: !self.unsettled.is_empty(),
                })
            }
            SeekingState::Waiting { .. }
            | SeekingState::Looking { .. }
            | SeekingState::Marking { .. }
            | SeekingState::Locking { .. }
            | SeekingState::Leaving { .. }
            | SeekingState::Checking { .. }
            | SeekingState::Claiming { .. } => Next::Stay,
        }
    }

    /// The state of the key, read again with the token held: another session may have run the job
    /// since the look that allowed the grant.
    fn once_looked(
        &mut self,
        step: &mut Step<'_>,
        found: Result<Option<Box<OnceMark>>, StoreError>,
    ) -> Next {
        match (
            std::mem::replace(&mut self.state, SeekingState::Fresh),
            found,
        ) {
            (SeekingState::Checking { held, .. }, Ok(done)) => self.start(step, *held, done),
            (SeekingState::Checking { held, .. }, Err(_)) => {
                let again_at = Some(step.now.plus(step.pause_after(0)));
                self.state = SeekingState::Checking { held, again_at };
                Next::Stay
            }
            (doing, _) => {
                self.state = doing;
                Next::Stay
            }
        }
    }

    pub(super) fn look(&mut self, step: &mut Step<'_>) -> Next {
        self.queued.notified = false;
        if self.queued.is_due(step.now) {
            self.queued.stamp(step);
        } else {
            step.read();
        }
        self.state = SeekingState::Looking { sent_at: step.now };
        Next::Stay
    }

    fn stop(&mut self, step: &mut Step<'_>, why: Unstarted) -> Next {
        if !self.unsettled.is_empty() {
            // The grant may happen, or have happened: it is settled first, then released.
            self.stopped.get_or_insert(why);
            return Next::Stay;
        }
        self.leave(step, ending_of(why))
    }

    fn swapped(&mut self, step: &mut Step<'_>, swapped: Swapped) -> Next {
        if !matches!(swapped, Swapped::Expired(_)) {
            // A swap that came too late may have been delayed by that very failure.
            self.trouble = None;
        }
        match (
            std::mem::replace(&mut self.state, SeekingState::Fresh),
            swapped,
        ) {
            (SeekingState::Claiming { mut grant }, Swapped::Done(time)) => {
                // Every heartbeat carries the stamp of the store on.
                grant.row.stamped = time.clone();
                let seen = SeenTime {
                    time,
                    asked_at: grant.sent.at,
                };
                self.hold(step, *grant, seen)
            }
            // Another session was quicker, or the grant came too late: start over at clause 1.
            (SeekingState::Claiming { grant }, Swapped::Conflict | Swapped::Expired(_)) => {
                self.unsettled.forget(grant.sent.version);
                self.look(step)
            }
            (
                SeekingState::Marking {
                    then: Some((clause, why)),
                    ..
                },
                Swapped::Done(_),
            ) if step.limits.wait == Wait::No => Next::End(Ending::Refused { clause, why }),
            (SeekingState::Marking { .. }, _) => self.look(step),
            (
                doing @ (SeekingState::Fresh
                | SeekingState::Looking { .. }
                | SeekingState::Waiting { .. }
                | SeekingState::Leaving { .. }
                | SeekingState::Checking { .. }
                | SeekingState::Locking { .. }),
                _,
            ) => {
                self.state = doing;
                Next::Stay
            }
        }
    }

    /// The store failed. If a grant was out, its result is unknown; if a row is being watched, much
    /// waiting is at stake: retry for a while. Otherwise give up.
    fn failed(&mut self, step: &mut Step<'_>, error: StoreError) -> Next {
        if let SeekingState::Claiming { grant } =
            std::mem::replace(&mut self.state, SeekingState::Fresh)
        {
            // After any other error it is certain that nothing has happened.
            if error.trouble != Trouble::Unavailable {
                self.unsettled.forget(grant.sent.version);
            }
            self.last_grant = Some(grant);
        }
        if self.unsettled.is_empty()
            && let Some(why) = self.stopped.take()
        {
            return self.leave(step, ending_of(why));
        }
        let before = self.trouble.take();
        let since = before.as_ref().map_or(step.now, |it| it.since);
        let failures = before.map_or(0, |it| it.count);
        let has_reason = !self.unsettled.is_empty() || self.watch.is_some();
        let waits = step.limits.wait != Wait::No;
        let patient = waits || has_reason && step.now < since.plus(patience(step.claim));
        let may_pass = match error.trouble {
            Trouble::Unavailable | Trouble::Refused | Trouble::Locked => true,
            // A waiter has the time; and this session's own grant may be the transaction under way.
            Trouble::Held => waits || !self.unsettled.is_empty(),
            Trouble::Gone | Trouble::Denied | Trouble::Misconfigured => false,
        };
        if !patient || !may_pass {
            return Next::End(Ending::StoreFailed {
                error,
                perhaps_granted: !self.unsettled.is_empty(),
            });
        }
        if waits && failures == 0 {
            let error = error.clone();
            step.say(Note::StoreAway { error });
        }
        self.trouble = Some(StoreFailures {
            since,
            count: failures.saturating_add(1),
            last: error,
        });
        if waits {
            self.queued.since.get_or_insert(step.now);
        }
        let until = step.now.plus(step.pause_after(failures));
        self.state = SeekingState::Waiting { until };
        Next::Stay
    }
}

/// The ending of a run that was stopped without the token.
fn ending_of(why: Unstarted) -> Ending {
    match why {
        Unstarted::Signal(signal) => Ending::Stopped(signal),
        Unstarted::Done(mark) => Ending::Done(mark),
        Unstarted::GuardGone => Ending::NoGuard,
        Unstarted::Guard(why) => Ending::Unstartable(why),
    }
}

/// How long a store may fail to answer, and how long an unclear grant may stay unsettled.
pub(super) fn patience(claim: &Claim) -> Duration {
    claim.timing.store_timeout.saturating_mul(2)
}
