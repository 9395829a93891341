//! A driver that sleeps until the machine's wake-up time never spins.

use proptest::prelude::*;

use super::rig::*;
use crate::run::event::Event;
use crate::run::machine::Limits;
use crate::sys::wait::Status;
use crate::token::operator::Act;
use crate::token::rule::tests::fixture::{client, s};

/// One thing that happens to a machine.
#[derive(Debug, Clone, Copy)]
enum What {
    Wait(u64),
    Answered,
    Fails,
    AnswerIsLost,
    Operated,
    Taken,
    Started,
    Exited,
    TreeGone,
    GuardAnswers,
    GuardGone,
    Stop,
}

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        3 => (0u64..20_000).prop_map(What::Wait),
        6 => Just(What::Answered),
        1 => Just(What::Fails),
        1 => Just(What::AnswerIsLost),
        1 => Just(What::Operated),
        1 => Just(What::Taken),
        2 => Just(What::Started),
        1 => Just(What::Exited),
        1 => Just(What::TreeGone),
        2 => Just(What::GuardAnswers),
        1 => Just(What::GuardGone),
        1 => Just(What::Stop),
    ]
}

fn happen(rig: &mut Rig, what: What) {
    let out = rig.out.is_some();
    let known = !rig.store.contents().rows.is_empty();
    let running = known && rig.row().session().is_some();
    match what {
        What::Wait(ms) => drop(rig.wait(std::time::Duration::from_millis(ms))),
        What::Answered if out => drop(rig.answered()),
        What::Fails if out => drop(rig.fails()),
        What::AnswerIsLost if out => drop(rig.answer_is_lost()),
        What::Operated if known => rig.operates(&Act::Handoff(client("a"))),
        What::Taken if running => rig.taken_by_another(),
        What::Started => drop(rig.tell(Event::JobStarted)),
        What::Exited => drop(rig.tell(Event::JobExited {
            status: Status::Exited(0),
            forced: false,
        })),
        What::TreeGone => drop(rig.tell(Event::TreeGone)),
        What::GuardAnswers => drop(rig.tell(Event::GuardAnswered)),
        What::GuardGone => drop(rig.tell(Event::GuardGone)),
        What::Stop => drop(rig.tell(Event::Signal {
            signal: 15,
            stop: true,
        })),
        What::Answered | What::Fails | What::AnswerIsLost => {}
        What::Operated | What::Taken => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(2_000)
    })]

    /// A tick at the requested time makes progress: then the machine requests a later time, or
    /// none. It never requests a time in the past twice.
    #[test]
    fn every_wake_up_makes_progress(
        story in prop::collection::vec(what(), 0..40), timeout in prop::option::of(1u64..40),
    ) {
        let limits = Limits {
            timeout: timeout.map(s),
            ..Limits::default()
        };
        let store = crate::store::model::ModelStore::new();
        let mut rig = Rig::of(claim_of("a"), limits, store);
        for what in story {
            happen(&mut rig, what);
        }
        for _ in 0..200 {
            let Some(at) = rig.machine.wake_at() else { break };
            let by = at.since(rig.now);
            rig.wait(by);
            let next = rig.machine.wake_at();
            prop_assert!(
                next.is_none_or(|next| next > rig.now),
                "wakes at {at:?} and then at {next:?}: {:?}",
                rig.machine
            );
        }
    }

    /// Every request is out alone, and no heartbeat is sent that could not be trusted.
    #[test]
    fn nothing_is_sent_while_a_request_is_out(
        story in prop::collection::vec(what(), 0..60),
    ) {
        let mut rig = Rig::looking();
        // The rig itself asserts it.
        for what in story {
            happen(&mut rig, what);
        }
    }
}
