//! The guard's loop while there is a job.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use super::batches::Asking;
use super::batches::Reaping;
use super::deadlines::{Deadlines, Due};
use super::deduplication::SignalDeduplication;
use super::killing::{Killing, rehearse};
use super::link::Wakeups;
use super::link::{Heard, Link};
use super::protocol::{FromGuard, Stage, Survivor, ToGuard};
use super::protocol::{GuardSettings, Leftovers};
use super::spawn::{Exec, ExecReport, Started};
use super::tree::{self, Tree};
use super::walk::living;
use crate::moment::Moment;
use crate::sys::errno::Errno;
use crate::sys::memory::keep_used_pages;
use crate::sys::poll::Sources;
use crate::sys::process::{self, group_of, leave_session, signal_child, signal_parent};
use crate::sys::procfs;
use crate::sys::signals::{SIGCHLD, SIGCONT, SIGTSTP};
use crate::sys::terminal::is_in_foreground;
use crate::sys::wait::{Status, Waited, has_children, newly_stopped_by, try_wait};

/// The deadline is checked at least this often, whatever the timer does.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// A job that lasts so long makes the guard get ready for the job's end.
const LASTS: Duration = Duration::from_secs(1);

/// How many leftover processes are named.
const MOST_NAMES: usize = 8;

/// The longest time for counting them.
const LONGEST_LOOK: Duration = Duration::from_millis(50);

/// How many signals one round reads.
const MOST_SIGNALS: usize = 64;

/// The file descriptors that the guard polls.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Source {
    Timer,
    Signals,
    Supervisor,
    Exec,
}

/// A guard whose job exists.
#[derive(Debug)]
pub(super) struct Running<'a> {
    link: Link,
    wakeups: &'a Wakeups,
    settings: &'a GuardSettings,
    deadlines: Deadlines,
    asking: Asking,
    killing: Killing,
    reaping: Reaping,
    deduplication: SignalDeduplication,
    main: Main,
    own_pid: i32,
    /// When the timer will fire; `None` once it has.
    armed: Option<Moment>,
    /// When to get ready for the job's end; `None` once that is done.
    ready_at: Option<Moment>,
}

/// The job's main process.
#[derive(Debug)]
enum Main {
    /// Forked; its program may not run yet.
    Starting { pid: i32, report: ExecReport },
    /// The program could not be executed, and it is leaving.
    Refused { pid: i32, errno: i32 },
    /// The program runs.
    Running { pid: i32 },
    /// It has ended and was reaped; `others`: it left processes behind.
    Ended { others: bool },
    /// It has ended and was reaped; its program never ran.
    NeverRan { errno: i32 },
}

impl<'a> Running<'a> {
    /// A guard of the job whose main process was just started.
    pub(super) fn new(
        link: Link,
        wakeups: &'a Wakeups,
        settings: &'a GuardSettings,
        deadlines: Deadlines,
        started: Started,
    ) -> Self {
        let Started { pid, report } = started;
        Self {
            link,
            wakeups,
            settings,
            deadlines,
            asking: Asking::default(),
            killing: Killing::default(),
            reaping: Reaping::default(),
            deduplication: SignalDeduplication::default(),
            main: Main::Starting { pid, report },
            own_pid: process::pid(),
            armed: None,
            ready_at: Some(settings.clock.now().plus(LASTS)),
        }
    }

    /// Guards the job until none of its processes is left, and reports that.
    ///
    /// # Errors
    /// The guard can't go on; the tree has been killed once.
    pub(super) fn watch_over(mut self) -> io::Result<()> {
        let result = self.until_over();
        match &result {
            Ok(last_word) => self.link.say(last_word),
            Err(_) => {
                self.try_to_kill();
            }
        }
        result.map(drop)
    }

    /// No step in here may take long, whatever the job does: each round checks the deadline first,
    /// and the supervisor's messages are answered in between.
    fn until_over(&mut self) -> io::Result<FromGuard> {
        loop {
            self.enforce()?;
            if let Some(last_word) = self.last_word() {
                return Ok(last_word);
            }
            self.sleep()?;
            // First, whatever the reason to wake up.
            self.enforce()?;
            // Before the supervisor's messages: one of them may pass a signal on.
            self.hear_signals()?;
            self.look_at_exec();
            self.hear_supervisor();
            self.pass_on();
            self.get_ready_for_the_end();
        }
    }

    /// Takes care that the end of the job needs nothing from a disk: a host that is short of memory takes the pages of
    /// the program from processes that rest, and a busy disk would delay the guard beyond its deadline. The pages that
    /// are used stay from now on, so the end is rehearsed. A shorter job does not cost this work.
    fn get_ready_for_the_end(&mut self) {
        if self.ready_at.is_some_and(|at| at <= self.now()) {
            self.ready_at = None;
            keep_used_pages();
            rehearse(&self.tree());
        }
    }

    fn last_word(&self) -> Option<FromGuard> {
        let may_leave =
            self.settings.leftovers == Leftovers::Leave && !self.deadlines.is_thorough();
        match self.main {
            Main::Starting { .. } | Main::Refused { .. } | Main::Running { .. } => None,
            Main::Ended { others } => (!others || may_leave).then_some(FromGuard::Gone),
            Main::NeverRan { errno } => Some(FromGuard::NotStarted {
                stage: Stage::Exec,
                errno,
                what: self.settings.program(),
            }),
        }
    }

    /// Does what is due by now.
    fn enforce(&mut self) -> io::Result<()> {
        let clock = self.settings.clock;
        loop {
            let was_forced = self.deadlines.is_thorough();
            let due = self.deadlines.due(self.now());
            if due != Due::Nothing {
                // A main process that has ended by itself must not count as forced. All other
                // children can wait.
                self.reap_main(was_forced)?;
            }
            match due {
                Due::Nothing => {
                    self.asking.run(|| clock.now(), &self.tree());
                    return Ok(());
                }
                Due::Expired => self.link.say(&FromGuard::Expired),
                Due::Term => self.asking.begin(clock.now(), &self.tree()),
                Due::Kill => {
                    self.asking.stop();
                    let news = self.try_to_kill();
                    self.check_sight()?;
                    if let Some(processes) = news {
                        self.link.say(&FromGuard::Survivors { processes });
                    }
                    return Ok(());
                }
            }
        }
    }

    fn try_to_kill(&mut self) -> Option<Vec<Survivor>> {
        if self.killing.next().is_none() {
            // Where sessions share the processor evenly (autogroup), the guard alone now has as
            // much of it as the job's hundreds of processes.
            leave_session();
        }
        let (clock, tree) = (self.settings.clock, self.tree());
        self.killing.run(|| clock.now(), &tree)
    }

    /// Fails if this process cannot open files any more, not even those of /proc: then it can
    /// neither see nor end the job's processes. The supervisor does that once the guard has left.
    fn check_sight(&self) -> io::Result<()> {
        if self.link.is_open() && procfs::is_ours() && procfs::process(self.own_pid).is_none() {
            return Err(Errno::EMFILE.into());
        }
        Ok(())
    }

    fn tree(&self) -> Tree<'static> {
        Tree::below_this_process(self.own_pid, self.main_pid())
    }

    /// Sleeps until something happens or is due.
    fn sleep(&mut self) -> io::Result<()> {
        self.arm()?;
        let report = match &self.main {
            Main::Starting { report, .. } => Some(report.as_fd()),
            _ => None,
        };
        let timer = self.wakeups.timer.as_fd();
        // Otherwise each child that ends would wake the guard up.
        let rests = self.asking.next().is_some() || self.reaping.rests(self.now());
        let signals = (!rests).then(|| self.wakeups.signals.as_fd());
        let sources = Sources::new()
            .and(Source::Timer, timer)
            .and(Source::Signals, signals)
            .and(Source::Supervisor, self.link.poll_fd())
            .and(Source::Exec, report);
        // Nothing is ready after SIGSTOP and SIGCONT: no other error gets through.
        let ready = sources.wait(None)?;
        if ready.has(&Source::Timer) {
            self.wakeups.timer.clear();
            self.armed = None;
        }
        Ok(())
    }

    fn arm(&mut self) -> io::Result<()> {
        let latest = self.now().plus(LONGEST_SLEEP);
        // The next try of killing may come later than the next deadline.
        let ending = self.killing.next().or_else(|| self.deadlines.next());
        let own_work = self.asking.next().or_else(|| self.reaping.next());
        let due = [ending, self.deduplication.next(), own_work];
        let next = due.into_iter().flatten().fold(latest, Moment::min);
        if self.armed.is_none_or(|armed| next < armed) {
            self.wakeups.timer.arm(&self.settings.clock, next)?;
            self.armed = Some(next);
        }
        Ok(())
    }

    fn look_at_exec(&mut self) {
        let Main::Starting { pid, report } = &mut self.main else {
            return;
        };
        let pid = *pid;
        match report.look() {
            Exec::Pending => {}
            Exec::Failed(errno) => self.main = Main::Refused { pid, errno },
            Exec::Done => {
                self.deduplication
                    .settle(self.settings.clock.now(), report.discarded());
                self.main = Main::Running { pid };
                self.link.say(&FromGuard::Started { pid });
            }
        }
    }

    fn hear_signals(&mut self) -> io::Result<()> {
        let now = self.now();
        // Signals that arrive as fast as they are read must not delay the rest.
        for received in std::iter::from_fn(|| self.wakeups.signals.read()).take(MOST_SIGNALS) {
            if received.signal == SIGCHLD {
                self.reaping.note();
            } else {
                self.deduplication.hear(now, received.signal);
            }
        }
        // Reaped processes would hide others from the walk that sends TERM.
        if self.asking.next().is_none() && self.reaping.is_due(now) {
            self.reap(self.deadlines.is_thorough())?;
            self.look_whether_stopped(now);
        }
        Ok(())
    }

    /// Mirrors a job that has stopped itself by SIGTSTP, as an editor does, without its whole
    /// process group: the shell that waits for tokenrun must see that stop. A job that was stopped
    /// from outside, unseen by the terminal, is not mirrored.
    fn look_whether_stopped(&mut self, now: Moment) {
        let Some(Ok(Some(stopped_by))) = self.main_pid().map(newly_stopped_by) else {
            return;
        };
        // Only now: a stopped process executes nothing meanwhile.
        self.look_at_exec();
        match self.main {
            // The process is not the job's program yet, and nothing would show its stop.
            Main::Starting { pid, .. } => {
                let _ = signal_child(pid, SIGCONT);
            }
            _ if stopped_by == SIGTSTP => self.deduplication.pass(now, SIGTSTP),
            _ => {}
        }
    }

    /// Reaps the main process if it has ended. `forced`: the guard had begun to end the tree.
    fn reap_main(&mut self, forced: bool) -> io::Result<()> {
        if let Some(status) = self.main_status()? {
            self.main_ended(status, has_children()?, forced);
        }
        Ok(())
    }

    fn main_status(&self) -> io::Result<Option<Status>> {
        match self.main_pid().map(try_wait).transpose()? {
            Some(Waited::Ended { status, .. }) => Ok(Some(status)),
            _ => Ok(None),
        }
    }

    /// Reaps some ended children, the main process before all others.
    fn reap(&mut self, forced: bool) -> io::Result<()> {
        let main = self.main_pid();
        let clock = self.settings.clock;
        let mut ended = self.main_status()?;
        let others = self.reaping.run(
            || clock.now(),
            |pid, status| {
                if Some(pid) == main {
                    // It is reaped already: its pid may belong to another process.
                    ended.get_or_insert(status);
                }
            },
        )?;
        if let Some(status) = ended {
            self.main_ended(status, others, forced);
        } else if let Main::Ended { .. } = self.main {
            self.main = Main::Ended { others };
        }
        Ok(())
    }

    fn main_ended(&mut self, status: Status, others: bool, forced: bool) {
        // The process wrote its report before it ended, so the report is complete now.
        self.look_at_exec();
        if let Main::Refused { errno, .. } = self.main {
            self.main = Main::NeverRan { errno };
            return;
        }
        self.main = Main::Ended { others };
        self.link.say(&FromGuard::Exited { status, forced });
        if self.last_word().is_none() {
            self.end_leftovers();
        }
    }

    fn end_leftovers(&mut self) {
        let now = self.now();
        if !self.deadlines.end_leftovers(now, self.settings.kill_grace) {
            return;
        }
        let until = now.plus(LONGEST_LOOK);
        let (count, names) = match living(&self.tree(), || self.now() < until) {
            // All of them are ending by themselves and will be reaped soon.
            Some(living) if living.is_empty() => return,
            Some(living) => (living.len(), tree::names(&living, MOST_NAMES)),
            None => (0, Vec::new()),
        };
        self.link.say(&FromGuard::Leftovers {
            count,
            seen: procfs::is_ours(),
            names,
        });
    }

    fn hear_supervisor(&mut self) {
        let now = self.now();
        loop {
            match self.link.hear() {
                Heard::Nothing => return,
                Heard::Gone => {
                    // There is no supervisor left to pass a signal on.
                    leave_session();
                    self.deadlines.abandon(now, self.settings.kill_grace);
                }
                Heard::Message(message, _) => self.obey(now, message),
            }
        }
    }

    fn obey(&mut self, now: Moment, message: ToGuard) {
        match message {
            ToGuard::Deadline { deadline } => {
                self.deadlines.renew(now, deadline);
                self.link.say(&FromGuard::Ack);
            }
            ToGuard::Pass { signal } if self.is_in_own_group() => {
                self.deduplication.pass(now, signal)
            }
            ToGuard::Pass { signal } => self.signal_main(signal),
            // The job has been started.
            ToGuard::StartBy { .. } => {}
            ToGuard::End { kill_at, term_tree } => {
                self.deadlines.end(kill_at, term_tree);
                self.link.say(&FromGuard::Ending);
            }
            ToGuard::Kill => {
                self.deadlines.end(now, true);
                self.link.say(&FromGuard::Ending);
            }
            // Accepted once, and earlier.
            ToGuard::Start { .. } | ToGuard::Lock { .. } => {}
        }
    }

    /// True if a signal to the guard's process group reaches the main process too.
    fn is_in_own_group(&self) -> bool {
        self.main_pid().and_then(group_of) == group_of(0)
    }

    fn pass_on(&mut self) {
        if self.deduplication.next().is_some() {
            for signal in self.deduplication.due(self.now()) {
                if signal == SIGTSTP {
                    self.stop_supervisor();
                } else {
                    self.signal_main(signal);
                }
            }
        }
    }

    fn stop_supervisor(&self) {
        // The parent is the supervisor while the supervisor lives.
        if self.link.poll_fd().is_some() && is_in_foreground() {
            let _ = signal_parent(SIGTSTP);
        }
    }

    fn signal_main(&self, signal: i32) {
        if let Some(pid) = self.main_pid() {
            // The process may belong to another user by now: then it can't be signalled.
            let _ = signal_child(pid, signal);
        }
    }

    fn main_pid(&self) -> Option<i32> {
        match self.main {
            Main::Starting { pid, .. } | Main::Refused { pid, .. } | Main::Running { pid } => {
                Some(pid)
            }
            Main::Ended { .. } | Main::NeverRan { .. } => None,
        }
    }

    fn now(&self) -> Moment {
        self.settings.clock.now()
    }
}
