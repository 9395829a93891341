//! The processes of a run on a node: the events of its supervisor, and its actions.

use std::collections::VecDeque;

use super::happening::What;
use super::world::World;
use crate::moment::Moment;
use crate::run::event::{Action, Event, Note};
use crate::run::machine::Wait;
use crate::run::model::Run;
use crate::token::Fence;

#[derive(Debug)]
pub(super) struct Process {
    pub(super) node: usize,
    pub(super) run: Run,
    /// How long it may wait.
    pub(super) wait: Wait,
    pub(super) born: u64,
    /// Of its grant.
    pub(super) fence: Option<Fence>,
    pub(super) died_at: Option<u64>,
    pub(super) stopped: bool,
    /// What the supervisor has not heard yet.
    pub(super) inbox: VecDeque<Event>,
    pub(super) guard_stopped: bool,
    /// What the guard has not heard yet.
    pub(super) orders: VecDeque<Action>,
    /// How many requests were sent.
    pub(super) call: u64,
    /// The request that is out.
    pub(super) out: Option<u64>,
}

impl World {
    /// Carries out everything that is due on this process's host: the guard first, because the job
    /// of a host that wakes up must not outrun it.
    pub(super) fn wake(&mut self, process: usize) {
        let node = self.processes[process].node;
        if self.nodes[node].suspended {
            return;
        }
        self.guard_looks(process);
        self.tell(process, Event::Tick);
        self.plan(process);
    }

    pub(super) fn plan(&mut self, process: usize) {
        let p = &self.processes[process];
        let mut due: Vec<Moment> = Vec::new();
        if p.died_at.is_none() && !p.stopped {
            due.extend(p.run.machine.wake_at());
        }
        if let (Some(guard), Some(_)) = (&p.run.guard, &p.run.job) {
            due.extend(guard.moments());
        }
        let now = self.moment(process);
        let due = due.into_iter().filter(|at| *at > now).min();
        if let Some(at) = due {
            let ms = self.until(process, at);
            self.after(ms, What::Wake(process));
        }
    }

    pub(super) fn answer(&mut self, process: usize, call: u64, event: Event) {
        if self.processes[process].out != Some(call) {
            return;
        }
        self.processes[process].out = None;
        self.tell(process, event);
        self.plan(process);
    }

    /// Gives an event to a supervisor, now or when it can take the event.
    pub(super) fn tell(&mut self, process: usize, event: Event) {
        let p = &mut self.processes[process];
        if p.died_at.is_some() || (p.stopped && matches!(event, Event::Tick)) {
            return;
        }
        if p.stopped || self.nodes[p.node].suspended {
            self.processes[process].inbox.push_back(event);
            return;
        }
        let now = self.moment(process);
        let dice = &mut self.dice;
        let p = &mut self.processes[process];
        let stepped = p.run.step(now, event, &mut || dice.next());
        if stepped.disowns {
            self.violated(format!("p{process} ends for a token that it still holds"));
        }
        for action in stepped.actions {
            self.act(process, action);
        }
        if self.processes[process].run.is_over() {
            self.ended(process);
        }
    }

    fn act(&mut self, process: usize, action: Action) {
        match action {
            Action::Send(request) => {
                let p = &mut self.processes[process];
                p.call += 1;
                let call = p.call;
                if p.out.replace(call).is_some() {
                    self.violated(format!("p{process} has two requests out"));
                }
                self.send(process, call, request);
            }
            Action::TakeLocks => {
                self.tell(process, Event::LocksTaken(Ok(format!("lock{process}"))));
            }
            Action::ContinueGuard => {
                // A guard that was stopped continues; one that hangs does not.
                if self.dice.one_in(2) {
                    self.processes[process].guard_stopped = false;
                    self.guard_looks(process);
                }
            }
            Action::EndWithoutGuard => {
                self.processes[process].run.guard = None;
                if !self.processes[process].run.job_alive() {
                    return self.tell(process, Event::TreeGone);
                }
                self.killed(process);
            }
            Action::Say(Note::Decided {
                clause, verdict, ..
            }) => self.say(|| format!("p{process} clause {clause}: {verdict:?}")),
            Action::Say(Note::Ended(_)) => {}
            Action::Say(note) => self.say(|| {
                let short: String = format!("{note:?}").chars().take(100).collect();
                format!("p{process} says {short}")
            }),
            order @ (Action::StartJob { .. }
            | Action::Extend(_)
            | Action::Pass(_)
            | Action::End { .. }) => {
                self.processes[process].orders.push_back(order);
                self.guard_looks(process);
            }
        }
    }

    /// The supervisor exits; its guard follows, and ends the rest of the tree.
    fn ended(&mut self, process: usize) {
        let ending = format!("{:?}", self.processes[process].run.machine.ending());
        self.check_wait(process);
        self.last_requests(process);
        self.say(|| {
            format!(
                "p{process} ends: {}",
                ending.chars().take(120).collect::<String>()
            )
        });
        self.supervisor_dies(process);
    }

    pub(super) fn supervisor_dies(&mut self, process: usize) {
        let now = self.now;
        let p = &mut self.processes[process];
        if p.died_at.replace(now).is_some() {
            return;
        }
        if !p.run.job_alive() {
            p.run.guard = None;
        }
        self.guard_looks(process);
        self.plan(process);
    }

    /// A stopped supervisor or guard continues.
    pub(super) fn carry_on(&mut self, process: usize, guard: bool) {
        if guard {
            self.processes[process].guard_stopped = false;
        } else {
            self.processes[process].stopped = false;
        }
        self.catch_up(process);
    }

    /// After a stop or a suspension: deadlines first, then the events of the meantime.
    pub(super) fn catch_up(&mut self, process: usize) {
        self.wake(process);
        let inbox = std::mem::take(&mut self.processes[process].inbox);
        for event in inbox {
            self.tell(process, event);
        }
        self.wake(process);
    }

    /// The host is gone, and everything on it.
    pub(super) fn vanish(&mut self, process: usize) {
        let now = self.now;
        let p = &mut self.processes[process];
        p.died_at.get_or_insert(now);
        p.run.guard = None;
        p.run.job = None;
        p.inbox.clear();
    }
}
