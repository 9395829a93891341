//! The machine while it holds the token.

use super::*;

#[test]
fn an_operators_write_is_adopted_and_trust_counts_from_the_own_swap() {
    let mut rig = Rig::beating();
    let beat_at = rig.now;
    // The heartbeat happens and its answer is lost; then an operator writes.
    rig.answer_is_lost();
    rig.operates(&Act::Handoff(client("b")));
    rig.wait(s(2));
    assert_eq!(sent(&rig.wait(s(0))), [], "the next is out already");
    let did = rig.answered();
    assert!(
        matches!(did[..], [Action::Send(Request::Read(..))]),
        "{did:?}"
    );
    rig.wait(s(3));
    let did = rig.answered();
    assert_eq!(kill_at(&did), Some(beat_at.plus(TRUSTED)));
    assert!(did.iter().any(|a| matches!(a, Action::Say(Note::Adopted))));
}

#[test]
fn trust_starts_when_a_heartbeat_is_sent_however_late_its_answer() {
    let mut rig = Rig::beating();
    let beat_at = rig.now;
    let answer = rig.arrives();
    rig.wait(s(3));
    let did = rig.tell(answer);
    let extended = did.iter().find_map(|action| match action {
        Action::Extend(deadline) => Some(*deadline),
        _ => None,
    });
    let deadline = Deadline {
        term_at: beat_at.plus(LAST_START),
        kill_at: beat_at.plus(TRUSTED),
    };
    assert_eq!(extended, Some(deadline), "the deadline that the guard gets");
    let trusted = did.iter().find_map(|action| match action {
        Action::Say(Note::Renewed { trusted_for }) => Some(*trusted_for),
        _ => None,
    });
    assert_eq!(trusted, Some(TRUSTED - s(3)));
    rig.tell(Event::GuardAnswered);
    // The machine's own deadlines follow the same rule.
    assert_eq!(sent(&rig.wait(s(7) - MS)), []);
    assert_eq!(sent(&rig.wait(MS)), [StampOf::Heartbeat]);
    let did = rig.fails();
    let job_ends_in = did.iter().find_map(|action| match action {
        Action::Say(Note::TroubleBegan { job_ends_in, .. }) => *job_ends_in,
        _ => None,
    });
    assert_eq!(job_ends_in, Some(LAST_START - s(10)));
    rig.out = None;
    rig.now = deadline.term_at.minus(MS);
    assert_eq!(kill_at(&rig.tell(Event::Tick)), None);
    rig.now = deadline.term_at;
    assert_eq!(kill_at(&rig.tell(Event::Tick)), Some(deadline.kill_at));
}

#[test]
fn the_next_heartbeat_starts_from_the_adopted_row() {
    let mut rig = Rig::beating();
    rig.operates(&Act::Handoff(client("b")));
    rig.answered();
    let did = rig.answered();
    assert_eq!(
        sent(&did),
        [StampOf::Heartbeat],
        "at once: nothing was renewed"
    );
    rig.answered();
    assert!(rig.row().document.handoff.is_some());
}

#[test]
fn a_conflict_with_the_grant_of_another_session_is_a_loss() {
    let mut rig = Rig::beating();
    rig.taken_by_another();
    rig.answered();
    let did = rig.answered();
    assert_eq!(kill_at(&did), Some(rig.now.plus(GRACE)));
    made_to_exit(&mut rig);
    let Some(Request::Record(run)) = &rig.out else {
        panic!("{:?}", rig.out);
    };
    assert_eq!(run.outcome, Outcome::Lost);
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
    assert_eq!(sent(&rig.tell(event)), [StampOf::Heartbeat]);
    for (half_ms, tries) in [(100, 2), (200, 3), (400, 4)] {
        rig.out = None;
        let event = expired(&rig);
        assert_eq!(sent(&rig.tell(event)), [], "try {tries}");
        let pause = Duration::from_millis(half_ms);
        assert_eq!(sent(&rig.wait(pause - MS)), []);
        assert_eq!(sent(&rig.wait(MS)), [StampOf::Heartbeat]);
    }
}

#[test]
fn an_expired_heartbeat_brings_the_stores_time_in_its_new_epoch() {
    let mut rig = Rig::beating();
    let mut clock = rig.store.now();
    clock.epoch = crate::token::ClockEpoch("memory-1".into());
    rig.store.set_clock(clock);
    assert_eq!(words(&rig.answered(), rig.now), "read");
    assert_eq!(words(&rig.answered(), rig.now), "note model");
    assert_eq!(sent(&rig.answered()), [StampOf::Heartbeat]);
    let did = rig.answered();
    assert_eq!(kill_at(&did), Some(rig.now.plus(TRUSTED)));
}

#[test]
fn a_holder_whose_last_heartbeat_was_forgotten_goes_on_from_the_one_before() {
    let mut rig = Rig::beating();
    rig.answered();
    let older = rig.store.contents();
    for _ in 0..2 {
        rig.wait(s(10));
        rig.answered();
    }
    rig.store.restore(older);
    rig.wait(s(10));
    assert_eq!(words(&rig.answered(), rig.now), "read");
    let did = rig.answered();
    assert_eq!(sent(&did), [StampOf::Heartbeat], "{did:?}");
    assert_eq!(kill_at(&did), None, "its trust has not grown");
    assert_eq!(kill_at(&rig.answered()), Some(rig.now.plus(TRUSTED)));
}

#[test]
fn a_holder_whose_grant_was_forgotten_ends_its_job() {
    let mut rig = Rig::running();
    rig.store.restore(crate::store::model::ModelData::default());
    rig.wait(s(10));
    rig.answered();
    let did = rig.answered();
    assert!(
        did.iter().any(|a| matches!(a, Action::End { .. })),
        "{did:?}"
    );
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
    // When the job is gone, the machine releases a token that may still be its own.
    assert_eq!(sent(&made_to_exit(&mut rig)), [StampOf::Released]);
}

#[test]
fn the_job_gets_term_when_its_grace_must_begin() {
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

/// The job runs, the first heartbeat is out, and an operator hands the token off.
fn handed_off(yields: bool, to: &str) -> (Rig, Vec<Action>) {
    let limits = Limits {
        yields,
        ..Limits::default()
    };
    let mut rig = Rig::of(claim_of("a"), limits, ModelStore::new());
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
fn a_run_that_yields_ends_its_job_for_a_handoff() {
    let (mut rig, did) = handed_off(true, "b");
    assert_eq!(kill_at(&did), Some(rig.now.plus(GRACE)));
    rig.answered();
    made_to_exit(&mut rig);
    rig.answered();
    let Ending::Ran { end, .. } = rig.ending() else {
        panic!("{:?}", rig.ending());
    };
    assert!(matches!(end, JobEnd::Itself(_)), "{end:?}");
    let to = rig.row().document.handoff.map(|handoff| handoff.to);
    assert_eq!(to, Some(client("b")), "it is for that client");
}

/// A running job is never ended for `--failback`, and `hold` is such a job.
#[test]
fn a_run_that_yields_goes_on_for_a_handoff_for_failback() {
    let limits = Limits {
        yields: true,
        ..Limits::default()
    };
    let mut rig = Rig::of(claim_of("a"), limits, ModelStore::new());
    rig.answered();
    rig.answered();
    rig.tell(Event::JobStarted);
    rig.wait(s(10));
    rig.hands_off_to_itself("b");
    rig.answered();
    let did = rig.answered();
    let ends = did.iter().any(|it| matches!(it, Action::End { .. }));
    assert!(!ends, "{did:?}");
    assert_eq!(
        rig.row().document.handoff.map(|handoff| handoff.to),
        Some(client("b"))
    );
}

#[test]
fn a_run_that_does_not_yield_or_is_the_target_goes_on() {
    for (yields, to) in [(false, "b"), (true, "a")] {
        let (_, did) = handed_off(yields, to);
        let ends = did.iter().any(|it| matches!(it, Action::End { .. }));
        assert!(!ends, "{yields} {to}");
    }
}

/// The notes that a machine has said, but for those of each heartbeat.
fn notes(did: &[Action]) -> Vec<&'static str> {
    let name = |action: &Action| match action {
        Action::Say(Note::TroubleBegan { .. }) => Some("began"),
        Action::Say(Note::TroubleEnded) => Some("ended"),
        _ => None,
    };
    did.iter().filter_map(name).collect()
}

#[test]
fn a_trouble_with_the_store_is_said_when_it_begins_and_when_it_ends() {
    let mut rig = Rig::beating();
    for _ in 0..2 {
        assert_eq!(notes(&rig.fails()), ["began"]);
        let first_pause = rig.machine.wake_at().map(|at| at.since(rig.now));
        rig.wait(s(1));
        assert_eq!(notes(&rig.fails()), [""; 0]);
        rig.wait(s(2));
        assert_eq!(notes(&rig.answered()), ["ended"]);
        rig.tell(Event::GuardAnswered);
        assert_eq!(first_pause, Some(Duration::from_millis(100)));
        rig.wait(s(10));
    }
}

#[test]
fn a_heartbeat_after_one_that_came_too_late_expires_by_the_time_in_that_answer() {
    let mut rig = Rig::beating();
    rig.out = None;
    // The store's clock was set, which its epoch does not show.
    rig.store.advance(s(1_000));
    let time = rig.store.now();
    rig.tell(Event::Swapped(Ok(Swapped::Expired(time.clone()))));
    let Some(Request::Swap(next)) = &rig.out else {
        panic!("{:?}", rig.out);
    };
    assert_eq!(next.expiry, time.until(TIMEOUT));
}

#[test]
fn a_machine_whose_lease_can_not_be_trusted_does_not_wake_for_heartbeats() {
    let mut rig = Rig::running();
    rig.tell(Event::GuardAnswered);
    rig.now = Moment(s(100)).plus(TRUSTED);
    rig.tell(Event::Tick);
    rig.tell(Event::GuardAnswered);
    let wakes = rig.machine.wake_at().unwrap();
    assert!(wakes > rig.now, "{wakes:?}");
}

fn ends(did: &[Action]) -> bool {
    did.iter().any(|it| matches!(it, Action::End { .. }))
}

#[test]
fn a_job_that_is_being_ended_gets_no_second_order_for_the_same_reason() {
    let revoked = {
        let mut rig = Rig::beating();
        rig.operates(&Act::Revoke);
        rig.answered();
        let did = rig.answered();
        (rig, did)
    };
    for (mut rig, did) in [revoked, handed_off(true, "b")] {
        assert!(ends(&did), "{did:?}");
        rig.tell(Event::GuardAnswered);
        // The next heartbeat is out at once, and another act comes before it.
        rig.operates(&Act::Expect(Some(client("c"))));
        rig.answered();
        let did = rig.answered();
        assert!(!ends(&did), "{did:?}");
    }
}
