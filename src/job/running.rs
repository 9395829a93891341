//! The guard's loop while there is a job.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::echoes::Echoes;
use super::guard::Ears;
use super::handle::{GuardSettings, Leftovers};
use super::killing::Killing;
use super::link::{Heard, Link};
use super::messages::{FromGuard, Stage, ToGuard};
use super::spawn::{Exec, ExecReport};
use super::tree::{self, Tree};
use super::watch::{Due, Watch};
use crate::sys::process::{group_of, leave_session, pid, signal_child, signal_parent};
use crate::sys::procfs;
use crate::sys::terminal::is_in_foreground;
use crate::sys::wait::{Status, newly_stopped_by, reap_all};
use crate::token::Moment;

/// The deadline is looked at at least this often, whatever the timer does.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// How many of those that were left behind are named.
const MOST_NAMES: usize = 8;

/// A guard with a job.
#[derive(Debug)]
pub(super) struct Running<'a> {
    link: Link,
    ears: &'a Ears,
    settings: &'a GuardSettings,
    program: &'a str,
    watch: Watch,
    killing: Killing,
    echoes: Echoes,
    main: Main,
    /// When the timer will fire. `None`: it has fired.
    armed: Option<Moment>,
}

/// The job's main process.
#[derive(Debug)]
enum Main {
    /// Forked; its program may not run yet.
    Starting { pid: i32, report: ExecReport },
    /// Its program could not be executed, and it is leaving.
    Refused { pid: i32, errno: i32 },
    /// Its program runs.
    Running { pid: i32 },
    /// It has ended and was reaped, and left others behind or did not.
    Ended { others: bool },
    /// It has ended and was reaped without its program ever running.
    NeverRan { errno: i32 },
}

impl<'a> Running<'a> {
    /// A guard of the job whose main process, just forked, is `pid`.
    pub(super) fn new(
        link: Link,
        ears: &'a Ears,
        settings: &'a GuardSettings,
        program: &'a str,
        watch: Watch,
        pid: i32,
        report: ExecReport,
    ) -> Self {
        Self {
            link,
            ears,
            settings,
            program,
            watch,
            killing: Killing::default(),
            echoes: Echoes::default(),
            main: Main::Starting { pid, report },
            armed: None,
        }
    }

    /// Watches over the job until nothing is left of it, and says so.
    ///
    /// # Errors
    /// The guard can't go on; the tree has been killed once.
    pub(super) fn watch_over(mut self) -> io::Result<()> {
        let result = self.until_over();
        match &result {
            Ok(last_word) => self.link.say(last_word),
            Err(_) => {
                self.with_tree(|tree, now, this| this.killing.run(now, tree));
            }
        }
        result.map(drop)
    }

    fn until_over(&mut self) -> io::Result<FromGuard> {
        loop {
            self.enforce()?;
            if let Some(last_word) = self.last_word() {
                return Ok(last_word);
            }
            let woken_by_signal = self.sleep()?;
            // First of all, whatever the reason to wake up.
            self.enforce()?;
            if woken_by_signal {
                // Before the supervisor is heard: it may want one passed on.
                self.hear_signals()?;
            }
            self.look_at_exec();
            self.hear_supervisor();
            self.pass_on();
        }
    }

    fn last_word(&self) -> Option<FromGuard> {
        let may_leave = self.settings.leftovers == Leftovers::Leave && !self.watch.is_thorough();
        match self.main {
            Main::Starting { .. } | Main::Refused { .. } | Main::Running { .. } => None,
            Main::Ended { others } => (!others || may_leave).then_some(FromGuard::Gone),
            Main::NeverRan { errno } => Some(FromGuard::NotStarted {
                stage: Stage::Exec,
                errno,
                what: self.program.to_owned(),
            }),
        }
    }

    /// Does what is due by now.
    ///
    /// # Errors
    /// What waitpid(2) says; it has no reason to.
    fn enforce(&mut self) -> io::Result<()> {
        let now = self.now();
        loop {
            let was_forced = self.watch.is_thorough();
            let due = self.watch.due(now);
            if due != Due::Nothing {
                // Who has ended by itself must not seem to have been ended. And the
                // fewer there are the quicker those who live are found.
                self.reap(was_forced)?;
            }
            match due {
                Due::Nothing => return Ok(()),
                Due::Expired => self.link.say(&FromGuard::Expired),
                Due::Term => self.with_tree(|tree, _, _| tree.signal(&tree::ASK)),
                Due::Kill => {
                    if self.killing.next().is_none() {
                        // Where sessions share the processor evenly (autogroup), the
                        // guard alone now has as much of it as the job's hundreds.
                        leave_session();
                    }
                    let news = self.with_tree(|tree, now, this| this.killing.run(now, tree));
                    self.check_sight()?;
                    if let Some(processes) = news {
                        self.link.say(&FromGuard::Survivors { processes });
                    }
                    return Ok(());
                }
            }
        }
    }

    /// Fails if this process may open no files any more, /proc's neither: who lives can
    /// be neither seen nor ended then. The supervisor does it, once the guard has left.
    fn check_sight(&self) -> io::Result<()> {
        if self.link.is_open() && procfs::is_ours() && procfs::process(pid()).is_none() {
            return Err(Errno::EMFILE.into());
        }
        Ok(())
    }

    fn with_tree<R>(&mut self, body: impl FnOnce(&Tree<'_>, Moment, &mut Self) -> R) -> R {
        let tree = Tree::below_this_process(pid(), self.main_pid());
        let now = self.now();
        body(&tree, now, self)
    }

    /// Sleeps until something happens or is due. Says whether a signal has come.
    fn sleep(&mut self) -> io::Result<bool> {
        self.arm()?;
        let report = match &self.main {
            Main::Starting { report, .. } => Some(report.as_fd()),
            _ => None,
        };
        let fds = [self.ears.signals.as_fd(), self.ears.timer.as_fd()];
        let fds = fds.into_iter().chain(self.link.poll_fd()).chain(report);
        let mut fds: Vec<_> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        match poll(&mut fds, PollTimeout::NONE) {
            // Only by SIGSTOP and SIGCONT: nothing else gets through.
            Ok(_) | Err(Errno::EINTR) => {}
            Err(err) => return Err(err.into()),
        }
        let is_ready = |index: usize| fds.get(index).and_then(PollFd::any).unwrap_or(false);
        let (by_signal, by_timer) = (is_ready(0), is_ready(1));
        if by_timer {
            self.ears.timer.clear();
            self.armed = None;
        }
        Ok(by_signal)
    }

    fn arm(&mut self) -> io::Result<()> {
        let latest = self.now().plus(LONGEST_SLEEP);
        // Killing may pause longer than the moment that it began at.
        let watch = self.killing.next().or_else(|| self.watch.next());
        let due = [watch, self.echoes.next()].into_iter().flatten();
        let next = due.fold(latest, Moment::min);
        if self.armed.is_none_or(|armed| next < armed) {
            self.ears.timer.arm(&self.settings.clock, next)?;
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
                self.echoes
                    .settle(self.settings.clock.now(), report.discarded());
                self.main = Main::Running { pid };
                self.link.say(&FromGuard::Started { pid });
            }
        }
    }

    fn hear_signals(&mut self) -> io::Result<()> {
        let now = self.now();
        let mut child_ended = false;
        while let Some(received) = self.ears.signals.read() {
            if received.signal == libc::SIGCHLD {
                child_ended = true;
            } else {
                self.echoes.hear(now, received.signal);
            }
        }
        if child_ended {
            self.reap(self.watch.is_thorough())?;
            self.look_whether_stopped(now);
        }
        Ok(())
    }

    /// A job that has stopped itself by SIGTSTP, as an editor does, and not its whole
    /// process group: the shell that waits for tokenrun must see that stop. One that
    /// somebody stopped from outside, out of the terminal's sight, concerns nobody else.
    fn look_whether_stopped(&mut self, now: Moment) {
        let Some(Ok(Some(stopped_by))) = self.main_pid().map(newly_stopped_by) else {
            return;
        };
        // Only now: what is stopped executes nothing meanwhile.
        self.look_at_exec();
        match self.main {
            // It is none of the job's yet, and nobody would hear of it.
            Main::Starting { pid, .. } => {
                let _ = signal_child(pid, libc::SIGCONT);
            }
            _ if stopped_by == libc::SIGTSTP => self.echoes.pass(now, libc::SIGTSTP),
            _ => {}
        }
    }

    /// Reaps whoever has ended; `forced` says whether the tree had begun to be ended.
    fn reap(&mut self, forced: bool) -> io::Result<()> {
        let main = self.main_pid();
        let mut ended = None;
        let others = reap_all(|pid, status| {
            if Some(pid) == main {
                ended = Some(status);
            }
        })?;
        if let Some(status) = ended {
            self.main_ended(status, others, forced);
        } else if let Main::Ended { .. } = self.main {
            self.main = Main::Ended { others };
        }
        Ok(())
    }

    fn main_ended(&mut self, status: Status, others: bool, forced: bool) {
        // What it wrote it wrote before it ended, so now the report is complete.
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
        if !self.watch.end_leftovers(now, self.settings.kill_grace) {
            return;
        }
        let (count, names) = match self.with_tree(|tree, _, _| tree.living()) {
            // All are ending by themselves; they will be reaped in a moment.
            Some(living) if living.is_empty() => return,
            Some(living) => (living.len(), tree::names(&living, MOST_NAMES)),
            None => (0, Vec::new()),
        };
        self.link.say(&FromGuard::Leftovers { count, names });
    }

    fn hear_supervisor(&mut self) {
        let now = self.now();
        loop {
            match self.link.hear() {
                Heard::Nothing => return,
                Heard::Gone => self.watch.abandon(now, self.settings.kill_grace),
                Heard::Message(message, _) => self.obey(now, message),
            }
        }
    }

    fn obey(&mut self, now: Moment, message: ToGuard) {
        match message {
            ToGuard::Deadline { seq, deadline } => {
                self.watch.renew(now, deadline);
                self.link.say(&FromGuard::Ack { seq });
            }
            ToGuard::Pass { signal } if self.is_in_own_group() => self.echoes.pass(now, signal),
            ToGuard::Pass { signal } => self.signal_main(signal),
            ToGuard::End { kill_at, term_tree } => {
                self.watch.end(kill_at, term_tree);
                self.link.say(&FromGuard::Ending);
            }
            ToGuard::Kill => {
                self.watch.end(now, true);
                self.link.say(&FromGuard::Ending);
            }
            // Heard once, and before.
            ToGuard::Start { .. } | ToGuard::Lock { .. } => {}
        }
    }

    /// Whether a signal to the guard's process group reaches the main process too.
    fn is_in_own_group(&self) -> bool {
        self.main_pid().and_then(group_of) == group_of(0)
    }

    fn pass_on(&mut self) {
        if self.echoes.next().is_some() {
            for signal in self.echoes.due(self.now()) {
                if signal == libc::SIGTSTP {
                    self.stop_supervisor();
                } else {
                    self.signal_main(signal);
                }
            }
        }
    }

    fn stop_supervisor(&self) {
        // The parent is the supervisor as long as that is not gone.
        if self.link.poll_fd().is_some() && is_in_foreground() {
            let _ = signal_parent(libc::SIGTSTP);
        }
    }

    fn signal_main(&self, signal: i32) {
        if let Some(pid) = self.main_pid() {
            // It may be another user's by now: then it can't be told.
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
