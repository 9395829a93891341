//! One state of the search: the store, two clients with their processes, and what
//! is on its way between them. The rule, the swaps and the machine are the real ones.

use std::time::Duration;

use super::{Left, Scenario};
use crate::job::messages::Deadline;
use crate::moment::Moment;
use crate::run::ending::NotStarted;
use crate::run::event::{Action, Event};
use crate::run::machine::{Limits, Machine, Wait};
use crate::run::simulation::{is_shown_to_hold, takes_it_for_lost};
use crate::store::Request;
use crate::store::model::{ModelData, Server};
use crate::store::{Reading, StoreError};
use crate::sys::wait::Status;
use crate::token::QueueEntry;
use crate::token::mutant::{Mutant, is_mutant};
use crate::token::queue;
use crate::token::{
    About, Claim, ClientId, ClockEpoch, Evidence, GroupName, Memory, NoteSwap, Recorded, Row,
    Served, SessionId, Stamp, StampOf, State, StoreTime, Swap, Swapped,
};

/// A request that is out.
#[derive(Debug, Clone)]
pub(super) enum Out {
    /// On its way to the store.
    Sent { request: Request, at: Moment },
    /// Its answer is on its way back.
    Answered { event: Event, at: Moment },
}

/// The guard of a living supervisor.
#[derive(Debug, Clone, Default)]
pub(super) struct Guard {
    deadline: Option<Deadline>,
    kill_at: Option<Moment>,
    forced: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Job {
    None,
    /// Its own process is alive.
    Runs,
    /// Its own process is gone, others of its tree are alive.
    Leftovers,
}

#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) machine: Machine,
    pub(super) out: Option<Out>,
    pub(super) guard: Guard,
    pub(super) job: Job,
}

/// A job whose supervisor is gone; its guard gives it its grace.
#[derive(Debug, Clone)]
pub(super) struct Orphan {
    session: SessionId,
    kill_at: Moment,
}

/// A swap that its sender waits for no more, but that may still arrive.
#[derive(Debug, Clone)]
pub(super) struct Adrift {
    pub(super) swap: Swap,
    session: SessionId,
    pub(super) sent_at: Moment,
    pub(super) died_at: Option<Moment>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Client {
    pub(super) process: Option<Process>,
    pub(super) orphan: Option<Orphan>,
    pub(super) adrift: Vec<Adrift>,
    pub(super) frozen: bool,
}

#[derive(Debug, Clone)]
pub(super) struct World {
    /// True time in seconds; every clock goes with it.
    seconds: u64,
    epoch: u8,
    /// Which server has the store, and how many there are to be promoted in turn.
    server: u8,
    servers: u8,
    /// How often a snapshot was put back, which takes a moment.
    put_back: u8,
    store: ModelData,
    /// What it held before its last commit, if that may be lost.
    pub(super) before: Option<ModelData>,
    pub(super) clients: [Client; 2],
    drawn: u64,
    sessions: u64,
    highest_fence: i64,
    /// Until when a job may be alive beside another, as an operator was told.
    pub(super) excused: Vec<(SessionId, Moment)>,
    pub(super) left: Left,
    /// Whether the step to this state granted the token.
    pub(super) granted: bool,
    pub(super) violation: Option<String>,
}

fn group() -> GroupName {
    GroupName::new("g").unwrap()
}

fn name_of(client: usize) -> ClientId {
    ClientId::new(["a", "b"][client]).unwrap()
}

const SECOND: Duration = Duration::from_secs(1);

/// How long a swap may be adrift: longer than it may take to happen.
const ADRIFT: Duration = Duration::from_secs(3);

impl World {
    pub(super) fn new(left: Left, servers: u8) -> Self {
        let mut this = Self {
            seconds: 1_000,
            epoch: 0,
            server: 0,
            servers,
            put_back: 0,
            store: ModelData::default(),
            before: None,
            clients: [Client::default(), Client::default()],
            drawn: 0,
            sessions: 0,
            highest_fence: 0,
            excused: Vec::new(),
            left,
            granted: false,
            violation: None,
        };
        this.store = ModelData::made(&this.server(), &this.store_time());
        this
    }

    fn server(&self) -> Server {
        Server::named(&format!("s{}", self.server))
    }

    /// Whether the store's note says that it is to be observed.
    pub(super) fn is_observed(&self) -> bool {
        let note = self.store.incarnation.as_ref();
        note.is_some_and(|note| note.served != Served::Everything)
    }

    /// What the store may have forgotten.
    pub(super) fn memory(&self) -> Memory {
        self.store.memory(&self.server())
    }

    pub(super) const fn moment(&self) -> Moment {
        Moment(Duration::from_secs(self.seconds))
    }

    pub(super) fn store_time(&self) -> StoreTime {
        let seconds = i64::try_from(self.seconds).unwrap();
        let moved = i64::from(self.put_back);
        StoreTime {
            epoch: ClockEpoch(format!("d{}", self.epoch)),
            stamp: Stamp {
                // Another clock epoch's ticks say nothing; here, that much time has passed.
                tick_ms: 1_000 * (seconds + 1_000 * i64::from(self.epoch)) + moved,
                // A failover takes a moment, and the next clock is not behind.
                wall_ms: 1_790_000_000_000 + 1_000 * seconds + i64::from(self.epoch) + moved,
            },
        }
    }

    pub(super) fn row(&self) -> Option<&Row> {
        self.store.rows.get(&group())
    }

    fn violated(&mut self, what: impl Into<String>) {
        self.violation.get_or_insert(what.into());
    }

    /// Time passes, unless a request has been out for its whole time-out, or the
    /// network is fast.
    pub(super) fn may_pass(&self) -> bool {
        let overdue = |n: usize| {
            let client = &self.clients[n];
            let out = client.process.as_ref().and_then(|p| p.out.as_ref());
            let may_linger = |out| n == 0 && self.left.slow > 0 && !self.is_late(out);
            !client.frozen && out.is_some_and(|out| !may_linger(out))
        };
        !(0..2).any(overdue)
    }

    /// Whether its sender may stop waiting for it.
    pub(super) fn is_late(&self, out: &Out) -> bool {
        let (Out::Sent { at, .. } | Out::Answered { at, .. }) = out;
        self.moment() >= at.plus(SECOND)
    }

    pub(super) fn pass(&mut self) {
        let out = |client: &Client| client.process.as_ref().is_some_and(|p| p.out.is_some());
        if self
            .clients
            .iter()
            .any(|client| !client.frozen && out(client))
        {
            self.left.slow -= 1;
        }
        self.seconds += 1;
        let now = self.moment();
        self.excused.retain(|(_, until)| now <= *until);
        for client in 0..2 {
            let adrift = &mut self.clients[client].adrift;
            adrift.retain(|adrift| now <= adrift.sent_at.plus(ADRIFT));
            if !self.clients[client].frozen {
                self.catch_up(client);
            }
        }
    }

    /// Everything that is due on a client: the guard's deadlines first.
    pub(super) fn catch_up(&mut self, client: usize) {
        let now = self.moment();
        self.clients[client]
            .orphan
            .take_if(|orphan| now >= orphan.kill_at);
        self.guard_checks(client);
        self.tell(client, Event::Tick);
    }

    pub(super) fn start(&mut self, client: usize, scenario: &Scenario) {
        self.sessions += 1;
        let left = &mut self.left.starts[client];
        *left -= u8::from(*left < u8::MAX);
        let claim = Claim {
            group: group(),
            client: name_of(client),
            session: SessionId::from_random(u128::from(self.sessions)),
            expected: scenario.expected.map(name_of),
            failback: scenario.expected == Some(client),
            nested_in: None,
            timing: scenario.timings[client],
            about: About::default(),
        };
        let limits = Limits {
            locks: scenario.locks,
            wait: if scenario.waits[client] {
                Wait::Forever
            } else {
                Wait::No
            },
            ..Limits::default()
        };
        self.clients[client].process = Some(Process {
            machine: Machine::new(claim, limits),
            out: None,
            guard: Guard::default(),
            job: Job::None,
        });
        self.tell(client, Event::Tick);
    }

    /// Gives an event to a client's supervisor, and carries out what it says.
    pub(super) fn tell(&mut self, client: usize, event: Event) {
        let now = self.moment();
        let drawn = &mut self.drawn;
        // Bits that make every pause the shortest, and every version another one.
        let mut draw = || {
            *drawn += 1;
            (7_000_000_000 + *drawn) * 2_000_000_000
        };
        let Some(process) = &mut self.clients[client].process else {
            return;
        };
        let holds = is_shown_to_hold(&event, process.machine.claim());
        let actions = process.machine.step(now, event, &mut draw);
        if holds && actions.iter().any(takes_it_for_lost) {
            self.violated("a session ended for a token that it still held");
        }
        for action in actions {
            self.act(client, action);
        }
        let ended = |p: &Process| p.machine.ending().is_some();
        if self.clients[client].process.as_ref().is_some_and(ended) {
            self.supervisor_dies(client, true);
        }
    }

    fn act(&mut self, client: usize, action: Action) {
        let now = self.moment();
        let Some(process) = &mut self.clients[client].process else {
            return;
        };
        match action {
            Action::Say(_) | Action::ContinueGuard => return,
            Action::TakeLocks => {
                return self.tell(client, Event::LocksTaken(Ok("lock".to_owned())));
            }
            Action::Send(request) => {
                let sent = Out::Sent { request, at: now };
                if process.out.replace(sent).is_some() {
                    self.violated("two requests are out");
                }
                return;
            }
            Action::StartJob { deadline, .. } => {
                process.guard.deadline = deadline;
                let late = deadline.is_some_and(|d| now >= d.term_at);
                if late && !is_mutant(Mutant::LateStart) {
                    self.tell(client, Event::JobNotStarted(NotStarted::TooLate));
                } else {
                    process.job = Job::Runs;
                    if late {
                        self.violated("a job was started too late");
                    }
                    self.tell(client, Event::JobStarted);
                }
            }
            Action::Extend(deadline) => process.guard.deadline = Some(deadline),
            Action::Pass(_) => {}
            Action::End { term_tree, kill_at } => {
                let guard = &mut process.guard;
                guard.kill_at = Some(guard.kill_at.map_or(kill_at, |old| old.min(kill_at)));
                guard.forced |= term_tree;
            }
            Action::EndWithoutGuard => return self.killed(client),
        }
        self.guard_checks(client);
        self.tell(client, Event::GuardAnswered);
    }

    fn guard_checks(&mut self, client: usize) {
        let now = self.moment();
        let Some(process) = &mut self.clients[client].process else {
            return;
        };
        let guard = &mut process.guard;
        let due = |at: Option<Moment>| at.is_some_and(|at| now >= at);
        let kill = due(guard.kill_at) || due(guard.deadline.map(|d| d.kill_at));
        guard.forced |= kill || due(guard.deadline.map(|d| d.term_at));
        if kill && process.job != Job::None {
            self.killed(client);
        }
    }

    fn killed(&mut self, client: usize) {
        self.main_exits(client, Status::Signalled(9));
        self.tree_ends(client);
    }

    /// The job's own process ends, by itself or killed.
    pub(super) fn main_exits(&mut self, client: usize, status: Status) {
        let Some(process) = &mut self.clients[client].process else {
            return;
        };
        if process.job == Job::Runs {
            process.job = Job::Leftovers;
            let forced = process.guard.forced;
            self.tell(client, Event::JobExited { status, forced });
        }
    }

    /// The last process of the job ends.
    pub(super) fn tree_ends(&mut self, client: usize) {
        let Some(process) = &mut self.clients[client].process else {
            return;
        };
        if std::mem::replace(&mut process.job, Job::None) != Job::None {
            self.tell(client, Event::TreeGone);
        }
    }

    /// The supervisor is gone; its guard lives for its grace.
    pub(super) fn supervisor_dies(&mut self, client: usize, by_itself: bool) {
        let now = self.moment();
        let Some(process) = self.clients[client].process.take() else {
            return;
        };
        let (session, grace) = {
            let claim = process.machine.claim();
            (claim.session.clone(), claim.timing.kill_grace)
        };
        self.set_adrift(client, &session, process.out);
        let this = &mut self.clients[client];
        for adrift in &mut this.adrift {
            if adrift.session == session && !by_itself {
                adrift.died_at.get_or_insert(now);
            }
        }
        if process.job != Job::None {
            let ordered = [
                process.guard.kill_at,
                process.guard.deadline.map(|d| d.kill_at),
            ];
            let kill_at = ordered
                .into_iter()
                .flatten()
                .fold(now.plus(grace), Moment::min);
            if kill_at > now {
                this.orphan = Some(Orphan { session, kill_at });
            }
        }
    }

    fn set_adrift(&mut self, client: usize, session: &SessionId, out: Option<Out>) {
        if let Some(Out::Sent {
            request: Request::Swap(swap),
            at,
        }) = out
        {
            self.clients[client].adrift = vec![Adrift {
                swap: *swap,
                session: session.clone(),
                sent_at: at,
                died_at: None,
            }];
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

    /// Nobody waits for the request any more, but it may still arrive.
    pub(super) fn time_out(&mut self, client: usize) {
        let Some(process) = &mut self.clients[client].process else {
            return;
        };
        let session = process.machine.claim().session.clone();
        let out = process.out.take();
        let error = || StoreError::unavailable("no answer");
        let event = match &out {
            None => return,
            Some(Out::Sent {
                request: Request::Read(_) | Request::Join(..),
                ..
            }) => Event::Looked(Err(error())),
            Some(Out::Sent {
                request: Request::Leave(..),
                ..
            }) => Event::Left(Err(error())),
            Some(Out::Sent {
                request: Request::Swap(_) | Request::Note(_),
                ..
            }) => Event::Swapped(Err(error())),
            Some(Out::Sent { .. }) => Event::Recorded(Err(error())),
            Some(Out::Answered { event, .. }) => match event {
                Event::Looked(_) => Event::Looked(Err(error())),
                Event::Swapped(_) => Event::Swapped(Err(error())),
                Event::Left(_) => Event::Left(Err(error())),
                _ => Event::Recorded(Err(error())),
            },
        };
        self.set_adrift(client, &session, out);
        self.tell(client, event);
    }

    /// The request reaches the store.
    pub(super) fn arrive(&mut self, client: usize) {
        let Some(process) = &mut self.clients[client].process else {
            return;
        };
        let Some(Out::Sent { request, at }) = process.out.take() else {
            return;
        };
        let session = process.machine.claim().session.clone();
        let event = match request {
            Request::Leave(group, session) => {
                self.store.leave(&group, &session);
                Event::Left(Ok(()))
            }
            Request::Read(_) | Request::Join(..) => {
                if let Request::Join(group, waiter, expiry) = &request {
                    let now = self.store_time();
                    self.store.join(group, waiter, expiry, &now);
                }
                let reading = Reading {
                    row: self.row().cloned(),
                    now: self.store_time(),
                    queue: self.store.queue_of(&group()),
                    memory: self.memory(),
                };
                Event::Looked(Ok((Box::new(reading), Evidence::None)))
            }
            Request::Swap(swap) => Event::Swapped(Ok(self.swap(client, &swap, &session, None))),
            Request::Note(swap) => Event::Swapped(Ok(self.note(&swap))),
            Request::Once { .. } => Event::OnceLooked(Ok(None)),
            Request::Prune { .. } => Event::Tick,
            Request::Record(_) => Event::Recorded(Ok(Recorded::Written)),
        };
        if let Some(process) = &mut self.clients[client].process {
            process.out = Some(Out::Answered { event, at });
        }
    }

    /// The answer reaches the supervisor, which then looks at the locks.
    pub(super) fn deliver(&mut self, client: usize) {
        let Some(process) = &mut self.clients[client].process else {
            return;
        };
        let Some(Out::Answered { event, .. }) = process.out.take() else {
            return;
        };
        let event = match event {
            Event::Looked(Ok((reading, _))) => {
                let evidence = self.evidence(client, reading.row.as_ref());
                Event::Looked(Ok((reading, evidence)))
            }
            other => other,
        };
        self.tell(client, event);
    }

    pub(super) fn arrive_adrift(&mut self, client: usize) {
        if let Some(adrift) = self.clients[client].adrift.pop() {
            self.swap(client, &adrift.swap, &adrift.session, adrift.died_at);
        }
    }

    /// A swap from a version that is gone conflicts, whenever it arrives.
    pub(super) fn forget_what_cannot_happen(&mut self) {
        let version = self.row().map(|row| row.version);
        for client in &mut self.clients {
            client.adrift.retain(|adrift| adrift.swap.from == version);
        }
    }

    fn evidence(&self, client: usize, row: Option<&Row>) -> Evidence {
        let Some(row) = row.filter(|row| row.run().is_some_and(|run| run.lock_file.is_some()))
        else {
            return Evidence::None;
        };
        if row.client_bound() != Some(&name_of(client)) {
            return Evidence::None;
        }
        let here = &self.clients[client];
        let run = here.process.as_ref();
        let run = run.filter(|p| Some(&p.machine.claim().session) == row.session());
        let orphan = here.orphan.as_ref();
        let orphan = orphan.is_some_and(|orphan| Some(&orphan.session) == row.session());
        let job = orphan || run.is_some_and(|process| process.job != Job::None);
        Evidence::of_locks(run.is_some(), job, vec![])
    }

    /// Writes for somebody who is no process of the search.
    pub(super) fn operate(&mut self, swap: &Swap, old_job_for: Duration, releases: bool) {
        let now = self.store_time();
        let holder = self.row().and_then(Row::session).cloned();
        self.before = None;
        self.store.swap(swap, &now);
        if let (true, Some(holder)) = (releases, holder) {
            self.excused.push((holder, self.moment().plus(old_job_for)));
        }
    }

    pub(super) fn change_clock(&mut self) {
        self.epoch += 1;
    }

    /// A failover to a store that had not yet heard of the last commit.
    pub(super) fn lose_commit(&mut self) {
        let left = self.before.take().unwrap_or_default();
        let lost = std::mem::replace(&mut self.store, left);
        match self.servers {
            // It was put back in place: nothing shows that, so its holder is excused.
            1 => {
                self.put_back += 1;
                // Nor that a fence may be granted again.
                self.highest_fence = self.row().map_or(0, |row| row.fence.0);
                return self.excuse_holder(&lost);
            }
            // A server comes back: the note of the one in between is not lost.
            2 => self.store.keep_notes(&lost),
            _ => {}
        }
        self.fail_over();
    }

    /// Everything is lost, and the store has another server.
    pub(super) fn wipe(&mut self) {
        self.before = None;
        self.store = ModelData::default();
        self.fail_over();
    }

    fn excuse_holder(&mut self, lost: &ModelData) {
        let Some(row) = lost.rows.get(&group()) else {
            return;
        };
        let kept = self.row().and_then(Row::session) == row.session();
        if let (Some(holder), false) = (row.session(), kept) {
            let until = self.moment().plus(row.document.takeover_after);
            self.excused.push((holder.clone(), until));
        }
    }

    fn fail_over(&mut self) {
        self.server = (self.server + 1) % self.servers;
        self.change_clock();
    }

    fn note(&mut self, swap: &NoteSwap) -> Swapped {
        let store = (self.left.commits > 0).then(|| self.store.clone());
        let swapped = self.store.note(swap, &self.store_time());
        if matches!(swapped, Swapped::Done(_)) {
            self.before = store;
        }
        swapped
    }

    fn swap(
        &mut self,
        client: usize,
        swap: &Swap,
        session: &SessionId,
        died_at: Option<Moment>,
    ) -> Swapped {
        let now = self.store_time();
        let before = self.row().cloned();
        let queue = self.store.queue_of(&group());
        let store = (self.left.commits > 0).then(|| self.store.clone());
        let swapped = self.store.swap(swap, &now);
        self.store.runs.clear();
        if !matches!(swapped, Swapped::Done(_)) {
            return swapped;
        }
        self.before = store;
        match swap.stamp {
            Some(StampOf::Granted) => {
                let mut looked = now.clone();
                looked.stamp.tick_ms = swap.expiry.tick_ms() - 1_000;
                self.check_queue(session, before.as_ref(), &queue, &looked);
                self.check_grant(swap, before.as_ref(), &now, died_at);
            }
            Some(StampOf::Heartbeat) if before.as_ref().and_then(Row::session) != Some(session) => {
                self.violated("a heartbeat overwrote another session's grant");
            }
            Some(StampOf::Released) => {
                let process = self.clients[client].process.as_ref();
                if process.is_some_and(|p| p.job != Job::None) {
                    self.violated("the token was released while its job was alive");
                }
            }
            Some(StampOf::Heartbeat | StampOf::Created) | None => {}
        }
        swapped
    }

    /// Of two in the queue, both of them alive when the one that is granted the token looked,
    /// the first comes first, unless an operator has named the other. Who was taken for
    /// dead then may have come back since.
    fn check_queue(
        &mut self,
        session: &SessionId,
        before: Option<&Row>,
        queue: &[QueueEntry],
        looked: &StoreTime,
    ) {
        let in_queue = queue.iter().any(|entry| entry.waiter.session == *session);
        let named = before.is_some_and(|row| row.document.handoff.is_some());
        let back = |entry: &&QueueEntry| entry.seen_at.tick_ms >= looked.stamp.tick_ms;
        let before = queue::before(session, queue, looked);
        let passed = before.filter(|entry| !back(entry)).count();
        if in_queue && !named && passed > 0 && self.all_awake() {
            self.violated("the token was granted past somebody in the queue");
        }
    }

    /// Nobody's sign of life is late.
    fn all_awake(&self) -> bool {
        self.clients.iter().all(|client| !client.frozen)
    }

    /// The line, as the search tells states apart: who, in which order, and how lively.
    pub(super) fn queue(&self) -> Vec<(SessionId, Option<Stamp>)> {
        let now = self.store_time();
        let seen = |entry: QueueEntry| {
            let alive = entry.is_alive(&now);
            (entry.waiter.session, alive.then_some(entry.seen_at))
        };
        self.store
            .queue_of(&group())
            .into_iter()
            .map(seen)
            .collect()
    }

    fn check_grant(
        &mut self,
        swap: &Swap,
        before: Option<&Row>,
        now: &StoreTime,
        died_at: Option<Moment>,
    ) {
        self.granted = true;
        let fence = swap.to.fence.0;
        if fence <= self.highest_fence {
            self.violated("the fence did not rise");
        }
        self.highest_fence = fence;
        if died_at.is_some_and(|died| self.moment() > died.plus(SECOND)) {
            self.violated("the token was granted to a process long dead");
        }
        let Some(before) = before else { return };
        if before.document.paused.is_some() {
            self.violated("a paused token was granted");
        }
        if let State::Idle { client } = &before.state {
            let taker = swap.to.client_bound();
            let age = before.age(now);
            let young = age.is_some_and(|age| age < before.document.keep);
            let handed = before.document.handoff.as_ref().map(|h| &h.to) == taker;
            let waited = swap.leaves.is_some();
            if young && !handed && !waited && taker != Some(client) {
                self.violated("a slot that has just run was granted to another");
            }
        }
    }

    /// Never two jobs alive at once.
    pub(super) fn check_overlap(&mut self) {
        let mut alive = 0;
        for client in self.clients.iter().filter(|client| !client.frozen) {
            let runs = client.process.as_ref().filter(|p| p.job != Job::None);
            let sessions = runs.map(|p| &p.machine.claim().session);
            let orphan = client.orphan.as_ref().map(|orphan| &orphan.session);
            for session in sessions.into_iter().chain(orphan) {
                let excused = |(other, _): &(SessionId, Moment)| other == session;
                alive += usize::from(!self.excused.iter().any(excused));
            }
        }
        if alive > 1 {
            self.violated("two jobs are alive");
        }
    }
}
