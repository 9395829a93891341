//! Stories of one run, each about one promise.

use std::time::Duration;

use super::rig::*;
use crate::run::ending::{Ending, JobEnd, Loss, Unstarted};
use crate::run::event::{Action, Event, NotStarted, Note};
use crate::run::machine::Limits;
use crate::store::memory::MemoryStore;
use crate::store::worker::Request;
use crate::sys::wait::Status;
use crate::token::operator::Act;
use crate::token::rule::tests::fixture::{MS, but, client, s, session};
use crate::token::{Evidence, Moment, Outcome, State, Swapped, Touch};

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

fn sent(did: &[Action]) -> Vec<Touch> {
    let touch = |action: &Action| match action {
        Action::Send(Request::Swap(swap)) => Some(swap.touch),
        _ => None,
    };
    did.iter().filter_map(touch).collect()
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

// The start.

fn grant_in(did: &[Action]) -> Option<&crate::token::Swap> {
    did.iter().find_map(|action| match action {
        Action::Send(Request::Swap(swap)) => Some(swap.as_ref()),
        _ => None,
    })
}

#[test]
fn the_locks_are_taken_before_the_grant_is_sent_and_its_row_names_them() {
    let mut rig = Rig::locking();
    assert!(rig.out.is_none(), "nothing is sent before");
    let did = rig.tell(Event::LocksTaken(Ok("file".into())));
    let swap = grant_in(&did).unwrap();
    assert_eq!(swap.to.lock_file.as_deref(), Some("file"));
    rig.answered();
    assert_eq!(rig.row().lock_file.as_deref(), Some("file"));
    rig.tell(Event::JobStarted);
    rig.wait(s(10));
    rig.answered();
    assert_eq!(rig.row().lock_file.as_deref(), Some("file"));
    rig.job_ends(Status::Exited(0));
    rig.answered();
    assert_eq!(rig.row().lock_file, None);
}

#[test]
fn without_locks_the_job_runs_all_the_same_and_the_row_names_none() {
    let mut rig = Rig::locking();
    let did = rig.tell(Event::LocksTaken(Err("full".into())));
    assert!(matches!(&did[0], Action::Say(Note::NoLocks { why }) if why == "full"));
    assert_eq!(grant_in(&did).unwrap().to.lock_file, None);
    assert!(kill_at(&rig.answered()).is_some());
}

#[test]
fn locks_are_taken_once() {
    let mut rig = Rig::locking();
    let did = rig.tell(Event::LocksTaken(Ok("file".into())));
    assert!(grant_in(&did).is_some());
    // Another was quicker, and is gone again.
    rig.out = None;
    let did = rig.tell(Event::Swapped(Ok(Swapped::Conflict)));
    assert_eq!(words(&did, rig.now), "read");
    let did = rig.answered();
    assert_eq!(words(&did, rig.now), "grant");
    assert_eq!(
        grant_in(&did).unwrap().to.lock_file.as_deref(),
        Some("file")
    );
}

#[test]
fn a_stop_while_the_locks_are_taken_ends_the_run() {
    let mut rig = Rig::locking();
    rig.tell(stop(15));
    assert_eq!(*rig.ending(), Ending::Stopped(15));
    assert!(rig.tell(Event::LocksTaken(Ok("file".into()))).is_empty());
}

#[test]
fn whether_the_earlier_run_was_dead_or_silent_is_told() {
    for evidence in [Evidence::Dead, Evidence::None] {
        let earlier = Rig::running();
        earlier.store.advance(s(60));
        let again = but(claim_of("a"), |claim| claim.session = session("a2"));
        let mut rig = Rig::of(again, Limits::default(), earlier.store);
        let Event::Looked(Ok((reading, _))) = rig.arrives() else {
            panic!("no reading");
        };
        rig.tell(Event::Looked(Ok((reading, evidence.clone()))));
        let did = rig.answered();
        let told = did.iter().find_map(|action| match action {
            Action::Say(Note::Acquired {
                vanished, proven, ..
            }) => Some((vanished.clone(), *proven)),
            _ => None,
        });
        let proven = evidence == Evidence::Dead;
        assert_eq!(told, Some((Some(session("a1")), proven)));
    }
}

#[test]
fn trust_starts_when_the_grant_was_sent_not_when_it_was_answered() {
    let mut rig = Rig::claiming();
    let sent_at = rig.now;
    rig.wait(s(3));
    assert_eq!(kill_at(&rig.answered()), Some(sent_at.plus(TRUSTED)));
}

/// The grant's answer is lost, and the machine is away for `away` before it looks again.
fn granted_unclearly(away: Duration) -> (Rig, Vec<Action>) {
    let mut rig = Rig::claiming();
    rig.answer_is_lost();
    rig.wait(away);
    let did = rig.answered();
    (rig, did)
}

#[test]
fn an_unclear_grant_is_asked_after_and_trusted_from_its_sending() {
    let (_, did) = granted_unclearly(s(3));
    assert_eq!(kill_at(&did), Some(Moment(s(100)).plus(TRUSTED)));
}

#[test]
fn no_job_is_started_after_the_last_start() {
    let (_, did) = granted_unclearly(LAST_START - MS);
    assert!(did.iter().any(|a| matches!(a, Action::StartJob { .. })));
    let (mut rig, did) = granted_unclearly(LAST_START);
    assert!(!did.iter().any(|a| matches!(a, Action::StartJob { .. })));
    assert_eq!(sent(&did), [Touch::Release]);
    rig.answered();
    let Ending::Ran { end, .. } = rig.ending() else {
        panic!("{:?}", rig.ending());
    };
    let too_late = JobEnd::NotStarted(Unstarted::Guard(NotStarted::TooLate));
    assert_eq!(*end, too_late);
    assert_eq!(last_outcome(&rig), Some(Outcome::NotStarted));
}

#[test]
fn a_grant_that_conflicts_is_no_longer_in_doubt() {
    let mut rig = Rig::claiming();
    rig.taken_by_another();
    rig.answered();
    rig.fails();
    let Ending::StoreFailed {
        perhaps_granted, ..
    } = rig.ending()
    else {
        panic!("{:?}", rig.ending());
    };
    assert!(!perhaps_granted);
}

#[test]
fn a_stop_before_the_grant_is_settled_releases_it_unused() {
    let mut rig = Rig::claiming();
    assert!(rig.tell(stop(15)).is_empty(), "the grant may happen");
    let did = rig.answered();
    assert_eq!(sent(&did), [Touch::Release]);
    rig.answered();
    let Ending::Ran { end, .. } = rig.ending() else {
        panic!("{:?}", rig.ending());
    };
    assert_eq!(*end, JobEnd::NotStarted(Unstarted::Signal(15)));
    assert_eq!(last_outcome(&rig), Some(Outcome::NotStarted));
}

#[test]
fn a_stop_while_an_unclear_grant_is_asked_after_releases_it_too() {
    let mut rig = Rig::claiming();
    rig.tell(stop(15));
    rig.answer_is_lost();
    rig.wait(s(1));
    assert_eq!(sent(&rig.answered()), [Touch::Release]);
}

#[test]
fn a_stop_after_an_unclear_grant_settles_it_first() {
    // While the machine waits before it asks, and while it asks.
    for asks in [false, true] {
        let mut rig = Rig::claiming();
        rig.answer_is_lost();
        if asks {
            rig.wait(s(1));
        }
        assert!(rig.tell(stop(15)).is_empty());
        if !asks {
            rig.wait(s(1));
        }
        assert_eq!(sent(&rig.answered()), [Touch::Release]);
        rig.answered();
        assert_eq!(last_outcome(&rig), Some(Outcome::NotStarted));
    }
}

#[test]
fn a_stop_after_a_grant_that_did_not_happen_ends_the_run() {
    let mut rig = Rig::claiming();
    rig.fails();
    rig.tell(stop(15));
    rig.wait(s(1));
    rig.answered();
    assert_eq!(*rig.ending(), Ending::Stopped(15));
}

// The heart.

#[test]
fn an_operators_write_is_adopted_and_trust_starts_at_the_own_swaps_sending() {
    let mut rig = Rig::beating();
    let beat_at = rig.now;
    // The heartbeat happens, its answer is lost; then an operator writes.
    rig.answer_is_lost();
    rig.operates(&Act::Handoff(client("b")));
    rig.wait(s(2));
    assert_eq!(sent(&rig.wait(s(0))), [], "the next is out already");
    let did = rig.answered();
    assert!(
        matches!(did[..], [Action::Send(Request::Read(_))]),
        "{did:?}"
    );
    rig.wait(s(3));
    let did = rig.answered();
    assert_eq!(kill_at(&did), Some(beat_at.plus(TRUSTED)));
    assert!(did.iter().any(|a| matches!(a, Action::Say(Note::Adopted))));
}

#[test]
fn an_adopted_row_is_what_the_next_heartbeat_starts_from() {
    let mut rig = Rig::beating();
    rig.operates(&Act::Handoff(client("b")));
    rig.answered();
    let did = rig.answered();
    assert_eq!(
        sent(&did),
        [Touch::Heartbeat],
        "at once: nothing was renewed"
    );
    rig.answered();
    assert!(rig.row().handoff.is_some());
}

#[test]
fn a_conflict_with_anothers_grant_is_a_loss() {
    let mut rig = Rig::beating();
    rig.taken_by_another();
    rig.answered();
    let did = rig.answered();
    assert_eq!(kill_at(&did), Some(rig.now.plus(GRACE)));
    made_to_exit(&mut rig);
    let Some(Request::Record { end, .. }) = &rig.out else {
        panic!("{:?}", rig.out);
    };
    assert_eq!(end.outcome, Outcome::Lost);
    let session = rig.row().session().cloned();
    rig.answered();
    assert_eq!(
        rig.row().session().cloned(),
        session,
        "the row is another's"
    );
    assert_eq!(last_outcome(&rig), Some(Outcome::Lost));
    let Ending::Ran { end, recorded, .. } = rig.ending() else {
        panic!("{:?}", rig.ending());
    };
    assert_eq!((end, *recorded), (&JobEnd::Lost(Loss::Taken), true));
}

#[test]
fn a_job_that_ended_by_itself_gives_its_own_code_though_the_token_was_lost() {
    let mut rig = Rig::beating();
    rig.taken_by_another();
    rig.answered();
    rig.answered();
    let did = rig.job_ends(Status::Exited(3));
    assert!(
        did.iter()
            .any(|a| matches!(a, Action::Say(Note::LostAfterEnd)))
    );
    rig.answered();
    let Ending::Ran { end, .. } = rig.ending() else {
        panic!("{:?}", rig.ending());
    };
    assert_eq!(*end, JobEnd::Itself(Status::Exited(3)));
    assert_eq!(last_outcome(&rig), Some(Outcome::Failed));
}

#[test]
fn an_expired_heartbeat_is_tried_again_at_once_and_then_after_a_pause() {
    let mut rig = Rig::beating();
    rig.out = None;
    let expired = |rig: &Rig| Event::Swapped(Ok(crate::token::Swapped::Expired(rig.store.now())));
    let event = expired(&rig);
    assert_eq!(sent(&rig.tell(event)), [Touch::Heartbeat]);
    for (half_ms, tries) in [(100, 2), (200, 3), (400, 4)] {
        rig.out = None;
        let event = expired(&rig);
        assert_eq!(sent(&rig.tell(event)), [], "try {tries}");
        let pause = Duration::from_millis(half_ms);
        assert_eq!(sent(&rig.wait(pause - MS)), []);
        assert_eq!(sent(&rig.wait(MS)), [Touch::Heartbeat]);
    }
}

#[test]
fn an_expired_heartbeat_teaches_the_stores_time_in_its_new_domain() {
    let mut rig = Rig::beating();
    let mut clock = rig.store.now();
    clock.domain = crate::token::Domain("memory-1".into());
    rig.store.set_clock(clock);
    assert_eq!(sent(&rig.answered()), [Touch::Heartbeat]);
    let did = rig.answered();
    assert_eq!(kill_at(&did), Some(rig.now.plus(TRUSTED)));
}

#[test]
fn no_heartbeat_is_sent_once_the_lease_cannot_be_trusted() {
    let mut rig = Rig::beating();
    let granted_at = Moment(s(100));
    rig.now = granted_at.plus(TRUSTED - MS);
    assert_eq!(sent(&rig.fails()), [], "a pause");
    rig.now = granted_at.plus(TRUSTED);
    assert_eq!(sent(&rig.tell(Event::Tick)), []);
    for _ in 0..10 {
        assert_eq!(sent(&rig.wait(s(1))), []);
    }
    // When the job is gone it releases what may still be its own.
    assert_eq!(sent(&made_to_exit(&mut rig)), [Touch::Release]);
}

#[test]
fn the_job_is_asked_to_end_when_its_grace_must_begin() {
    let mut rig = Rig::running();
    rig.wait(s(10));
    rig.fails();
    rig.out = None;
    let granted_at = Moment(s(100));
    rig.now = granted_at.plus(LAST_START - MS);
    assert_eq!(kill_at(&rig.tell(Event::Tick)), None);
    rig.now = granted_at.plus(LAST_START);
    let did = rig.tell(Event::Tick);
    assert_eq!(kill_at(&did), Some(granted_at.plus(TRUSTED)));
}

#[test]
fn a_revoked_job_is_ended_and_the_token_freed() {
    let mut rig = Rig::beating();
    rig.operates(&Act::Revoke);
    rig.answered();
    let did = rig.answered();
    assert_eq!(kill_at(&did), Some(rig.now.plus(GRACE)));
    // The token is renewed as long as the job lives; then it is freed.
    rig.answered();
    made_to_exit(&mut rig);
    rig.answered();
    assert_eq!(rig.row().state, State::Free);
    let Ending::Ran { end, .. } = rig.ending() else {
        panic!("{:?}", rig.ending());
    };
    assert_eq!(*end, JobEnd::Lost(Loss::Revoked));
}

/// The job runs, the first heartbeat is out, and the operator hands the token off.
fn handed_off(yields: bool, to: &str) -> (Rig, Vec<Action>) {
    let limits = Limits {
        yields,
        ..Limits::default()
    };
    let mut rig = Rig::of(claim_of("a"), limits, MemoryStore::new());
    rig.answered();
    rig.answered();
    rig.tell(Event::JobStarted);
    rig.wait(s(10));
    rig.operates(&Act::Handoff(client(to)));
    rig.answered();
    let did = rig.answered();
    (rig, did)
}

#[test]
fn who_yields_ends_its_job_for_a_handoff() {
    let (mut rig, did) = handed_off(true, "b");
    assert_eq!(kill_at(&did), Some(rig.now.plus(GRACE)));
    rig.answered();
    made_to_exit(&mut rig);
    rig.answered();
    let Ending::Ran { end, .. } = rig.ending() else {
        panic!("{:?}", rig.ending());
    };
    assert!(matches!(end, JobEnd::Itself(_)), "{end:?}");
    let to = rig.row().handoff.map(|handoff| handoff.to);
    assert_eq!(to, Some(client("b")), "it is for that client");
}

#[test]
fn who_does_not_yield_goes_on_and_so_does_who_is_the_target() {
    for (yields, to) in [(false, "b"), (true, "a")] {
        let (_, did) = handed_off(yields, to);
        let ends = did.iter().any(|it| matches!(it, Action::End { .. }));
        assert!(!ends, "{yields} {to}");
    }
}

// Stops.

#[test]
fn a_second_stop_shortens_the_grace_only_after_a_second() {
    let mut rig = Rig::running();
    let stopped_at = rig.now;
    let passes_and_ends = rig.tell(stop(15));
    assert!(matches!(passes_and_ends[0], Action::Pass(15)));
    assert_eq!(kill_at(&passes_and_ends), Some(stopped_at.plus(GRACE)));
    rig.tell(Event::GuardAnswered);
    rig.now = stopped_at.plus(s(1) - MS);
    assert_eq!(kill_at(&rig.tell(stop(15))), None);
    rig.now = stopped_at.plus(s(1));
    assert_eq!(kill_at(&rig.tell(stop(15))), Some(rig.now));
}

#[test]
fn a_timeout_ends_the_job_and_says_so() {
    let limits = Limits {
        timeout: Some(s(5)),
        ..Limits::default()
    };
    let mut rig = Rig::of(claim_of("a"), limits, Default::default());
    rig.answered();
    rig.answered();
    rig.tell(Event::JobStarted);
    assert_eq!(kill_at(&rig.wait(s(5) - MS)), None);
    assert_eq!(kill_at(&rig.wait(MS)), Some(rig.now.plus(GRACE)));
    made_to_exit(&mut rig);
    rig.answered();
    assert_eq!(last_outcome(&rig), Some(Outcome::TimedOut));
}

#[test]
fn a_supervisor_that_stood_still_does_not_take_its_guard_for_gone() {
    let continued = |all: &[Action]| all.iter().any(|a| matches!(a, Action::ContinueGuard));
    let alone = |all: &[Action]| all.iter().any(|a| matches!(a, Action::EndWithoutGuard));
    let mut rig = Rig::running();
    rig.tell(stop(15));
    // Both stood still until long after the answer was due.
    let late = rig.wait(s(30));
    assert!(continued(&late) && !alone(&late), "{late:?}");
    assert!(!alone(&rig.tell(Event::Tick)));
    // It did so again, and the answer is there to be read.
    rig.now = rig.now.plus(s(30));
    let read = rig.tell(Event::GuardAnswered);
    assert!(!alone(&read), "{read:?}");
}

#[test]
fn a_guard_that_does_not_answer_is_continued_and_then_replaced() {
    let mut rig = Rig::running();
    rig.tell(stop(15));
    let half = rig.wait(s(5));
    assert!(
        half.iter().any(|a| matches!(a, Action::ContinueGuard)),
        "{half:?}"
    );
    let whole = rig.wait(s(5));
    let alone = |a: &Action| matches!(a, Action::EndWithoutGuard);
    assert!(whole.iter().any(alone), "{whole:?}");
    rig.tell(Event::TreeGone);
    // The heartbeat that was out, then the release.
    rig.answered();
    rig.answered();
    assert_eq!(last_outcome(&rig), Some(Outcome::Lost));
}

// The end.

#[test]
fn a_release_whose_answer_is_lost_is_settled_by_the_runs_record() {
    let mut rig = Rig::running();
    rig.job_ends(Status::Exited(0));
    rig.answer_is_lost();
    // Another has the token by now: the row says nothing of the release.
    rig.taken_by_another();
    rig.wait(s(1));
    rig.answered();
    assert!(
        matches!(rig.out, Some(Request::Record { .. })),
        "{:?}",
        rig.out
    );
    rig.answered();
    let Ending::Ran { end, recorded, .. } = rig.ending() else {
        panic!("{:?}", rig.ending());
    };
    assert_eq!((end, *recorded), (&JobEnd::Itself(Status::Exited(0)), true));
    assert_eq!(last_outcome(&rig), Some(Outcome::Succeeded));
}

#[test]
fn a_release_waits_for_the_heartbeat_that_is_out() {
    let mut rig = Rig::beating();
    rig.job_ends(Status::Exited(0));
    assert_eq!(sent(&rig.answered()), [Touch::Release]);
    rig.answered();
    assert!(matches!(rig.row().state, State::Idle { .. }));
}

#[test]
fn a_release_survives_an_operators_write() {
    let mut rig = Rig::running();
    rig.job_ends(Status::Exited(0));
    rig.operates(&Act::Handoff(client("b")));
    rig.answered();
    assert_eq!(sent(&rig.answered()), [Touch::Release]);
    rig.answered();
    let row = rig.row();
    assert!(matches!(row.state, State::Idle { .. }));
    assert!(row.handoff.is_some());
}

#[test]
fn whoever_cannot_release_gives_up_after_six_timeouts_and_says_so() {
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

/// A machine with a key for `--once` that has asked whether that is done.
fn with_key(store: crate::store::memory::MemoryStore) -> Rig {
    let mut claim = claim_of("a");
    claim.about.once_key = Some("2026-11-21".into());
    let rig = Rig::of(claim, crate::run::machine::Limits::default(), store);
    assert!(matches!(rig.out, Some(Request::Once { .. })));
    rig
}

fn started(did: &[Action]) -> bool {
    did.iter().any(|a| matches!(a, Action::StartJob { .. }))
}

/// Runs the job with its key, which ends with this status.
fn ran_with_key(mut rig: Rig, status: Status) -> Rig {
    // Not done; the row; the grant; still not done.
    for _ in 0..3 {
        assert!(!started(&rig.answered()));
    }
    assert!(started(&rig.answered()));
    rig.tell(Event::JobStarted);
    rig.job_ends(status);
    rig.answered();
    rig
}

#[test]
fn a_key_is_done_by_the_success_of_its_run_and_by_nothing_else() {
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
    rig.answered();
    let other = ran_with_key(with_key(Default::default()), Status::Exited(0));
    let mut contents = rig.store.contents();
    contents.marks = other.store.contents().marks;
    rig.store.restore(contents);
    rig.answered();
    assert!(matches!(rig.out, Some(Request::Once { .. })), "asked again");
    let did = rig.answered();
    assert!(!started(&did));
    assert_eq!(sent(&did), [Touch::Release]);
    rig.answered();
    let Ending::Ran { end, .. } = rig.ending() else {
        panic!("{:?}", rig.ending());
    };
    assert!(matches!(end, JobEnd::NotStarted(Unstarted::Done(_))));
    assert_eq!(last_outcome(&rig), Some(Outcome::NotStarted));
}

#[test]
fn a_key_that_can_not_be_asked_after_starts_no_job() {
    let mut rig = with_key(Default::default());
    for _ in 0..3 {
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
fn success_that_can_not_be_recorded_is_tried_as_long_as_the_lease_can_be_trusted() {
    let mut rig = with_key(Default::default());
    for _ in 0..4 {
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
