//! Stories of one run, one promise each.

mod beating;
mod ending;
mod starting;
mod stopping;

use std::time::Duration;

use super::rig::*;
use crate::job::Deadline;
use crate::moment::Moment;
use crate::run::ending::{Ending, Failed, JobEnd, Loss, NotStarted, Unstarted};
use crate::run::event::{Action, Event, Note};
use crate::run::machine::Limits;
use crate::store::Request;
use crate::store::model::ModelStore;
use crate::sys::wait::Status;
use crate::token::operator::Act;
use crate::token::rule::tests::fixture::{MS, but, client, s, session};
use crate::token::{Evidence, Outcome, StampOf, State, Swapped};

const GRACE: Duration = s(4);
const TIMEOUT: Duration = s(5);

fn stop(signal: i32) -> Event {
    Event::Signal { signal, stop: true }
}

fn made_to_exit(rig: &mut Rig) -> Vec<Action> {
    rig.tell(Event::JobExited {
        status: Status::Signalled(15),
        forced: true,
    });
    rig.tell(Event::TreeGone)
}

fn sent(did: &[Action]) -> Vec<StampOf> {
    let stamp = |action: &Action| match action {
        Action::Send(Request::Swap(swap)) => swap.stamp,
        _ => None,
    };
    did.iter().filter_map(stamp).collect()
}

fn kill_at(did: &[Action]) -> Option<Moment> {
    did.iter().find_map(|action| match action {
        Action::Extend(deadline) => Some(deadline.kill_at),
        Action::StartJob { deadline, .. } => deadline.map(|d| d.kill_at),
        Action::End { kill_at, .. } => Some(*kill_at),
        _ => None,
    })
}

fn last_outcome(rig: &Rig) -> Option<Outcome> {
    rig.store.contents().runs.first().map(|run| run.outcome)
}

#[test]
fn a_pause_is_drawn_between_a_half_and_the_whole() {
    for (drawn, expected) in [(0, 100_000), (50_000_000, 150_000), (99_999_000, 199_999)] {
        let mut step = crate::run::machine::Step {
            now: Moment::default(),
            claim: &claim_of("a"),
            limits: Limits::default(),
            draw: &mut || drawn,
            actions: &mut Vec::new(),
        };
        assert_eq!(step.pause_after(0), Duration::from_micros(expected));
    }
}
