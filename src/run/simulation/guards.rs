//! The guards: each takes its orders, and looks at its deadlines.

use super::world::World;
use crate::moment::Moment;
use crate::run::ending::NotStarted;
use crate::run::event::{Action, Event};
use crate::run::model::{Due, Obeyed};

impl World {
    pub(super) fn guard_looks(&mut self, process: usize) {
        let now = self.moment(process);
        let p = &self.processes[process];
        if p.run.guard.is_none() || p.guard_stopped || self.nodes[p.node].suspended {
            return;
        }
        self.guard_checks_deadline(process, now);
        while let Some(order) = self.next_order(process) {
            self.guard_obeys(process, &order, now);
        }
        let p = &mut self.processes[process];
        let grace = self.nodes[p.node].timing.kill_grace;
        let orphaned = p.died_at.is_some() && p.run.job_alive();
        if let Some(guard) = p.run.guard.as_mut().filter(|_| orphaned)
            && guard.outlives_supervisor(now, grace)
        {
            self.term(process);
        }
        self.guard_checks_deadline(process, now);
    }

    fn next_order(&mut self, process: usize) -> Option<Action> {
        let p = &mut self.processes[process];
        p.run.guard.as_ref()?;
        p.orders.pop_front()
    }

    fn guard_checks_deadline(&mut self, process: usize, now: Moment) {
        let run = &mut self.processes[process].run;
        let (Some(guard), Some(_)) = (&mut run.guard, &run.job) else {
            return;
        };
        match guard.look(now) {
            Due::Kill => self.killed(process),
            Due::Term => self.term(process),
            Due::Nothing => {}
        }
    }

    fn guard_obeys(&mut self, process: usize, order: &Action, now: Moment) {
        let p = &mut self.processes[process];
        let Some(guard) = &mut p.run.guard else {
            return;
        };
        match guard.obey(order, now) {
            // Its supervisor is gone.
            Obeyed::Starts { .. } | Obeyed::Refuses if p.died_at.is_some() => p.run.guard = None,
            Obeyed::Starts { late } => self.start_job(process, late),
            Obeyed::Refuses => self.tell(process, Event::JobNotStarted(NotStarted::TooLate)),
            Obeyed::Terms => self.term(process),
            Obeyed::Remembers => {}
        }
        self.tell(process, Event::GuardAnswered);
    }

    pub(super) fn guard_dies(&mut self, process: usize) {
        self.processes[process].run.guard = None;
        self.tell(process, Event::GuardGone);
        self.plan(process);
    }
}
