//! Gives the machine of a run a real clock, a real store, a real guard and real signals. The driver
//! decides nothing: it carries out the machine's actions and reports events to it.
//!
//! The first look comes before the guard and before any thread. If the machine then goes on, the
//! driver forks the guard, while there is one thread, and the store moves to a thread of its own.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use super::answers::{event_of, prove_nesting};
use super::catching::Catching;
use super::ending::Ending;
use super::environment;
use super::event::{Action, Event, Note};
use super::first::{First, Looked};
use super::guarding::Guarding;
use super::last_requests::LastRequests;
use super::locking::Locking;
use super::machine::Machine;
use super::refusing::Refusing;
use super::second_primary::SecondPrimary;
use super::setup::Setup;
use crate::job::Captured;
use crate::moment::Moment;
use crate::store::Store;
use crate::store::worker::Worker;
use crate::sys::clock::LocalClock;
use crate::sys::events::Timer;
use crate::sys::poll::Sources;
use crate::sys::procfs;
use crate::sys::random;
use crate::sys::signals::{SIGCHLD, SignalFd, asks_for_end};
use crate::token::Claim;

/// Deadlines are checked at least this often, whatever the timer does.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// How many signals one read takes.
const MOST_SIGNALS: usize = 64;

/// Receives the run's notes. `detached`: a deadline is held in this process, so the listener must
/// not block.
pub trait Listener {
    /// Takes a note of the run.
    fn hear(&mut self, note: &Note, detached: bool);
    /// Takes the guard's news of the job's processes.
    fn hear_guard(&mut self, news: &super::event::GuardNews);
    /// The supervisor is at work. Called at least every second once there is a guard.
    fn at_work(&mut self) {}
    /// The pid of a child of this process that the listener has started since the last call: it is
    /// not the job's.
    fn new_child(&mut self) -> Option<i32> {
        None
    }
}

/// Drives a run to its end. Returns that, and what was caught of the job's output.
///
/// # Errors
/// The operating system refuses what tokenrun needs: descriptors, a process, a thread.
pub fn drive(
    mut machine: Machine,
    mut store: Box<dyn Store>,
    setup: &Setup,
    listener: &mut dyn Listener,
) -> io::Result<(Ending, Option<Captured>)> {
    if let Some(why) = &setup.unstartable {
        let ending = Ending::Unstartable(why.clone());
        return Ok((
            over_before_a_look(machine.claim(), ending, store, listener),
            None,
        ));
    }
    let mut locking = Locking::new(&setup.locks);
    let first = First {
        machine: &mut machine,
        clock: setup.clock,
        store: store.as_mut(),
        locking: &mut locking,
        inherited: setup.inherited,
        draw: &mut draw,
    };
    let mut pending = match first.look_or_end(&mut |note| listener.hear(note, false))? {
        Looked::Over(ending) => {
            // The process ends now: closing the store would only cost work.
            std::mem::forget(store);
            return Ok((ending, None));
        }
        Looked::GoesOn(actions) => actions,
    };
    if !procfs::is_ours() {
        pending.insert(0, Action::Say(Note::Blind));
    }
    // Until here a stop signal ends this process by itself: nothing was taken and no message
    // written.
    setup.inherited.block()?;
    let (mut catching, output) = Catching::prepare(setup.capture)?;
    let guarding = Guarding::fork(setup, output, machine.claim().timing.kill_grace)?;
    // After the guard, so that the guard knows nothing of the clerk.
    locking.fork_clerk(setup.inherited);
    catching.begin()?;
    let mut driver = Driver {
        signals: SignalFd::new(&setup.inherited)?,
        timer: Timer::new()?,
        second_primary: SecondPrimary::new(store.lookout(), machine.claim().timing.takeover_after),
        worker: Worker::new(store),
        armed: None,
        guarding,
        locking,
        refusing: Refusing::default(),
        catching,
        machine,
        clock: setup.clock,
        listener,
    };
    driver.carry_out(pending)?;
    let ending = driver.run();
    let mut captured = None;
    if let Ok(ending) = &ending {
        driver.locking.finish(ending);
        captured = driver.keep_output(ending);
        let mut last = LastRequests {
            worker: &mut driver.worker,
            claim: driver.machine.claim(),
            ending,
        };
        last.prune(setup.retention, driver.clock.now(), draw());
        last.record_refusal(&driver.refusing);
    }
    // The process ends now. Closing the store would only cost work, and a store that hangs could
    // delay the end.
    std::mem::forget(driver.worker);
    ending.map(|ending| (ending, captured))
}

/// Ends a run that needs no look at its token.
fn over_before_a_look(
    claim: &Claim,
    ending: Ending,
    store: Box<dyn Store>,
    listener: &mut dyn Listener,
) -> Ending {
    listener.hear(&Note::Ended(ending.clone()), false);
    let mut worker = Worker::new(store);
    let mut last = LastRequests {
        worker: &mut worker,
        claim,
        ending: &ending,
    };
    last.record_refusal(&Refusing::default());
    std::mem::forget(worker);
    ending
}

/// The random bits that a driver takes from the kernel.
fn draw() -> u64 {
    // The kernel refuses only an invalid buffer. If it did refuse, the version would repeat and the
    // swap that writes it would conflict: nothing is granted twice.
    random::bits64().unwrap_or_default()
}

/// The file descriptors that the driver polls.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Source {
    Signals,
    Timer,
    Store,
    Guard,
    Notifier,
}

/// Why the driver woke up, besides the checks of every round.
struct Woken {
    /// The store has answered.
    answered: bool,
    /// The store's notifier has signalled.
    notified: bool,
}

struct Driver<'a> {
    machine: Machine,
    clock: LocalClock,
    signals: SignalFd,
    timer: Timer,
    /// When the timer will fire; `None` once it has.
    armed: Option<Moment>,
    worker: Worker,
    /// Abandoned at the end, as the worker is.
    second_primary: SecondPrimary,
    guarding: Guarding,
    locking: Locking<'a>,
    refusing: Refusing,
    catching: Catching,
    listener: &'a mut dyn Listener,
}

impl Driver<'_> {
    fn run(&mut self) -> io::Result<Ending> {
        loop {
            if let Some(ending) = self.machine.ending() {
                let ending = ending.clone();
                self.guarding.dismiss();
                return Ok(ending);
            }
            self.listener.at_work();
            let woken = if self.worker.has_early_answer() {
                Woken {
                    answered: true,
                    notified: false,
                }
            } else {
                self.take_locks_ahead();
                self.sleep()?
            };
            // Before the guard is heard: without it, a child that is not known counts as the job's.
            if let Some(pid) = self.listener.new_child() {
                self.guarding.disown(pid);
            }
            if self.guarding.has_answered()? {
                // A supervisor that was delayed must not miss an answer that is already there.
                self.tell(Event::GuardAnswered)?;
            }
            // Deadlines come first, whatever the reason to wake up.
            self.tell(Event::Tick)?;
            // Before the store: no job starts after a stop signal. Before the guard: a job may have
            // died of the same signal that this process received.
            self.hear_signals()?;
            if woken.answered {
                self.hear_store()?;
            }
            if woken.notified {
                self.tell(Event::Notified)?;
            }
            self.hear_guard()?;
            self.look_for_others();
        }
    }

    /// Looks for other primaries. Under an outer session's lease that session does it.
    fn look_for_others(&mut self) {
        if self.guarding.has_job()
            && self.machine.claim().nested_in.is_none()
            && let Some(primaries) = self.second_primary.look(self.clock.now())
        {
            self.say(&Note::Split { primaries });
        }
    }

    /// While the run only waits for the token: a grant then has less to do before its job starts.
    fn take_locks_ahead(&mut self) {
        if self.machine.seeks() {
            self.locking.take_ahead(&mut self.guarding);
        }
    }

    fn tell(&mut self, event: Event) -> io::Result<()> {
        let actions = self.machine.step(self.clock.now(), event, &mut draw);
        self.carry_out(actions)
    }

    fn carry_out(&mut self, actions: Vec<Action>) -> io::Result<()> {
        if self.machine.seeks() {
            // Before the grant is sent: from then on this process may be stopped at any time.
            self.guarding
                .start_by(self.machine.start_by(self.clock.now()));
        }
        for action in actions {
            match action {
                Action::Send(request) => {
                    let may_block = !self.guarding.has_job();
                    self.worker.send(request, may_block);
                }
                Action::Say(note) => self.say(&note),
                Action::TakeLocks => {
                    let taken = self.locking.take(&mut self.guarding);
                    self.tell(Event::LocksTaken(taken))?;
                }
                Action::StartJob { deadline, granted } => {
                    self.catching.granted(&granted);
                    let env = environment::of(self.machine.claim(), &granted);
                    self.guarding.start(deadline, env);
                    self.locking.dismiss_clerk(&mut self.guarding);
                }
                Action::Extend(deadline) => self.guarding.extend(deadline),
                Action::Pass(signal) => self.guarding.pass(signal),
                Action::End { term_tree, kill_at } => self.guarding.end(term_tree, kill_at),
                Action::ContinueGuard => self.guarding.continue_guard(),
                Action::EndWithoutGuard => self.guarding.end_alone(),
            }
        }
        Ok(())
    }

    fn say(&mut self, note: &Note) {
        self.refusing.hear(note);
        if let Note::Acquired {
            vanished: Some(session),
            ..
        } = note
        {
            self.locking.taken_from(session);
        }
        self.listener.hear(note, true);
    }

    fn hear_store(&mut self) -> io::Result<()> {
        match self.worker.answer() {
            Some(answer) => {
                prove_nesting(&mut self.machine, &answer);
                let locking = &mut self.locking;
                let event = event_of(answer, &self.machine, |reading, own| {
                    locking.evidence(reading, own)
                });
                self.tell(event)
            }
            None => Ok(()),
        }
    }

    fn hear_guard(&mut self) -> io::Result<()> {
        for event in self.guarding.events(self.clock.now())? {
            match event {
                super::guarding::Heard::Event(event) => self.tell(event)?,
                super::guarding::Heard::News(news) => self.listener.hear_guard(&news),
            }
        }
        Ok(())
    }

    fn hear_signals(&mut self) -> io::Result<()> {
        // Signals that arrive as fast as they are read must not delay the rest.
        for _ in 0..MOST_SIGNALS {
            let Some(received) = self.signals.read() else {
                break;
            };
            if received.signal == SIGCHLD {
                self.guarding.child_ended();
                continue;
            }
            self.tell(Event::Signal {
                signal: received.signal,
                stop: asks_for_end(received.signal),
            })?;
        }
        Ok(())
    }

    /// Ends the capture of the job's output, and stores what was caught. The token is free by now.
    fn keep_output(&mut self, ending: &Ending) -> Option<Captured> {
        let captured = self.catching.end(ending)?;
        let group = &self.machine.claim().group;
        let kept = self
            .catching
            .keep(&mut self.worker, group, ending, &captured);
        if let Err(error) = kept {
            self.say(&Note::OutputNotKept { error });
        }
        Some(captured)
    }

    /// Sleeps until something happens or is due.
    fn sleep(&mut self) -> io::Result<Woken> {
        self.arm()?;
        let notifier = self.worker.notifier().filter(|_| self.machine.listens());
        let sources = Sources::new()
            .and(Source::Signals, self.signals.as_fd())
            .and(Source::Timer, self.timer.as_fd())
            .and(Source::Store, self.worker.fd())
            .and(Source::Guard, self.guarding.fd())
            .and(
                Source::Notifier,
                notifier.as_ref().map(|notifier| notifier.0.as_fd()),
            );
        // Nothing is ready after a stop and a continuation: no other error gets through.
        let ready = sources.wait(None)?;
        let woken = Woken {
            answered: ready.has(&Source::Store),
            notified: ready.has(&Source::Notifier),
        };
        if ready.has(&Source::Timer) {
            self.timer.clear();
            self.armed = None;
        }
        Ok(woken)
    }

    /// Sets the timer to the next deadline. One that fires too early costs a wake-up; setting it
    /// for every event would cost a system call each.
    fn arm(&mut self) -> io::Result<()> {
        let latest = self.clock.now().plus(LONGEST_SLEEP);
        let due = [self.machine.wake_at(), self.guarding.wake_at()];
        let next = due.into_iter().flatten().fold(latest, Moment::min);
        if self.armed.is_none_or(|armed| next < armed) {
            self.timer.arm(&self.clock, next)?;
            self.armed = Some(next);
        }
        Ok(())
    }
}
