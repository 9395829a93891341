//! The guard: the dead man's switch.

use std::time::Duration;

use crate::job::Deadline;
use crate::moment::Moment;
use crate::run::event::Action;
use crate::token::mutant::{Mutant, is_mutant};

/// What a guard knows. Whether it is alive, and when it looks, is its world's.
#[derive(Debug, Clone, Default)]
pub(crate) struct Guard {
    deadline: Option<Deadline>,
    /// As ordered, or its grace after the supervisor's death.
    kill_at: Option<Moment>,
    /// It has begun to end the tree.
    forced: bool,
}

/// What a guard does at once when it is given an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Obeyed {
    /// It starts the job; late, only if it is a mutant.
    Starts { late: bool },
    /// It is too late to start the job.
    Refuses,
    /// The job gets TERM.
    Terms,
    /// The order is for later.
    Remembers,
}

/// What has come due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    Term,
    Kill,
}

impl Guard {
    /// Takes an order of the supervisor's.
    pub(crate) fn obey(&mut self, order: &Action, now: Moment) -> Obeyed {
        match order {
            Action::StartJob { deadline, .. } => {
                self.deadline = *deadline;
                let late = self.term_is_due(now);
                if late && !is_mutant(Mutant::LateStart) {
                    return Obeyed::Refuses;
                }
                Obeyed::Starts { late }
            }
            Action::Extend(deadline) => {
                self.deadline = Some(*deadline);
                Obeyed::Remembers
            }
            Action::Pass(_) => Obeyed::Terms,
            Action::End { term_tree, kill_at } => {
                self.kill_at = Some(self.kill_at.map_or(*kill_at, |old| old.min(*kill_at)));
                self.forced |= term_tree;
                if *term_tree {
                    return Obeyed::Terms;
                }
                Obeyed::Remembers
            }
            Action::Send(_)
            | Action::TakeLocks
            | Action::ContinueGuard
            | Action::EndWithoutGuard
            | Action::Say(_) => Obeyed::Remembers,
        }
    }

    /// Looks at its deadlines.
    pub(crate) fn look(&mut self, now: Moment) -> Due {
        let due = if self.kills_at().is_some_and(|at| now >= at) {
            Due::Kill
        } else if self.term_is_due(now) {
            Due::Term
        } else {
            return Due::Nothing;
        };
        self.forced = true;
        due
    }

    /// Hears that its supervisor is gone. Whether the job gets TERM for that: it is not being
    /// ended yet.
    pub(crate) fn outlives_supervisor(&mut self, now: Moment, grace: Duration) -> bool {
        if self.kill_at.is_some() {
            return false;
        }
        self.kill_at = Some(now.plus(grace));
        self.forced = true;
        true
    }

    /// When it kills the tree, unless it hears otherwise.
    pub(crate) fn kills_at(&self) -> Option<Moment> {
        let deadline = self.deadline.map(|deadline| deadline.kill_at);
        self.kill_at.into_iter().chain(deadline).min()
    }

    /// Every moment at which it has something to do.
    pub(crate) fn moments(&self) -> impl Iterator<Item = Moment> {
        let kill = self.deadline.map(|deadline| deadline.kill_at);
        let term = self.deadline.filter(|_| !self.forced);
        let term = term.map(|deadline| deadline.term_at);
        [self.kill_at, kill, term].into_iter().flatten()
    }

    /// True if it has begun to end the tree.
    pub(crate) const fn forces(&self) -> bool {
        self.forced
    }

    fn term_is_due(&self, now: Moment) -> bool {
        self.deadline
            .is_some_and(|deadline| now >= deadline.term_at)
    }
}
