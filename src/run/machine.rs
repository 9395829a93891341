//! The state machine of a run: pure. It takes events with their time, and returns actions. It
//! checks its deadlines before anything else.
//!
//! ```text
//!  Seeking ──granted──▶ Holding ──tree gone──▶ Finishing ──recorded──▶ Ended
//!     └──refused, stopped, store failed───────────────────────────────────▲
//! ```
//!
//! Each phase is a type of its own, with the data that exists only in it.

use super::ending::Ending;
use super::event::{Action, Event, Note};
use super::finishing::Finishing;
use super::holding::Holding;
use super::seeking::Seeking;
use crate::moment::Moment;
use crate::store::Reading;
use crate::store::Request;
use crate::token::mutant::{Mutant, is_mutant};
use crate::token::{Claim, IncarnationNote, OutputLimits, Until, Version, Waiter};

use std::time::Duration;

/// How long a refused session waits in the queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Wait {
    /// Not at all.
    #[default]
    No,
    /// Until this much time has passed since the process began.
    For(Duration),
    /// However long it takes.
    Forever,
}

/// The limits of a run, besides its claim.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Limits {
    /// The job's longest run.
    pub timeout: Option<Duration>,
    /// How long a refused session waits in the queue.
    pub wait: Wait,
    /// True if the run takes locks that prove whether it is alive.
    pub locks: bool,
    /// True if the job ends as soon as an operator hands the token off to another client; otherwise
    /// that client gets the token after the job has ended by itself.
    pub yields: bool,
    /// The limits within which the job's output is kept, if it is caught.
    pub output: Option<OutputLimits>,
}

/// What a phase works with in one step.
pub(crate) struct Step<'a> {
    pub(crate) now: Moment,
    pub(crate) claim: &'a Claim,
    pub(crate) limits: Limits,
    pub(crate) draw: &'a mut dyn FnMut() -> u64,
    pub(crate) actions: &'a mut Vec<Action>,
}

impl Step<'_> {
    pub(crate) fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    pub(crate) fn say(&mut self, note: Note) {
        self.actions.push(Action::Say(note));
    }

    pub(crate) fn read(&mut self) {
        let group = self.claim.group.clone();
        let key = self.claim.about.once_key.clone();
        self.act(Action::Send(Request::Read(group, key)));
    }

    pub(crate) fn join(&mut self, expiry: Until) {
        let waiter = Box::new(Waiter::of(self.claim));
        let group = self.claim.group.clone();
        let key = self.claim.about.once_key.clone();
        self.act(Action::Send(Request::Join(group, waiter, expiry, key)));
    }

    /// Writes the note of the store's incarnation that follows from this reading.
    pub(crate) fn note(&mut self, reading: &Reading, to: IncarnationNote) {
        let limit = self.claim.timing.store_timeout;
        let swap = reading.memory.swap(to, &reading.now, limit);
        self.act(Action::Send(Request::Note(Box::new(swap))));
    }

    pub(crate) fn leave(&mut self) {
        let (group, session) = (self.claim.group.clone(), self.claim.session.clone());
        self.act(Action::Send(Request::Leave(group, session)));
    }

    /// Requests the state of the run's key, if it has one.
    pub(crate) fn ask_once(&mut self) -> bool {
        let Some(key) = self.claim.about.once_key.clone() else {
            return false;
        };
        let group = self.claim.group.clone();
        self.act(Action::Send(Request::Once { group, key }));
        true
    }

    /// A new version for a row that has `old`.
    pub(crate) fn version_after(&mut self, old: Option<Version>) -> Version {
        if is_mutant(Mutant::VersionIsCounter) {
            return Version::from_stored(old.map_or(1, |old| old.number() + 1));
        }
        Version::from_random((self.draw)())
    }

    /// The pause after `failures` failures of a store in a row: doubling from 200 ms to 5 s, half
    /// of it random, so that many holders do not return at once.
    pub(crate) fn pause_after(&mut self, failures: u32) -> Duration {
        let longest = self.claim.timing.heartbeat.min(Duration::from_secs(5));
        let doubled = Duration::from_millis(200) * 2u32.saturating_pow(failures.min(10));
        let half = doubled.min(longest) / 2;
        let nanos = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX).max(1);
        half + Duration::from_nanos((self.draw)() % nanos)
    }
}

/// The phase of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    Seeking(Box<Seeking>),
    Holding(Box<Holding>),
    Finishing(Box<Finishing>),
    Ended(Ending),
}

/// The result of a phase's step.
pub(crate) enum Next {
    Stay,
    Hold(Box<Holding>),
    Finish(Box<Finishing>),
    End(Ending),
}

/// One run, from the first look to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    claim: Claim,
    limits: Limits,
    phase: Phase,
}

impl Machine {
    /// A run before its first look. The first [`Event::Tick`] makes it look.
    pub fn new(claim: Claim, limits: Limits) -> Self {
        Self {
            claim,
            limits,
            phase: Phase::Seeking(Box::new(Seeking::new())),
        }
    }

    /// Takes an event at `now` and returns the actions to carry out, in this order. `draw` gives 64
    /// random bits from the kernel: never from a generator whose state a cloned VM would share.
    pub fn step(
        &mut self,
        now: Moment,
        event: Event,
        draw: &mut dyn FnMut() -> u64,
    ) -> Vec<Action> {
        if let Event::LocksTaken(Ok(file)) = &event {
            self.claim.about.lock_file = Some(file.clone());
        }
        let mut actions = Vec::new();
        let mut step = Step {
            now,
            claim: &self.claim,
            limits: self.limits,
            draw,
            actions: &mut actions,
        };
        let next = match &mut self.phase {
            Phase::Seeking(seeking) => seeking.step(&mut step, event),
            Phase::Holding(holding) => holding.step(&mut step, event),
            Phase::Finishing(finishing) => finishing.step(&mut step, event),
            Phase::Ended(_) => Next::Stay,
        };
        let phase = match next {
            Next::Stay => return actions,
            Next::Hold(holding) => Phase::Holding(holding),
            Next::Finish(finishing) => Phase::Finishing(finishing),
            Next::End(ending) => {
                step.say(Note::Ended(ending.clone()));
                Phase::Ended(ending)
            }
        };
        self.phase = phase;
        actions
    }

    /// When the machine must be given a [`Event::Tick`] at the latest.
    pub fn wake_at(&self) -> Option<Moment> {
        match &self.phase {
            Phase::Seeking(seeking) => seeking.wake_at(&self.claim, self.limits.wait),
            Phase::Holding(holding) => holding.wake_at(&self.claim),
            Phase::Finishing(finishing) => Some(finishing.wake_at()),
            Phase::Ended(_) => None,
        }
    }

    /// True if the run has no token yet and still seeks one.
    pub const fn seeks(&self) -> bool {
        matches!(self.phase, Phase::Seeking(_))
    }

    /// Until when the guard is to expect the job's start, while the token is requested.
    pub fn start_by(&self, now: Moment) -> Option<Moment> {
        match &self.phase {
            Phase::Seeking(seeking) => seeking.start_by(&self.claim, now),
            Phase::Holding(_) | Phase::Finishing(_) | Phase::Ended(_) => None,
        }
    }

    /// True if [`Event::Notified`] would lead to a look: only then is the store's notifier polled.
    pub fn listens(&self) -> bool {
        match &self.phase {
            Phase::Seeking(seeking) => seeking.listens(),
            Phase::Holding(_) | Phase::Finishing(_) | Phase::Ended(_) => false,
        }
    }

    /// How the run ended; `None` while it goes on.
    pub const fn ending(&self) -> Option<&Ending> {
        match &self.phase {
            Phase::Ended(ending) => Some(ending),
            Phase::Seeking(_) | Phase::Holding(_) | Phase::Finishing(_) => None,
        }
    }

    /// This process does not run inside the session that its environment names.
    pub fn is_not_nested(&mut self) {
        self.claim.nested_in = None;
    }

    pub const fn claim(&self) -> &Claim {
        &self.claim
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
