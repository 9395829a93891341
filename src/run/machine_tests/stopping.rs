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

#[test]
fn a_guard_that_is_gone_gets_no_orders() {
    let mut rig = Rig::running();
    let did = rig.tell(Event::GuardGone);
    assert_eq!(words(&did, rig.now), "say Stopping, end without the guard");
    for _ in 0..5 {
        let did = rig.wait(s(1));
        assert_eq!(words(&did, rig.now), "");
    }
}

#[test]
fn a_guard_that_does_not_answer_a_reminder_is_continued_and_then_replaced() {
    let mut rig = Rig::running();
    rig.tell(stop(15));
    rig.tell(Event::GuardAnswered);
    let reminded = rig.wait(GRACE);
    assert_eq!(kill_at(&reminded), Some(rig.now), "{reminded:?}");
    let mut said = Vec::new();
    for _ in 0..12 {
        said.extend(rig.wait(s(1)));
    }
    let has = |wanted: fn(&Action) -> bool| said.iter().any(wanted);
    assert!(has(|it| matches!(it, Action::ContinueGuard)), "{said:?}");
    assert!(has(|it| matches!(it, Action::EndWithoutGuard)), "{said:?}");
}

#[test]
fn an_end_for_an_untrusted_lease_is_ordered_once_until_its_reminder() {
    let mut rig = Rig::running();
    rig.wait(s(10));
    rig.fails();
    rig.out = None;
    rig.now = Moment(s(100)).plus(LAST_START);
    assert!(kill_at(&rig.tell(Event::Tick)).is_some());
    rig.tell(Event::GuardAnswered);
    rig.out = None;
    rig.now = rig.now.plus(MS);
    assert_eq!(kill_at(&rig.tell(Event::Tick)), None);
}

#[test]
fn a_job_that_a_stop_has_kept_from_its_start_is_stopped_by_the_signal() {
    for (why, signalled) in [(NotStarted::TooLate, true), (no_process(), false)] {
        let mut rig = Rig::starting();
        rig.tell(stop(15));
        rig.tell(Event::JobNotStarted(why.clone()));
        rig.answered();
        let Ending::Ran { end, .. } = rig.ending() else {
            panic!("{:?}", rig.ending());
        };
        let expected = match signalled {
            true => Unstarted::Signal(15),
            false => Unstarted::Guard(why),
        };
        assert_eq!(*end, JobEnd::NotStarted(expected));
    }
}

fn no_process() -> NotStarted {
    NotStarted::NoProcess(Failed {
        program: "job".into(),
        error: "no memory".into(),
    })
}
