//! The supervisor's side of the guard: actions of the machine become messages, and messages of the
//! guard become events. When the guard is gone, the supervisor does its work here.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use super::ending::{Failed, NotStarted};
use super::event::{Event, GuardNews};
use super::setup::Setup;
use crate::job::GuardSettings;
use crate::job::handle::{GuardHandle, Received, TreeEnd};
use crate::job::locks::JobLock;
use crate::job::{Deadline, FromGuard, Stage, ToGuard};
use crate::moment::Moment;
use crate::sys::errno::Errno;
use crate::sys::fds::let_go_of_inherited;
use crate::sys::procfs;
use crate::sys::signals::{SIGCONT, SIGKILL};
use crate::sys::wait::ends_within;

/// How long a guard may take to end: long enough for a busy host. Nothing is held any more meanwhile.
const LEAVING: Duration = Duration::from_millis(500);

/// How often children of this process that do not belong to the job are recorded.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long a job runs before its supervisor closes inherited pipes. The reader of such a pipe
/// waits that much longer at most, and a shorter run is spared the work.
const LET_GO_AFTER: Duration = Duration::from_millis(50);

/// What the guard sends.
#[derive(Debug)]
pub(super) enum Heard {
    /// For the machine.
    Event(Event),
    /// For people.
    News(GuardNews),
}

/// The state of the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It waits for the job's start.
    Waiting,
    /// It has the order to start the job.
    Guarding,
    /// It has sent its last message.
    Finished,
    /// It is gone, or counts as gone: the supervisor ends its tree.
    Alone { again_at: Moment },
    /// The tree is gone.
    Over,
}

/// The answer that the guard owes.
#[derive(Debug, Default)]
struct Owed {
    /// How long the guard had run when it was asked.
    had_run: Option<Duration>,
    /// True if it was sent CONT since.
    in_doubt: bool,
}

impl Owed {
    fn asked(&mut self, has_run: Option<Duration>) {
        *self = Self {
            had_run: has_run,
            in_doubt: false,
        };
    }

    const fn continued(&mut self) {
        self.in_doubt = true;
    }

    /// True if the guard has answered, or has run since it was asked although it did not answer in time. Then it is
    /// neither stopped nor hung, but busy on a processor that the job's processes load: it may be ending hundreds of
    /// them. It does that better than this process could.
    fn is_given(&mut self, answered: bool, has_run: impl FnOnce() -> Option<Duration>) -> bool {
        let is_busy = || {
            let runs = has_run().zip(self.had_run);
            runs.is_some_and(|(now, then)| now > then)
        };
        let is_given = answered || self.in_doubt && is_busy();
        self.in_doubt &= !is_given;
        is_given
    }
}

#[derive(Debug)]
pub(super) struct Guarding {
    handle: GuardHandle,
    state: State,
    /// Until when the waiting guard expects the job's start.
    start_by: Option<Moment>,
    /// The end of the job's main process, once known.
    heard: Vec<Heard>,
    closed: bool,
    owed: Owed,
    /// When the other children of this process are checked next.
    look_at: Moment,
    inherited: Inheritance,
    /// The job's program and its arguments.
    argv: Vec<OsString>,
}

/// The pipes and sockets that this process and the job inherited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inheritance {
    /// The job may still need them.
    Kept,
    /// The job has just been started.
    Handed,
    /// The job has them. A pipe that the job closes would stay open as long as this process holds
    /// it.
    KeptUntil(Moment),
    /// This process has closed them.
    LetGo,
}

impl Guarding {
    /// `output`: what becomes the job's stdout and stderr.
    pub(super) fn fork(
        setup: &Setup,
        output: Option<OwnedFd>,
        kill_grace: Duration,
    ) -> io::Result<Self> {
        let handle = GuardHandle::fork(GuardSettings {
            argv: setup.argv.clone(),
            output,
            leftovers: setup.leftovers,
            kill_grace,
            inherited: setup.inherited,
            clock: setup.clock,
        })?;
        Ok(Self::new(handle, setup.argv.clone()))
    }

    fn new(handle: GuardHandle, argv: Vec<OsString>) -> Self {
        Self {
            handle,
            state: State::Waiting,
            start_by: None,
            heard: Vec::new(),
            closed: false,
            owed: Owed::default(),
            look_at: Moment::default(),
            inherited: Inheritance::Kept,
            argv,
        }
    }

    /// True if a job may be alive.
    pub(super) const fn has_job(&self) -> bool {
        matches!(self.state, State::Guarding | State::Alone { .. })
    }

    /// The descriptor to poll; `None` once the guard will send nothing more.
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

    /// Hands the job's lock to the guard, and closes it here: otherwise a supervisor that is merely
    /// stopped would hold it. To be called before [`Self::start`].
    pub(super) fn hand_over(&mut self, lock: JobLock, inherited: bool) -> io::Result<()> {
        self.handle.send_lock(lock.as_fd(), inherited)
    }

    /// The job starts by this time or not at all. `None`: no start is expected.
    pub(super) fn start_by(&mut self, at: Option<Moment>) {
        if at != self.start_by && self.state == State::Waiting {
            self.start_by = at;
            // A guard that can't take the message waits for longer, or is gone.
            let _ = self.handle.send(&ToGuard::StartBy { at });
        }
    }

    /// Records a child of the supervisor that does not belong to the job.
    pub(super) fn disown(&mut self, pid: i32) {
        self.handle.disown(pid);
    }

    pub(super) fn start(&mut self, deadline: Option<Deadline>, env: Vec<(String, String)>) {
        self.state = State::Guarding;
        if let Err(error) = self.handle.send(&ToGuard::Start { deadline, env }) {
            // The environment is too large, or the guard is gone: either way the job is not
            // started.
            let why = NotStarted::NoProcess(Failed::of(&self.argv, error.to_string()));
            self.heard.push(Heard::Event(Event::JobNotStarted(why)));
        }
    }

    pub(super) fn extend(&mut self, deadline: Deadline) {
        self.ask(&ToGuard::Deadline { deadline });
    }

    pub(super) fn pass(&mut self, signal: i32) {
        self.send(&ToGuard::Pass { signal });
    }

    pub(super) fn end(&mut self, term_tree: bool, kill_at: Moment) {
        self.ask(&ToGuard::End { kill_at, term_tree });
    }

    /// Sends a message that the guard must answer.
    fn ask(&mut self, message: &ToGuard) {
        self.owed.asked(procfs::run_time(self.handle.pid()));
        self.send(message);
    }

    /// Sends a message once. A guard that can't take it does not answer either, which the machine
    /// notices.
    fn send(&mut self, message: &ToGuard) {
        if self.state == State::Guarding {
            let _ = self.handle.send(message);
        }
    }

    pub(super) fn continue_guard(&mut self) {
        // A guard that is gone is noticed elsewhere.
        let _ = self.handle.signal_guard(SIGCONT);
        self.owed.continued();
    }

    /// Treats the guard as gone: kills it and its tree. The job has a parent-death signal, so a
    /// grace could not be kept.
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

    /// The run is over: a waiting guard leaves, a finished one is reaped.
    pub(super) fn dismiss(&mut self) {
        self.dismiss_within(LEAVING);
    }

    /// Waits for the guard's end: an outer run must not find it among the processes that its job left behind. A guard that
    /// was stopped just now is not waited for any longer than that.
    fn dismiss_within(&mut self, limit: Duration) {
        if self.state == State::Waiting {
            self.send_anyway(&ToGuard::Kill);
        }
        if matches!(self.handle.try_wait(), Ok(None)) {
            ends_within(self.handle.pid(), limit);
        }
    }

    fn send_anyway(&mut self, message: &ToGuard) {
        // A guard that can't take the message reads the end of file soon.
        let _ = self.handle.send(message);
    }

    /// True if the guard has answered since the last call, or has evidently run. Its other messages
    /// are kept for [`Self::events`].
    pub(super) fn has_answered(&mut self) -> io::Result<bool> {
        self.receive()?;
        let is_answer = |heard: &Heard| matches!(heard, Heard::Event(Event::GuardAnswered));
        let before = self.heard.len();
        self.heard.retain(|heard| !is_answer(heard));
        let answered = self.heard.len() < before;
        let pid = self.handle.pid();
        Ok(self.owed.is_given(answered, || procfs::run_time(pid)))
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
        let end = self.handle.end_tree_without_guard()?;
        self.note_end(end);
        Ok(())
    }

    fn note_end(&mut self, end: TreeEnd) {
        match end {
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
                let why = not_started(&self.argv, stage, errno, &what);
                Heard::Event(Event::JobNotStarted(why))
            }
            FromGuard::Ack | FromGuard::Ending | FromGuard::Expired => {
                Heard::Event(Event::GuardAnswered)
            }
            FromGuard::Exited { status, forced } => {
                Heard::Event(Event::JobExited { status, forced })
            }
            FromGuard::Leftovers { count, seen, names } => {
                Heard::News(GuardNews::Leftovers { count, seen, names })
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

fn not_started(argv: &[OsString], stage: Stage, errno: Errno, what: &str) -> NotStarted {
    match stage {
        Stage::TooLate => NotStarted::TooLate,
        Stage::Fork => {
            let error = format!("{what}: {}", errno.description());
            NotStarted::NoProcess(Failed::of(argv, error))
        }
        // The file was there before the store was asked.
        Stage::Exec => {
            NotStarted::by_errno(argv, errno, "no such file, or its interpreter is missing")
        }
    }
}

#[cfg(test)]
#[path = "guarding_tests.rs"]
mod tests;
