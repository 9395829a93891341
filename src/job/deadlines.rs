//! When the job must end. Pure: the guard queries it after every wake-up.

use std::time::Duration;

use super::protocol::Deadline;
use crate::moment::Moment;

/// What is due now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Due {
    Nothing,
    /// The deadline has passed: the supervisor is informed. TERM or KILL is due next.
    Expired,
    /// The tree gets TERM.
    Term,
    /// The tree is killed, again and again until it is gone.
    Kill,
}

/// The deadlines of the job, and the progress of its end.
#[derive(Debug)]
pub(super) struct Deadlines {
    deadline: Option<Deadline>,
    /// The deadline's `term_at` has passed: the end is final.
    expired: bool,
    /// When the tree is to be killed by order.
    asked: Option<Moment>,
    term: Term,
    /// True if a job must end completely, even if it may leave processes behind.
    thorough: bool,
}

/// The tree's TERM, which is sent once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Term {
    NotAsked,
    Asked,
    Sent,
}

impl Deadlines {
    /// The watch of a job that starts now.
    pub(super) const fn new(deadline: Option<Deadline>) -> Self {
        Self {
            deadline,
            expired: false,
            asked: None,
            term: Term::NotAsked,
            thorough: false,
        }
    }

    /// Sets a new deadline. A deadline that has passed stays passed.
    pub(super) fn renew(&mut self, now: Moment, deadline: Deadline) {
        let passed = self.deadline.is_some_and(|old| old.term_at <= now);
        if !self.expired && !passed {
            self.deadline = Some(deadline);
        }
    }

    /// Orders the tree's KILL at `kill_at`, with a TERM before if `term_tree`.
    pub(super) fn end(&mut self, kill_at: Moment, term_tree: bool) {
        self.asked = Some(self.asked.map_or(kill_at, |asked| asked.min(kill_at)));
        if term_tree {
            self.thorough = true;
            self.ask_for_term();
        }
    }

    /// The supervisor is gone.
    pub(super) fn abandon(&mut self, now: Moment, grace: Duration) {
        self.end(now.plus(grace), true);
    }

    /// The main process has ended and left others behind. Returns true if this is their first order
    /// to end.
    pub(super) fn end_leftovers(&mut self, now: Moment, grace: Duration) -> bool {
        // Thorough without a TERM: they are being killed already.
        let first = self.term == Term::NotAsked && !self.thorough;
        if first {
            self.end(now.plus(grace), false);
            self.ask_for_term();
        }
        first
    }

    fn ask_for_term(&mut self) {
        if self.term == Term::NotAsked {
            self.term = Term::Asked;
        }
    }

    /// What is due. To be called until nothing is due, or KILL: any other answer comes once.
    pub(super) fn due(&mut self, now: Moment) -> Due {
        if !self.expired && self.deadline.is_some_and(|it| it.term_at <= now) {
            self.expired = true;
            self.thorough = true;
            self.ask_for_term();
            return Due::Expired;
        }
        if self.kill_at().is_some_and(|at| at <= now) {
            self.thorough = true;
            return Due::Kill;
        }
        if self.term == Term::Asked {
            self.term = Term::Sent;
            return Due::Term;
        }
        Due::Nothing
    }

    /// When the answer of `due` changes, if nothing happens until then.
    pub(super) fn next(&self) -> Option<Moment> {
        let term_at = self.deadline.filter(|_| !self.expired).map(|it| it.term_at);
        [term_at, self.kill_at()].into_iter().flatten().min()
    }

    /// True if no process of the job may outlive it.
    pub(super) const fn is_thorough(&self) -> bool {
        self.thorough
    }

    fn kill_at(&self) -> Option<Moment> {
        let by_deadline = self.deadline.map(|it| it.kill_at);
        [by_deadline, self.asked].into_iter().flatten().min()
    }
}

#[cfg(test)]
#[path = "deadlines_tests.rs"]
mod tests;
