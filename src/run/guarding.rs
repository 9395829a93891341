//! The guard, as a run sees it: what the machine says becomes messages, and what
//! the guard says becomes events. When the guard is gone, its work is done here.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use super::ending::NotStarted;
use super::event::{Event, GuardNews};
use super::outside::Outside;
use crate::job::GuardSettings;
use crate::job::handle::{GuardHandle, Received, TreeEnd};
use crate::job::locks::JobLock;
use crate::job::messages::{Deadline, FromGuard, Stage, ToGuard};
use crate::moment::Moment;
use crate::sys::errno::Errno;
use crate::sys::fds::let_go_of_inherited;
use crate::sys::poll::wait_closed;
use crate::sys::procfs;
use crate::sys::signal_numbers::{SIGCONT, SIGKILL};

/// How long a guard that leaves may take to.
const LEAVING: Duration = Duration::from_millis(100);

/// How often it is noted who among this process's children is a stranger to the job.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// For how long a job runs before its supervisor lets go of what both inherited: who reads
/// such a pipe waits that much longer at most, and a run that is shorter is spared the work.
const LET_GO_AFTER: Duration = Duration::from_millis(50);

/// What comes from the guard.
#[derive(Debug)]
pub(super) enum Heard {
    /// For the machine.
    Event(Event),
    /// For people.
    News(GuardNews),
}

/// How the guard is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It waits for the job's start.
    Waiting,
    /// It was told to start the job.
    Guarding,
    /// It has said its last word.
    Finished,
    /// It is gone, or as good as gone: its tree is ended from here.
    Alone { again_at: Moment },
    /// That is done.
    Over,
}

/// The guard.
#[derive(Debug)]
pub(super) struct Guarding {
    handle: GuardHandle,
    state: State,
    sequence: u64,
    /// What the job's main process did, once that is known.
    heard: Vec<Heard>,
    closed: bool,
    /// For how long the guard had run when it was asked for the answer that it owes.
    had_run: Option<Duration>,
    /// Whether it was told to continue since.
    in_doubt: bool,
    /// When this process's other children are looked at next.
    look_at: Moment,
    inherited: Inheritance,
}

/// The pipes and sockets that this process inherited and the job has too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inheritance {
    /// The job may still need them.
    Kept,
    /// The job has just been started.
    Handed,
    /// The job has them. Held here too, a pipe would stay open that the job closes.
    KeptUntil(Moment),
    /// They are let go of.
    LetGo,
}

impl Guarding {
    pub(super) fn fork(outside: &Outside, kill_grace: Duration) -> io::Result<Self> {
        let handle = GuardHandle::fork(GuardSettings {
            argv: outside.argv.clone(),
            leftovers: outside.leftovers,
            kill_grace,
            inherited: outside.inherited,
            clock: outside.clock,
        })?;
        Ok(Self {
            handle,
            state: State::Waiting,
            sequence: 0,
            heard: Vec::new(),
            closed: false,
            had_run: None,
            in_doubt: false,
            look_at: Moment::default(),
            inherited: Inheritance::Kept,
        })
    }

    /// Whether a job may be alive.
    pub(super) const fn has_job(&self) -> bool {
        matches!(self.state, State::Guarding | State::Alone { .. })
    }

    /// What to poll; `None` once the guard will say nothing more.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.closed).then(|| self.handle.fd())
    }

    pub(super) fn wake_at(&self) -> Option<Moment> {
        let own = match (self.state, self.inherited) {
            (State::Alone { again_at }, _) => Some(again_at),
            (State::Guarding, Inheritance::KeptUntil(at)) => Some(at),
            _ => None,
        };
        [own, self.handle.reap_at()].into_iter().flatten().min()
    }

    /// Hands the job's lock to the guard, and closes it here: else a supervisor that is
    /// merely stopped would hold it. To be called before [`Self::start`].
    pub(super) fn hand_over(&mut self, lock: JobLock, inherited: bool) -> io::Result<()> {
        self.handle.send_lock(lock.as_fd(), inherited)
    }

    /// This child of the supervisor's is not the job's.
    pub(super) fn disown(&mut self, pid: i32) {
        self.handle.disown(pid);
    }

    pub(super) fn start(&mut self, deadline: Option<Deadline>, env: Vec<(String, String)>) {
        self.state = State::Guarding;
        if let Err(error) = self.handle.send(&ToGuard::Start { deadline, env }) {
            // An environment that is too large, or a guard that is gone: either way
            // the job is not started.
            let why = NotStarted::NoProcess(error.to_string());
            self.heard.push(Heard::Event(Event::JobNotStarted(why)));
        }
    }

    pub(super) fn extend(&mut self, deadline: Deadline) {
        self.sequence += 1;
        let seq = self.sequence;
        self.ask(&ToGuard::Deadline { seq, deadline });
    }

    pub(super) fn pass(&mut self, signal: i32) {
        self.send(&ToGuard::Pass { signal });
    }

    pub(super) fn end(&mut self, term_tree: bool, kill_at: Moment) {
        self.ask(&ToGuard::End { kill_at, term_tree });
    }

    /// Says something that is to be answered.
    fn ask(&mut self, message: &ToGuard) {
        self.had_run = procfs::run_time(self.handle.pid());
        self.in_doubt = false;
        self.send(message);
    }

    /// A guard that can't take a message does not answer either, which the machine
    /// notices: what could not be said is not said again.
    fn send(&mut self, message: &ToGuard) {
        if self.state == State::Guarding {
            let _ = self.handle.send(message);
        }
    }

    pub(super) fn continue_guard(&mut self) {
        // If it is gone, that is noticed by itself.
        let _ = self.handle.signal_guard(SIGCONT);
        self.in_doubt = true;
    }

    /// The guard counts as gone: it is killed, and so is its tree. The job has a
    /// parent-death signal, so a grace would be a promise that is not kept.
    pub(super) fn end_alone(&mut self) {
        let _ = self.handle.signal_guard(SIGKILL);
        self.state = State::Alone {
            again_at: Moment::default(),
        };
    }

    /// A child of this process has ended.
    pub(super) fn child_ended(&mut self) {
        self.handle.note_child_ended();
        if let State::Alone { again_at } = &mut self.state {
            *again_at = Moment::default();
        }
    }

    /// The run is over: a guard that waits leaves, one that has finished is reaped.
    pub(super) fn dismiss(&mut self) {
        if self.state == State::Waiting {
            self.send_anyway(&ToGuard::Kill);
        }
        // It has said its last word and is leaving: an outer run must not find it
        // among what its job left behind. One that was stopped just now is not waited for.
        if !self.closed {
            wait_closed(self.handle.fd(), LEAVING);
        }
        let _ = self.handle.try_wait();
    }

    fn send_anyway(&mut self, message: &ToGuard) {
        // If it can't be told it hears the end of the file soon.
        let _ = self.handle.send(message);
    }

    /// Whether the guard has answered since the last call, or is seen to be at work. What
    /// else it has said is kept for [`Self::events`].
    pub(super) fn has_answered(&mut self) -> io::Result<bool> {
        self.receive()?;
        let is_answer = |heard: &Heard| matches!(heard, Heard::Event(Event::GuardAnswered));
        let before = self.heard.len();
        self.heard.retain(|heard| !is_answer(heard));
        let has_answered = self.heard.len() < before || self.has_run();
        self.in_doubt &= !has_answered;
        Ok(has_answered)
    }

    /// Whether a guard that did not answer in time has run since it was asked. It is not
    /// stopped then and does not hang, but has much to do for the processor that the
    /// job's processes leave it: it ends hundreds of them, say. It is better at that than
    /// this process is.
    fn has_run(&self) -> bool {
        let has_run = || procfs::run_time(self.handle.pid());
        self.in_doubt
            && has_run()
                .zip(self.had_run)
                .is_some_and(|(now, then)| now > then)
    }

    fn receive(&mut self) -> io::Result<()> {
        while !self.closed {
            match self.handle.recv()? {
                None => break,
                Some(Received::Message(message)) => self.hear(message),
                Some(Received::Closed) => {
                    self.closed = true;
                    if matches!(self.state, State::Waiting | State::Guarding) {
                        self.heard.push(Heard::Event(Event::GuardGone));
                    }
                }
            }
        }
        Ok(())
    }

    /// What has happened since the last call.
    pub(super) fn events(&mut self, now: Moment) -> io::Result<Vec<Heard>> {
        self.receive()?;
        self.let_go(now);
        if self.state == State::Guarding && now >= self.look_at {
            self.look_at = now.plus(LOOK_EVERY);
            self.handle.note_strangers();
        }
        self.end_tree(now)?;
        if self.handle.reap_at().is_some_and(|at| at <= now) {
            self.handle.reap_orphans()?;
        }
        Ok(std::mem::take(&mut self.heard))
    }

    fn let_go(&mut self, now: Moment) {
        self.inherited = match self.inherited {
            Inheritance::Handed => Inheritance::KeptUntil(now.plus(LET_GO_AFTER)),
            Inheritance::KeptUntil(at) if now >= at => {
                let_go_of_inherited();
                Inheritance::LetGo
            }
            other => other,
        };
    }

    fn end_tree(&mut self, now: Moment) -> io::Result<()> {
        let State::Alone { again_at } = self.state else {
            return Ok(());
        };
        if now < again_at {
            return Ok(());
        }
        match self.handle.end_tree_without_guard()? {
            TreeEnd::Gone => {
                self.state = State::Over;
                self.heard.push(Heard::Event(Event::TreeGone));
            }
            TreeEnd::Ending {
                again_at,
                survivors,
            } => {
                self.state = State::Alone { again_at };
                let news = survivors.map(GuardNews::Survivors);
                self.heard.extend(news.map(Heard::News));
            }
        }
        Ok(())
    }

    fn hear(&mut self, message: FromGuard) {
        let heard = match message {
            FromGuard::Started { .. } => {
                self.inherited = Inheritance::Handed;
                Heard::Event(Event::JobStarted)
            }
            FromGuard::NotStarted { stage, errno, what } => {
                self.state = State::Finished;
                let errno = Errno::from_raw(errno);
                Heard::Event(Event::JobNotStarted(not_started(stage, errno, &what)))
            }
            FromGuard::Ack { .. } | FromGuard::Ending | FromGuard::Expired => {
                Heard::Event(Event::GuardAnswered)
            }
            FromGuard::Exited { status, forced } => {
                Heard::Event(Event::JobExited { status, forced })
            }
            FromGuard::Leftovers { count, names } => {
                Heard::News(GuardNews::Leftovers { count, names })
            }
            FromGuard::Survivors { processes } => Heard::News(GuardNews::Survivors(processes)),
            FromGuard::Gone => {
                self.state = State::Finished;
                Heard::Event(Event::TreeGone)
            }
        };
        self.heard.push(heard);
    }
}

fn not_started(stage: Stage, errno: Errno, what: &str) -> NotStarted {
    let reason = errno.description();
    match stage {
        Stage::TooLate => NotStarted::TooLate,
        Stage::Fork => NotStarted::NoProcess(format!("{what}: {reason}")),
        Stage::Exec if errno == Errno::ENOENT => NotStarted::NotFound(reason.to_owned()),
        Stage::Exec => NotStarted::NotExecutable(reason.to_owned()),
    }
}
