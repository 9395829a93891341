//! Stop signals, time-outs, and a guard that does not answer.

use super::*;

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
fn a_timeout_ends_the_job_with_a_note() {
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
fn a_supervisor_that_was_stopped_does_not_count_its_guard_as_gone() {
    let continued = |all: &[Action]| all.iter().any(|a| matches!(a, Action::ContinueGuard));
    let alone = |all: &[Action]| all.iter().any(|a| matches!(a, Action::EndWithoutGuard));
    let mut rig = Rig::running();
    rig.tell(stop(15));
    // Both were stopped until long after the answer was due.
    let late = rig.wait(s(30));
    assert!(continued(&late) && !alone(&late), "{late:?}");
    assert!(!alone(&rig.tell(Event::Tick)));
    // Both were stopped again, and the answer is there to be read.
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
