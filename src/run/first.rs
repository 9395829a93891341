//! The first look of a run, on its only thread, before its guard: a refusal costs one read and no
//! more.

use std::io;

use super::answers::{event_of, prove_nesting};
use super::ending::Ending;
use super::event::{Action, Event, Note};
use super::locking::Locking;
use super::machine::Machine;
use super::refusing::Refusing;
use crate::store::first_look;
use crate::store::{Request, Store};
use crate::sys::clock::LocalClock;
use crate::sys::signals::Inherited;
use crate::token::{Claim, RefusalRecord};

/// What a first look needs.
pub(super) struct First<'a, 'b> {
    pub(super) machine: &'a mut Machine,
    pub(super) clock: LocalClock,
    pub(super) store: &'a mut dyn Store,
    pub(super) locking: &'a mut Locking<'b>,
    pub(super) inherited: Inherited,
    /// Gives 64 random bits.
    pub(super) draw: &'a mut dyn FnMut() -> u64,
}

/// The result of a first look.
pub(super) enum Looked {
    /// The run is over. Its notes are delivered, and its refusal is recorded.
    Over(Ending),
    /// The run goes on with these actions of its machine.
    GoesOn(Vec<Action>),
}

impl First<'_, '_> {
    /// Looks, and ends the run if that decides it. `hear` takes its notes then.
    ///
    /// # Errors
    /// Signals can't be blocked.
    pub(super) fn look_or_end(mut self, hear: &mut dyn FnMut(&Note)) -> io::Result<Looked> {
        // A look at a server takes longer than one at a file. A signal that comes meanwhile waits for its
        // end: a container's first process would lose it. If the look ends the run, a signal changes nothing more.
        if self.store.limit_of_near().is_some() {
            self.inherited.block()?;
        }
        let actions = self.look();
        let Some(ending) = self.machine.ending() else {
            return Ok(Looked::GoesOn(actions));
        };
        if let Some(refusal) = hear_end(&actions, ending, self.machine.claim(), hear) {
            let _ = first_look::ask(self.store, &Request::Refuse(Box::new(refusal)));
        }
        Ok(Looked::Over(ending.clone()))
    }

    /// Returns the machine's actions after the look, with notes delivered before them: a reader who
    /// sees that tokenrun waits may stop it, and must then see the result.
    fn look(&mut self) -> Vec<Action> {
        let mut event = Event::Tick;
        let mut rest = Vec::new();
        loop {
            let actions = self.machine.step(self.clock.now(), event, self.draw);
            let mut read = None;
            for action in actions {
                match action {
                    Action::Send(request @ Request::Read(..)) => {
                        read = Some(request);
                    }
                    other => rest.push(other),
                }
            }
            match read {
                None => return rest,
                Some(request) => match first_look::ask(self.store, &request) {
                    None => {
                        rest.push(Action::Send(request));
                        return rest;
                    }
                    Some(answer) => {
                        prove_nesting(self.machine, &answer);
                        let (locking, inherited) = (&mut *self.locking, self.inherited);
                        event = event_of(answer, self.machine, |reading, own| {
                            locking.first_evidence(reading, own, inherited)
                        });
                    }
                },
            }
        }
    }
}

/// Delivers the notes of a run that ends with its first look. Returns the record if it is refused, which
/// is written soon or not at all: a record delays no exit, and a refusal without one is still one.
fn hear_end(
    actions: &[Action],
    ending: &Ending,
    claim: &Claim,
    hear: &mut dyn FnMut(&Note),
) -> Option<RefusalRecord> {
    let mut refusing = Refusing::default();
    for action in actions {
        if let Action::Say(note) = action {
            refusing.hear(note);
            hear(note);
        }
    }
    refusing.record(claim, ending)
}
