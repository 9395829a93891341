//! Nodes, and the three processes of a run on them.

use std::collections::VecDeque;
use std::time::Duration;

use super::world::{Start, What, World, group};
use crate::job::messages::Deadline;
use crate::moment::Moment;
use crate::run::ending::NotStarted;
use crate::run::ending::{Loss, Why};
use crate::run::event::{Action, Event, Note};
use crate::run::machine::{Limits, Machine, Wait};
use crate::sys::wait::Status;
use crate::token::mutant::{Mutant, is_mutant};
use crate::token::{About, Claim, ClientId, SessionId, Timing};

#[derive(Debug)]
pub(super) struct Node {
    pub(super) client: ClientId,
    /// How fast its clock goes, in millionths of true time.
    pub(super) rate_ppm: u64,
    pub(super) timing: Timing,
    pub(super) expected: Option<ClientId>,
    pub(super) failback: bool,
    pub(super) suspended: bool,
    pub(super) cut_off: bool,
}

/// The guard: the dead man's switch.
#[derive(Debug, Default)]
pub(super) struct Guard {
    pub(super) stopped: bool,
    inbox: VecDeque<Action>,
    deadline: Option<Deadline>,
    kill_at: Option<Moment>,
    forced: bool,
}

/// The job: its own process, and what it may leave behind.
#[derive(Debug)]
pub(super) struct Job {
    main: bool,
    status: Status,
    told: bool,
}

#[derive(Debug)]
pub(super) struct Process {
    pub(super) node: usize,
    pub(super) machine: Machine,
    /// How long it may wait.
    pub(super) wait: Wait,
    pub(super) born: u64,
    pub(super) died_at: Option<u64>,
    pub(super) stopped: bool,
    inbox: VecDeque<Event>,
    call: u64,
    /// The request that is out.
    out: Option<u64>,
    pub(super) guard: Option<Guard>,
    job: Option<Job>,
}

/// Whether an event shows the session its own token.
pub(in crate::run) fn is_shown_to_hold(event: &Event, claim: &Claim) -> bool {
    let Event::Looked(Ok((reading, _))) = event else {
        return false;
    };
    let session = reading.row.as_ref().and_then(|row| row.session());
    session == Some(&claim.session)
}

/// Whether this says that the token is another's.
pub(in crate::run) const fn takes_it_for_lost(action: &Action) -> bool {
    matches!(
        action,
        Action::Say(Note::Stopping {
            why: Why::Loss(Loss::Taken),
            ..
        })
    )
}

impl Process {
    pub(super) const fn job_alive(&self) -> bool {
        self.job.is_some()
    }
}

impl World {
    pub(super) fn moment(&self, process: usize) -> Moment {
        let p = &self.processes[process];
        let passed_ms = (self.now - p.born) * self.nodes[p.node].rate_ppm / 1_000;
        Moment(std::time::Duration::from_micros(passed_ms))
    }

    /// True milliseconds until a moment of a process's own clock; at least one.
    fn until(&self, process: usize, at: Moment) -> u64 {
        let left = at.since(self.moment(process)).as_micros();
        let rate = u128::from(self.nodes[self.processes[process].node].rate_ppm);
        u64::try_from(left * 1_000 / rate).unwrap_or(u64::MAX / 4) + 1
    }

    /// A cron slot: a node starts the job's wrapper, and will again.
    pub(super) fn slot(&mut self, node: usize) {
        let next = self.dice.within(2_000, 15_000);
        self.after(next, What::Slot(node));
        let running = self
            .processes
            .iter()
            .filter(|p| p.node == node && p.died_at.is_none())
            .count();
        if self.nodes[node].suspended || running >= 3 {
            return;
        }
        let start = Start {
            locks: !self.dice.one_in(3),
            wait: self.patience(),
            once_key: None,
        };
        self.start(node, start);
    }

    /// A node starts the job's wrapper.
    pub(super) fn start(&mut self, node: usize, start: Start) {
        let timing = self.nodes[node].timing;
        let index = self.processes.len();
        let claim = Claim {
            group: group(),
            client: self.nodes[node].client.clone(),
            session: SessionId::from_random(index as u128),
            expected: self.nodes[node].expected.clone(),
            failback: self.nodes[node].failback,
            nested_in: None,
            timing,
            about: About {
                program: "job".into(),
                once_key: start.once_key,
                ..About::default()
            },
        };
        let limits = Limits {
            locks: start.locks,
            wait: start.wait,
            ..Limits::default()
        };
        self.say(|| format!("p{index} starts on n{node} with {timing:?}"));
        self.processes.push(Process {
            node,
            machine: Machine::new(claim, limits),
            wait: limits.wait,
            born: self.now,
            died_at: None,
            stopped: false,
            inbox: VecDeque::new(),
            call: 0,
            out: None,
            guard: Some(Guard::default()),
            job: None,
        });
        self.wake(index);
    }

    /// Some wait in the queue: a few seconds, a minute, or however long it takes.
    fn patience(&mut self) -> Wait {
        match self.dice.within(0, 6) {
            0 => Wait::For(Duration::from_millis(self.dice.within(0, 20_000))),
            1 => Wait::For(Duration::from_secs(60)),
            2 if !self.healed => Wait::Forever,
            _ => Wait::No,
        }
    }

    /// Everything on this process's host that may be due is done: the guard first,
    /// as the job of a host that wakes up must not outrun it.
    pub(super) fn wake(&mut self, process: usize) {
        let node = self.processes[process].node;
        if self.nodes[node].suspended {
            return;
        }
        self.guard_looks(process);
        self.tell(process, Event::Tick);
        self.plan(process);
    }

    fn plan(&mut self, process: usize) {
        let p = &self.processes[process];
        let mut due: Vec<Moment> = Vec::new();
        if p.died_at.is_none() && !p.stopped {
            due.extend(p.machine.wake_at());
        }
        if let (Some(guard), Some(_)) = (&p.guard, &p.job) {
            due.extend(guard.kill_at);
            due.extend(guard.deadline.map(|d| d.kill_at));
            due.extend(guard.deadline.filter(|_| !guard.forced).map(|d| d.term_at));
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

    /// Gives an event to a supervisor, now or when it can take it.
    fn tell(&mut self, process: usize, event: Event) {
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
        let holds = is_shown_to_hold(&event, p.machine.claim());
        let actions = p.machine.step(now, event, &mut || dice.next());
        if holds && actions.iter().any(takes_it_for_lost) {
            self.violated(format!("p{process} ends for a token that it still holds"));
        }
        for action in actions {
            self.act(process, action);
        }
        if self.processes[process].machine.ending().is_some() {
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
                    if let Some(guard) = &mut self.processes[process].guard {
                        guard.stopped = false;
                    }
                    self.guard_looks(process);
                }
            }
            Action::EndWithoutGuard => {
                self.processes[process].guard = None;
                if self.processes[process].job.is_none() {
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
            to_guard @ (Action::StartJob { .. }
            | Action::Extend(_)
            | Action::Pass(_)
            | Action::End { .. }) => {
                if let Some(guard) = &mut self.processes[process].guard {
                    guard.inbox.push_back(to_guard);
                    self.guard_looks(process);
                }
            }
        }
    }

    /// The supervisor exits; its guard follows, and ends what is left.
    fn ended(&mut self, process: usize) {
        let ending = format!("{:?}", self.processes[process].machine.ending());
        self.check_wait(process);
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
        if p.job.is_none() {
            p.guard = None;
        }
        self.guard_looks(process);
        self.plan(process);
    }

    fn guard_looks(&mut self, process: usize) {
        let node = self.processes[process].node;
        let suspended = self.nodes[node].suspended;
        let now = self.moment(process);
        let Some(guard) = &self.processes[process].guard else {
            return;
        };
        if guard.stopped || suspended {
            return;
        }
        self.guard_checks_deadline(process, now);
        while let Some(message) = self.next_message(process) {
            self.guard_obeys(process, message, now);
        }
        let p = &mut self.processes[process];
        let grace = self.nodes[p.node].timing.kill_grace;
        if let Some(guard) = &mut p.guard
            && p.died_at.is_some()
            && p.job.is_some()
            && guard.kill_at.is_none()
        {
            guard.kill_at = Some(now.plus(grace));
            guard.forced = true;
            self.term(process);
        }
        self.guard_checks_deadline(process, now);
    }

    fn next_message(&mut self, process: usize) -> Option<Action> {
        self.processes[process].guard.as_mut()?.inbox.pop_front()
    }

    fn guard_checks_deadline(&mut self, process: usize, now: Moment) {
        let p = &mut self.processes[process];
        let (Some(guard), Some(_)) = (&mut p.guard, &p.job) else {
            return;
        };
        let term_due = guard.deadline.is_some_and(|d| now >= d.term_at);
        let kill_due = guard.deadline.is_some_and(|d| now >= d.kill_at)
            || guard.kill_at.is_some_and(|at| now >= at);
        if term_due || kill_due {
            guard.forced = true;
        }
        if kill_due {
            self.killed(process);
        } else if term_due {
            self.term(process);
        }
    }

    fn guard_obeys(&mut self, process: usize, message: Action, now: Moment) {
        let p = &mut self.processes[process];
        let Some(guard) = &mut p.guard else { return };
        match message {
            Action::StartJob { deadline, .. } => {
                guard.deadline = deadline;
                let late = deadline.is_some_and(|d| now >= d.term_at);
                if p.died_at.is_some() {
                    p.guard = None;
                } else if late && !is_mutant(Mutant::LateStart) {
                    self.tell(process, Event::JobNotStarted(NotStarted::TooLate));
                } else {
                    self.start_job(process, late);
                }
            }
            Action::Extend(deadline) => guard.deadline = Some(deadline),
            Action::End { term_tree, kill_at } => {
                let earlier = guard.kill_at.map_or(kill_at, |old| old.min(kill_at));
                guard.kill_at = Some(earlier);
                if term_tree {
                    guard.forced = true;
                    self.term(process);
                }
            }
            Action::Pass(_) => self.term(process),
            Action::Send(_)
            | Action::TakeLocks
            | Action::ContinueGuard
            | Action::EndWithoutGuard
            | Action::Say(_) => {}
        }
        self.tell(process, Event::GuardAnswered);
    }

    fn start_job(&mut self, process: usize, late: bool) {
        if late {
            self.violated(format!("p{process}'s job was started too late"));
        }
        self.tally.jobs += 1;
        let one_fails_in = self.jobs_last.map_or(5, |(_, _, one_in)| one_in);
        let code = i32::from(self.dice.one_in(one_fails_in));
        self.processes[process].job = Some(Job {
            main: true,
            status: Status::Exited(code),
            told: false,
        });
        let length = if let Some((least, most, _)) = self.jobs_last {
            self.dice.within(least, most)
        } else if self.dice.one_in(3) {
            self.dice.within(10_000, 120_000)
        } else {
            self.dice.within(10, 5_000)
        };
        self.after(length, What::JobEnds(process));
        self.tell(process, Event::JobStarted);
    }

    /// TERM: a job may take its time, or ignore it.
    fn term(&mut self, process: usize) {
        let Some(job) = &mut self.processes[process].job else {
            return;
        };
        if std::mem::replace(&mut job.told, true) {
            return;
        }
        job.status = Status::Signalled(15);
        if !self.dice.one_in(4) {
            let delay = self.dice.within(1, 3_000);
            self.after(delay, What::JobEnds(process));
        }
    }

    pub(super) fn job_ends(&mut self, process: usize) {
        let node = self.processes[process].node;
        if self.nodes[node].suspended {
            return self.after(1_000, What::JobEnds(process));
        }
        let Some(job) = &mut self.processes[process].job else {
            return;
        };
        if !std::mem::replace(&mut job.main, false) {
            return;
        }
        let status = job.status;
        let forced = self.processes[process]
            .guard
            .as_ref()
            .is_none_or(|g| g.forced);
        self.say(|| format!("p{process}'s job ends: {status:?}, forced: {forced}"));
        self.tally.successes += u64::from(status == Status::Exited(0) && !forced);
        let leftovers = self.dice.one_in(4);
        if leftovers {
            let delay = self.dice.within(1, 1_000);
            self.after(delay, What::TreeEnds(process));
        }
        self.tell(process, Event::JobExited { status, forced });
        if !leftovers {
            self.tree_ends(process);
        }
        self.plan(process);
    }

    fn killed(&mut self, process: usize) {
        if let Some(job) = &mut self.processes[process].job {
            let status = Status::Signalled(9);
            if std::mem::replace(&mut job.main, false) {
                job.status = status;
                self.tell(
                    process,
                    Event::JobExited {
                        status,
                        forced: true,
                    },
                );
            }
            self.tree_ends(process);
        }
    }

    pub(super) fn tree_ends(&mut self, process: usize) {
        let node = self.processes[process].node;
        if self.nodes[node].suspended {
            return self.after(1_000, What::TreeEnds(process));
        }
        let p = &mut self.processes[process];
        if p.job.take().is_none() {
            return;
        }
        p.guard = None;
        self.say(|| format!("p{process}'s tree is gone"));
        self.tell(process, Event::TreeGone);
        self.plan(process);
    }

    pub(super) fn guard_dies(&mut self, process: usize) {
        self.processes[process].guard = None;
        self.tell(process, Event::GuardGone);
        self.plan(process);
    }

    /// A stopped supervisor or guard goes on.
    pub(super) fn carry_on(&mut self, process: usize, guard: bool) {
        if guard {
            if let Some(guard) = &mut self.processes[process].guard {
                guard.stopped = false;
            }
        } else {
            self.processes[process].stopped = false;
        }
        self.catch_up(process);
    }

    /// After a stop or a suspension: deadlines first, then what came in the meantime.
    pub(super) fn catch_up(&mut self, process: usize) {
        self.wake(process);
        let inbox = std::mem::take(&mut self.processes[process].inbox);
        for event in inbox {
            self.tell(process, event);
        }
        self.wake(process);
    }
}

impl World {
    /// The host is gone, and everything on it.
    pub(super) fn vanish(&mut self, process: usize) {
        let now = self.now;
        let p = &mut self.processes[process];
        p.died_at.get_or_insert(now);
        p.guard = None;
        p.job = None;
        p.inbox.clear();
    }
}
