//! The three processes of a run.

use super::{Guard, Job};
use crate::moment::Moment;
use crate::run::ending::{Loss, Why};
use crate::run::event::{Action, Event, Note};
use crate::run::machine::{Limits, Machine};
use crate::token::{Claim, SessionId};

/// A supervisor's machine, its guard and its job.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) machine: Machine,
    /// `None`: it is gone.
    pub(crate) guard: Option<Guard>,
    /// `None`: no process of it is alive.
    pub(crate) job: Option<Job>,
}

/// What a machine makes of an event.
#[derive(Debug)]
pub(crate) struct Stepped {
    pub(crate) actions: Vec<Action>,
    /// It was shown its own token, and takes it for another's.
    pub(crate) disowns: bool,
}

impl Run {
    /// A run that has just begun: it has a guard, and no job yet.
    pub(crate) fn new(claim: Claim, limits: Limits) -> Self {
        Self {
            machine: Machine::new(claim, limits),
            guard: Some(Guard::default()),
            job: None,
        }
    }

    pub(crate) const fn claim(&self) -> &Claim {
        self.machine.claim()
    }

    pub(crate) const fn session(&self) -> &SessionId {
        &self.machine.claim().session
    }

    /// True if the supervisor is to exit.
    pub(crate) const fn is_over(&self) -> bool {
        self.machine.ending().is_some()
    }

    pub(crate) const fn job_alive(&self) -> bool {
        self.job.is_some()
    }

    /// Gives an event to the machine; `draw` gives it random bits.
    pub(crate) fn step(
        &mut self,
        now: Moment,
        event: Event,
        draw: &mut dyn FnMut() -> u64,
    ) -> Stepped {
        let holds = is_shown_to_hold(&event, self.claim());
        let actions = self.machine.step(now, event, draw);
        let disowns = holds && actions.iter().any(takes_it_for_lost);
        Stepped { actions, disowns }
    }

    /// The job's own process comes to its end, if it has not yet. The end is forced if the guard
    /// has begun to end the tree, or is gone.
    pub(crate) fn exit(&mut self) -> Option<Event> {
        let status = self.job.as_mut()?.exit()?;
        let forced = self.guard.as_ref().is_none_or(Guard::forces);
        Some(Event::JobExited { status, forced })
    }

    /// The job's own process is killed, if it has not ended yet.
    pub(crate) fn kill(&mut self) -> Option<Event> {
        let status = self.job.as_mut()?.kill()?;
        let forced = true;
        Some(Event::JobExited { status, forced })
    }
}

/// True if an event shows the session its own token.
fn is_shown_to_hold(event: &Event, claim: &Claim) -> bool {
    let Event::Looked(Ok((reading, _))) = event else {
        return false;
    };
    let session = reading.row.as_ref().and_then(|row| row.session());
    session == Some(&claim.session)
}

/// True if this action treats the token as lost.
const fn takes_it_for_lost(action: &Action) -> bool {
    matches!(
        action,
        Action::Say(Note::Stopping {
            why: Why::Loss(Loss::Taken),
            ..
        })
    )
}
