//! Release, record, keys of `--once`.

use super::*;
use crate::run::machine::Wait;
use crate::token::{Claim, WallTime};

#[test]
fn a_release_whose_answer_is_lost_is_settled_by_the_runs_record() {
    let mut rig = Rig::running();
    rig.job_ends(Status::Exited(0));
    rig.answer_is_lost();
    // Another session has the token by now: the row shows nothing of the release.
    rig.taken_by_another();
    rig.wait(s(1));
    rig.answered();
    assert!(matches!(rig.out, Some(Request::Record(_))), "{:?}", rig.out);
    let did = rig.answered();
    assert!(!warns_of_loss(&did), "the release has happened: {did:?}");
    let Ending::Ran { end, recorded, .. } = rig.ending() else {
        panic!("{:?}", rig.ending());
    };
    assert_eq!((end, *recorded), (&JobEnd::Itself(Status::Exited(0)), true));
    assert_eq!(last_outcome(&rig), Some(Outcome::Succeeded));
}

fn warns_of_loss(did: &[Action]) -> bool {
    did.iter()
        .any(|a| matches!(a, Action::Say(Note::LostAfterEnd)))
}

/// A failover that has lost the last commits.
fn forget_everything(rig: &Rig) {
    rig.store.restore(crate::store::model::ModelData::default());
}

#[test]
fn a_success_whose_grant_a_failover_lost_is_recorded_whole_with_a_warning() {
    let mut rig = with_key(ModelStore::new());
    for _ in 0..2 {
        rig.answered();
    }
    assert!(started(&rig.answered()));
    rig.tell(Event::JobStarted);
    forget_everything(&rig);
    rig.job_ends(Status::Exited(0));
    assert!(!warns_of_loss(&rig.answered()), "a conflict is no loss");
    assert!(warns_of_loss(&rig.answered()));
    assert!(!warns_of_loss(&rig.answered()), "once");
    assert!(matches!(rig.ending(), Ending::Ran { recorded: true, .. }));
    let contents = rig.store.contents();
    let [run] = &contents.runs[..] else {
        panic!("{:?}", contents.runs);
    };
    assert_eq!(run.outcome, Outcome::Succeeded);
    assert_eq!(run.started_at, WallTime(1_790_000_000_000));
    assert_eq!(
        run.once_mark(run.ended_at.unwrap()).as_ref(),
        contents.marks.first()
    );
}

#[test]
fn a_release_that_never_arrived_before_a_loss_leads_to_a_warning() {
    let mut rig = Rig::running();
    rig.job_ends(Status::Exited(0));
    rig.fails();
    rig.taken_by_another();
    rig.wait(s(1));
    assert!(!warns_of_loss(&rig.answered()), "it may have happened");
    assert!(warns_of_loss(&rig.answered()));
    assert!(matches!(rig.ending(), Ending::Ran { recorded: true, .. }));
}

#[test]
fn a_store_that_is_removed_ends_the_run_at_once() {
    let gone = || crate::store::StoreError::gone("the store was removed");
    let ended = |mut rig: Rig, event: Event| {
        let did = rig.tell(event);
        let warns = |a: &Action| matches!(a, Action::Say(Note::NotRecorded { .. }));
        assert_eq!(did.iter().filter(|a| warns(a)).count(), 1, "{did:?}");
        let Ending::Ran { end, recorded, .. } = rig.ending() else {
            panic!("{:?}", rig.ending());
        };
        assert_eq!(
            (end, *recorded),
            (&JobEnd::Itself(Status::Exited(0)), false)
        );
    };
    let mut releasing = Rig::running();
    releasing.job_ends(Status::Exited(0));
    ended(releasing.clone(), Event::Swapped(Err(gone())));
    releasing.answer_is_lost();
    releasing.wait(s(1));
    ended(releasing.clone(), Event::Looked(Err(gone())));
    releasing.taken_by_another();
    releasing.answered();
    ended(releasing, Event::Recorded(Err(gone())));
    // The same with a key of --once, which is otherwise retried for longer.
    let mut keyed = with_key(Default::default());
    for _ in 0..3 {
        keyed.answered();
    }
    keyed.tell(Event::JobStarted);
    keyed.job_ends(Status::Exited(0));
    ended(keyed, Event::Swapped(Err(gone())));
}

#[test]
fn a_release_waits_for_the_heartbeat_that_is_out() {
    let mut rig = Rig::beating();
    rig.job_ends(Status::Exited(0));
    assert_eq!(sent(&rig.answered()), [StampOf::Released]);
    rig.answered();
    assert!(matches!(rig.row().state, State::Idle { .. }));
}

#[test]
fn a_release_survives_an_operators_write() {
    let mut rig = Rig::running();
    rig.job_ends(Status::Exited(0));
    rig.operates(&Act::Handoff(client("b")));
    rig.answered();
    assert_eq!(sent(&rig.answered()), [StampOf::Released]);
    rig.answered();
    let row = rig.row();
    assert!(matches!(row.state, State::Idle { .. }));
    assert!(row.document.handoff.is_some());
}

#[test]
fn a_run_that_cannot_release_gives_up_after_six_timeouts_with_a_warning() {
    let mut rig = Rig::running();
    rig.job_ends(Status::Exited(0));
    let ended_at = rig.now;
    while rig.machine.ending().is_none() {
        if rig.out.is_some() {
            rig.fails();
        }
        let Some(at) = rig.machine.wake_at() else {
            break;
        };
        let by = at.since(rig.now);
        rig.wait(by);
    }
    assert_eq!(rig.now.since(ended_at), 6 * TIMEOUT);
    let Ending::Ran { end, recorded, .. } = rig.ending() else {
        panic!("{:?}", rig.ending());
    };
    assert_eq!(
        (end, *recorded),
        (&JobEnd::Itself(Status::Exited(0)), false)
    );
}

#[test]
fn a_stop_while_finishing_shortens_the_patience() {
    let mut rig = Rig::running();
    rig.job_ends(Status::Exited(0));
    rig.tell(stop(15));
    assert_eq!(rig.machine.wake_at(), Some(rig.now.plus(TIMEOUT)));
    rig.wait(TIMEOUT);
    assert!(matches!(
        rig.ending(),
        Ending::Ran {
            recorded: false,
            ..
        }
    ));
}

#[test]
fn a_store_that_never_answers_is_given_up_after_two_timeouts() {
    let mut rig = Rig::looking();
    rig.wait(2 * TIMEOUT - MS);
    assert!(rig.machine.ending().is_none());
    rig.wait(MS);
    assert!(matches!(
        rig.ending(),
        Ending::StoreFailed {
            perhaps_granted: false,
            ..
        }
    ));
    let mut rig = Rig::claiming();
    rig.wait(2 * TIMEOUT);
    assert!(matches!(
        rig.ending(),
        Ending::StoreFailed {
            perhaps_granted: true,
            ..
        }
    ));
}

#[test]
fn an_answer_to_an_ended_machine_changes_nothing() {
    let mut rig = Rig::looking();
    rig.tell(stop(2));
    let event = rig.arrives();
    assert!(rig.tell(event).is_empty());
    assert_eq!(*rig.ending(), Ending::Stopped(2));
}

const KEY: &str = "2026-11-21";

const WAITS: Limits = Limits {
    wait: Wait::Forever,
    timeout: None,
    locks: false,
    yields: false,
    output: None,
};

fn claim_with_key() -> Claim {
    let mut claim = claim_of("a");
    claim.about.once_key = Some(KEY.into());
    claim
}

/// A machine with a key of `--once` that makes its first look.
fn with_key(store: ModelStore) -> Rig {
    Rig::of(claim_with_key(), Limits::default(), store)
}

/// Another session's success with the key. Its token is free.
fn done_by_another(rig: &Rig) {
    let other = ran_with_key(with_key(ModelStore::new()), Status::Exited(0));
    let mut contents = rig.store.contents();
    contents.marks = other.store.contents().marks;
    rig.store.restore(contents);
}

fn started(did: &[Action]) -> bool {
    did.iter().any(|a| matches!(a, Action::StartJob { .. }))
}

/// Runs the job with its key until it ends with this status.
fn ran_with_key(mut rig: Rig, status: Status) -> Rig {
    // The row, and the key is not done; the grant; the key is still not done.
    for _ in 0..2 {
        assert!(!started(&rig.answered()));
    }
    assert!(started(&rig.answered()));
    rig.tell(Event::JobStarted);
    rig.job_ends(status);
    rig.answered();
    rig
}

#[test]
fn only_the_success_of_its_run_makes_a_key_done() {
    for (status, done) in [
        (Status::Exited(0), true),
        (Status::Exited(3), false),
        (Status::Signalled(9), false),
    ] {
        let rig = ran_with_key(with_key(Default::default()), status);
        assert_eq!(rig.store.contents().marks.len(), usize::from(done));
        let mut next = with_key(rig.store.clone());
        next.answered();
        let is_done = matches!(next.machine.ending(), Some(Ending::Done(_)));
        assert_eq!(is_done, done);
    }
}

#[test]
fn a_key_that_was_done_before_the_token_was_held_starts_no_job() {
    let mut rig = with_key(Default::default());
    rig.answered();
    done_by_another(&rig);
    rig.answered();
    assert!(matches!(rig.out, Some(Request::Once { .. })), "asked again");
    let did = rig.answered();
    assert!(!started(&did));
    assert_eq!(sent(&did), [StampOf::Released]);
    rig.answered();
    let Ending::Ran { end, .. } = rig.ending() else {
        panic!("{:?}", rig.ending());
    };
    assert!(matches!(end, JobEnd::NotStarted(Unstarted::Done(_))));
    assert_eq!(last_outcome(&rig), Some(Outcome::NotStarted));
    let codes = crate::run::ending::Codes {
        not_now: 75,
        done: 9,
        once: true,
    };
    assert_eq!(rig.ending().exit(codes), crate::exit::Exit::Code(9));
}

/// The token would move every night to a node that runs nothing.
#[test]
fn a_waiter_whose_key_is_done_leaves_without_a_grant() {
    let mut rig = Rig::of(claim_with_key(), WAITS, ModelStore::new());
    rig.taken_by_another();
    rig.answered();
    assert!(matches!(rig.out, Some(Request::Join(..))), "{:?}", rig.out);
    rig.answered();
    done_by_another(&rig);
    rig.operates(&Act::Release { force: true });
    let before = rig.row();
    let did = rig.tell(Event::Notified);
    assert!(sent(&did).is_empty());
    rig.answered();
    assert!(matches!(rig.out, Some(Request::Leave(..))), "{:?}", rig.out);
    rig.answered();
    assert!(matches!(rig.ending(), Ending::Done(mark) if mark.key == KEY));
    assert_eq!(rig.row(), before, "the token");
    assert!(rig.store.contents().queue.is_empty());
}

/// An unclear grant may still happen. If the session left, the token would have a holder that is
/// gone.
#[test]
fn a_run_whose_grant_is_unclear_does_not_leave_for_a_key_that_is_done() {
    let mut rig = with_key(ModelStore::new());
    rig.answered();
    let late = rig.out.clone().expect("a grant is out");
    rig.fails();
    done_by_another(&rig);
    rig.wait(s(1));
    let grant = rig.answered();
    assert_eq!(sent(&grant), [StampOf::Granted], "{late:?}");
    rig.answered();
    rig.answered();
    rig.answered();
    let Ending::Ran { end, .. } = rig.ending() else {
        panic!("{:?}", rig.ending());
    };
    assert!(matches!(end, JobEnd::NotStarted(Unstarted::Done(_))));
}

#[test]
fn a_key_of_unknown_state_starts_no_job() {
    let mut rig = with_key(Default::default());
    for _ in 0..2 {
        rig.answered();
    }
    let held_since = rig.now;
    while rig.now < held_since.plus(LAST_START) {
        assert!(!started(&rig.fails()));
        assert!(!started(&rig.wait(s(1))));
        if !matches!(rig.out, Some(Request::Once { .. })) {
            break;
        }
    }
    rig.answered();
    let Ending::Ran { end, .. } = rig.ending() else {
        panic!("{:?}", rig.ending());
    };
    let too_late = JobEnd::NotStarted(Unstarted::Guard(NotStarted::TooLate));
    assert_eq!(*end, too_late);
}

#[test]
fn a_success_is_recorded_by_retries_as_long_as_the_lease_is_trusted() {
    let mut rig = with_key(Default::default());
    for _ in 0..3 {
        rig.answered();
    }
    rig.tell(Event::JobStarted);
    rig.job_ends(Status::Exited(0));
    let trusted_until = Moment(s(100)).plus(TRUSTED);
    while rig.now.plus(s(1)) < trusted_until {
        if rig.out.is_some() {
            rig.fails();
        }
        rig.wait(s(1));
        assert!(rig.machine.ending().is_none(), "at {:?}", rig.now);
    }
    rig.wait(s(2));
    let codes = |once| crate::run::ending::Codes {
        not_now: 75,
        done: 0,
        once,
    };
    assert_eq!(rig.ending().exit(codes(true)), crate::exit::Exit::Code(74));
    assert_eq!(rig.ending().exit(codes(false)), crate::exit::Exit::OK);
}

#[test]
fn a_stop_while_finishing_is_in_the_ending() {
    let mut rig = Rig::running();
    rig.job_ends(Status::Exited(0));
    rig.tell(stop(15));
    rig.tell(stop(2));
    rig.answered();
    let Ending::Ran { stopped_by, .. } = rig.ending() else {
        panic!("{:?}", rig.ending());
    };
    assert_eq!(*stopped_by, Some(15), "the first one");
}

/// The rig refuses a second request while one is out.
#[test]
fn a_record_that_failed_is_written_again_once() {
    let mut rig = Rig::beating();
    rig.taken_by_another();
    rig.answered();
    rig.answered();
    rig.job_ends(Status::Exited(0));
    rig.fails();
    rig.wait(s(1));
    assert!(matches!(rig.out, Some(Request::Record(_))), "{:?}", rig.out);
    rig.wait(s(1));
    rig.answered();
    assert!(matches!(rig.ending(), Ending::Ran { recorded: true, .. }));
}

#[test]
fn no_loss_is_said_of_a_job_that_was_ended_for_one() {
    let mut rig = Rig::beating();
    rig.operates(&Act::Revoke);
    for _ in 0..3 {
        rig.answered();
    }
    made_to_exit(&mut rig);
    rig.taken_by_another();
    for _ in 0..3 {
        let did = rig.answered();
        assert!(!warns_of_loss(&did), "{did:?}");
    }
    assert_eq!(short(rig.ending()), "Lost(Revoked)");
}

#[test]
fn the_last_failure_is_the_reason_why_a_run_is_not_recorded() {
    let mut rig = Rig::running();
    rig.job_ends(Status::Exited(0));
    rig.fails();
    let did = rig.wait(6 * TIMEOUT);
    let reason = did.iter().find_map(|action| match action {
        Action::Say(Note::NotRecorded { error, .. }) => Some(error.clone()),
        _ => None,
    });
    assert_eq!(reason, Some(Some(unavailable())));
}
