//! The guard's overdue answers: does it still guard?

use std::time::Duration;

use super::{Holding, Job};
use crate::moment::Moment;
use crate::run::ending::{Loss, Why};
use crate::run::event::Action;
use crate::run::machine::Step;

/// The least time that a guard has to answer. Two context switches take microseconds; a busy
/// machine may take longer.
const LEAST_ANSWER_TIME: Duration = Duration::from_millis(200);

/// How often the guard is reminded of a tree that should be gone.
const REMIND_EVERY: Duration = Duration::from_secs(1);

/// The answer that the guard owes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    /// None: it has answered.
    Quits,
    /// None: it is gone.
    Gone,
    /// An answer. Half-way to `until` the guard gets CONT; at `until` it counts as gone.
    Owes {
        since: Moment,
        until: Moment,
        continued: bool,
    },
}

impl Guard {
    /// When an overdue answer needs an action.
    pub(super) fn due(self) -> Option<Moment> {
        match self {
            Self::Quits | Self::Gone => None,
            Self::Owes {
                until,
                continued: true,
                ..
            } => Some(until),
            Self::Owes { since, until, .. } => Some(since.plus(until.since(since) / 2)),
        }
    }
}

impl Holding {
    /// A guard that was killed, stopped or hung no longer guards: sends it CONT, then does its
    /// work.
    pub(super) fn look_at_guard(&mut self, step: &mut Step<'_>) {
        self.remind_guard(step);
        let due = self.guard.due().is_some_and(|at| step.now >= at);
        let is_hurried = self.is_ending_for_loss();
        match &mut self.guard {
            Guard::Owes {
                since,
                until,
                continued,
            } if due && !*continued => {
                *continued = true;
                step.act(Action::ContinueGuard);
                if !is_hurried {
                    // A supervisor that checks this late was stopped itself, perhaps with the
                    // guard.
                    let half = until.since(*since) / 2;
                    *until = (*until).max(step.now.plus(half));
                }
            }
            Guard::Owes { .. } if due => self.guard_gone(step),
            Guard::Owes { .. } | Guard::Quits | Guard::Gone => {}
        }
    }

    /// The tree should be gone by now: this finds a guard that was stopped after it had answered.
    fn remind_guard(&mut self, step: &mut Step<'_>) {
        let Job::Ending {
            why,
            kill_at,
            remind_at,
            ..
        } = &mut self.job
        else {
            return;
        };
        if step.now < *remind_at || self.guard == Guard::Gone {
            return;
        }
        *remind_at = step.now.plus(REMIND_EVERY);
        let (term_tree, kill_at) = (!matches!(why, Why::Signal(_)), *kill_at);
        let why = why.clone();
        step.act(Action::End { term_tree, kill_at });
        let until = self.answer_by(step, &why, kill_at);
        self.expect_answer(step.now, until);
    }

    /// When a guard that has the order to end the job must answer: within a heartbeat, but not
    /// beyond the time from which the job may be running elsewhere. For a stop signal or a time-out
    /// that is the end of the lease: a busy machine is no reason to treat the guard as dead.
    pub(super) fn answer_by(&self, step: &Step<'_>, why: &Why, kill_at: Moment) -> Moment {
        let silence = step.now.plus(step.claim.timing.heartbeat);
        let lease = self.lease.as_ref();
        match why {
            Why::Loss(_) => silence.min(kill_at),
            Why::Signal(_) | Why::Timeout | Why::HandedOff => {
                let trusted_until = lease.map(|l| l.deadline(&step.claim.timing).kill_at);
                trusted_until.map_or(silence, |until| silence.min(until))
            }
        }
    }

    pub(super) fn guard_answered(&mut self) {
        if self.guard != Guard::Gone {
            self.guard = Guard::Quits;
        }
    }

    /// The guard got a message and must answer by then.
    pub(super) fn expect_answer(&mut self, now: Moment, until: Moment) {
        if self.guard == Guard::Quits {
            let until = until.max(now.plus(LEAST_ANSWER_TIME));
            self.guard = Guard::Owes {
                since: now,
                until,
                continued: false,
            };
        }
    }

    pub(super) fn guard_gone(&mut self, step: &mut Step<'_>) {
        if std::mem::replace(&mut self.guard, Guard::Gone) == Guard::Gone {
            return;
        }
        // Without its guard the job dies at once: it has a parent-death signal, and an unenforced
        // grace would be a risk.
        self.end(step, Why::Loss(Loss::GuardGone), step.now);
    }
}
