//! The three processes of a client's run, and the job that outlives its supervisor.

use super::network::Out;
use super::world::World;
use crate::moment::Moment;
use crate::run::ending::NotStarted;
use crate::run::event::{Action, Event};
use crate::run::model::{Due, Job, Obeyed, Run};
use crate::sys::wait::Status;
use crate::token::SessionId;

#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) run: Run,
    pub(super) out: Option<Out>,
}

impl Process {
    /// True if the job's own process is alive.
    pub(super) fn job_runs(&self) -> bool {
        self.run.job.as_ref().is_some_and(Job::runs)
    }

    /// True if the job's own process is gone, and others of its tree are alive.
    pub(super) fn has_leftovers(&self) -> bool {
        self.run.job_alive() && !self.job_runs()
    }
}

/// A job whose supervisor is gone; its guard gives it its grace.
#[derive(Debug, Clone)]
pub(super) struct Orphan {
    pub(super) session: SessionId,
    pub(super) kill_at: Moment,
}

impl World {
    /// Gives an event to a client's supervisor, and carries out its actions.
    pub(super) fn tell(&mut self, client: usize, event: Event) {
        let now = self.moment();
        let drawn = &mut self.drawn;
        // Bits that make every pause the shortest, and every version a different one.
        let mut draw = || {
            *drawn += 1;
            (7_000_000_000 + *drawn) * 2_000_000_000
        };
        let Some(process) = &mut self.clients[client].process else {
            return;
        };
        let stepped = process.run.step(now, event, &mut draw);
        if stepped.disowns {
            self.violated("a session ended for a token that it still held");
        }
        for action in stepped.actions {
            self.act(client, action);
        }
        let process = self.clients[client].process.as_ref();
        if process.is_some_and(|process| process.run.is_over()) {
            self.supervisor_dies(client, true);
        }
    }

    fn act(&mut self, client: usize, action: Action) {
        let now = self.moment();
        match action {
            // No guard is ever stopped here.
            Action::Say(_) | Action::ContinueGuard => {}
            Action::TakeLocks => self.tell(client, Event::LocksTaken(Ok("lock".to_owned()))),
            Action::Send(request) => {
                let Some(process) = &mut self.clients[client].process else {
                    return;
                };
                if process.out.replace(Out::sent(request, now)).is_some() {
                    self.violated("two requests are out");
                }
            }
            Action::EndWithoutGuard => self.killed(client),
            order @ (Action::StartJob { .. }
            | Action::Extend(_)
            | Action::Pass(_)
            | Action::End { .. }) => self.order(client, &order),
        }
    }

    /// The guard obeys at once. A job takes no notice of TERM: it may end at any time anyway.
    fn order(&mut self, client: usize, order: &Action) {
        let now = self.moment();
        let Some(process) = &mut self.clients[client].process else {
            return;
        };
        let Some(guard) = &mut process.run.guard else {
            return;
        };
        match guard.obey(order, now) {
            Obeyed::Starts { late } => {
                process.run.job = Some(Job::started(Status::Exited(0)));
                if late {
                    self.violated("a job was started too late");
                }
                self.tell(client, Event::JobStarted);
            }
            Obeyed::Refuses => self.tell(client, Event::JobNotStarted(NotStarted::TooLate)),
            Obeyed::Terms | Obeyed::Remembers => {}
        }
        self.guard_looks(client);
        self.tell(client, Event::GuardAnswered);
    }

    pub(super) fn guard_looks(&mut self, client: usize) {
        let now = self.moment();
        let process = self.clients[client].process.as_mut();
        let guard = process.and_then(|process| process.run.guard.as_mut());
        if guard.is_some_and(|guard| guard.look(now) == Due::Kill) {
            self.killed(client);
        }
    }

    fn killed(&mut self, client: usize) {
        let process = self.clients[client].process.as_mut();
        if let Some(exited) = process.and_then(|process| process.run.kill()) {
            self.tell(client, exited);
        }
        self.tree_ends(client);
    }

    /// The job's own process ends by itself.
    pub(super) fn main_exits(&mut self, client: usize) {
        let process = self.clients[client].process.as_mut();
        if let Some(exited) = process.and_then(|process| process.run.exit()) {
            self.tell(client, exited);
        }
    }

    /// The last process of the job ends.
    pub(super) fn tree_ends(&mut self, client: usize) {
        let process = self.clients[client].process.as_mut();
        if process.is_some_and(|process| process.run.job.take().is_some()) {
            self.tell(client, Event::TreeGone);
        }
    }

    /// The supervisor is gone; its guard lives for its grace.
    pub(super) fn supervisor_dies(&mut self, client: usize, by_itself: bool) {
        let now = self.moment();
        let Some(Process { run, out }) = self.clients[client].process.take() else {
            return;
        };
        let session = run.session().clone();
        self.set_adrift(client, session.clone(), out);
        let this = &mut self.clients[client];
        for adrift in &mut this.adrift {
            if adrift.sender.session == session && !by_itself {
                adrift.sender.died_at.get_or_insert(now);
            }
        }
        let grace = run.claim().timing.kill_grace;
        let (Some(mut guard), true) = (run.guard, run.job.is_some()) else {
            return;
        };
        guard.outlives_supervisor(now, grace);
        if let Some(kill_at) = guard.kills_at().filter(|at| *at > now) {
            this.orphan = Some(Orphan { session, kill_at });
        }
    }

    /// Everything on a client is gone at once.
    pub(super) fn power_off(&mut self, client: usize) {
        self.supervisor_dies(client, false);
        self.clients[client].orphan = None;
    }

    pub(super) fn orphan_ends(&mut self, client: usize) {
        self.clients[client].orphan = None;
    }
}
