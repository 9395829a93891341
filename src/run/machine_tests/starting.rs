//! From the locks to the start of the job.

use super::*;
use crate::store::StoreError;
use crate::token::Row;

fn grant_in(did: &[Action]) -> Option<&crate::token::Swap> {
    did.iter().find_map(|action| match action {
        Action::Send(Request::Swap(swap)) => Some(swap.as_ref()),
        _ => None,
    })
}

/// The lock file that a row names.
fn locks_of(row: &Row) -> Option<String> {
    row.run()?.lock_file.clone()
}

#[test]
fn the_locks_are_taken_before_the_grant_is_sent_and_its_row_names_them() {
    let mut rig = Rig::locking();
    assert!(rig.out.is_none(), "nothing is sent before");
    let did = rig.tell(Event::LocksTaken(Ok("file".into())));
    let swap = grant_in(&did).unwrap();
    assert_eq!(locks_of(&swap.to), Some("file".into()));
    rig.answered();
    assert_eq!(locks_of(&rig.row()), Some("file".into()));
    rig.tell(Event::JobStarted);
    rig.wait(s(10));
    rig.answered();
    assert_eq!(locks_of(&rig.row()), Some("file".into()));
    rig.job_ends(Status::Exited(0));
    rig.answered();
    assert_eq!(locks_of(&rig.row()), None);
}

#[test]
fn without_locks_the_job_runs_and_the_row_names_none() {
    let mut rig = Rig::locking();
    let did = rig.tell(Event::LocksTaken(Err("full".into())));
    assert!(matches!(&did[0], Action::Say(Note::NoLocks { why }) if why == "full"));
    assert_eq!(locks_of(&grant_in(&did).unwrap().to), None);
    assert!(kill_at(&rig.answered()).is_some());
}

#[test]
fn locks_are_taken_once() {
    let mut rig = Rig::locking();
    let did = rig.tell(Event::LocksTaken(Ok("file".into())));
    assert!(grant_in(&did).is_some());
    // Another session was quicker, and is gone again.
    rig.out = None;
    let did = rig.tell(Event::Swapped(Ok(Swapped::Conflict)));
    assert_eq!(words(&did, rig.now), "read");
    let did = rig.answered();
    assert_eq!(words(&did, rig.now), "grant");
    assert_eq!(locks_of(&grant_in(&did).unwrap().to), Some("file".into()));
}

#[test]
fn a_stop_while_the_locks_are_taken_ends_the_run() {
    let mut rig = Rig::locking();
    rig.tell(stop(15));
    assert_eq!(*rig.ending(), Ending::Stopped(15));
    assert!(rig.tell(Event::LocksTaken(Ok("file".into()))).is_empty());
}

#[test]
fn the_note_says_whether_the_earlier_run_was_dead_or_silent() {
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
        let vanished = did.iter().find_map(|action| match action {
            Action::Say(Note::Acquired {
                vanished, proven, ..
            }) => Some((vanished.clone(), *proven)),
            _ => None,
        });
        let proven = evidence == Evidence::Dead;
        assert_eq!(vanished, Some((Some(session("a1")), proven)));
    }
}

#[test]
fn trust_starts_when_the_grant_was_sent_not_when_it_was_answered() {
    let mut rig = Rig::claiming();
    let sent_at = rig.now;
    rig.wait(s(3));
    assert_eq!(kill_at(&rig.answered()), Some(sent_at.plus(TRUSTED)));
}

/// The grant's answer is lost, and the machine is stopped for `away` before it looks again.
fn granted_unclearly(away: Duration) -> (Rig, Vec<Action>) {
    let mut rig = Rig::claiming();
    rig.answer_is_lost();
    rig.wait(away);
    let did = rig.answered();
    (rig, did)
}

#[test]
fn an_unclear_grant_is_settled_by_a_read_and_trusted_from_its_sending() {
    let (_, did) = granted_unclearly(s(3));
    assert_eq!(kill_at(&did), Some(Moment(s(100)).plus(TRUSTED)));
}

#[test]
fn no_job_is_started_after_the_last_start() {
    let (_, did) = granted_unclearly(LAST_START - MS);
    assert!(did.iter().any(|a| matches!(a, Action::StartJob { .. })));
    let (mut rig, did) = granted_unclearly(LAST_START);
    assert!(!did.iter().any(|a| matches!(a, Action::StartJob { .. })));
    assert_eq!(sent(&did), [StampOf::Released]);
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
fn a_grant_that_was_refused_is_not_in_doubt() {
    for (error, in_doubt) in [
        (StoreError::unavailable("no answer"), true),
        (StoreError::refused("read-only"), false),
        (StoreError::unavailable("no answer").without_effect(), false),
        (StoreError::misconfigured("no such table"), false),
    ] {
        let mut rig = Rig::claiming();
        rig.out = None;
        rig.tell(Event::Swapped(Err(error)));
        while rig.machine.ending().is_none() {
            if rig.out.is_some() {
                rig.fails();
            } else {
                rig.wait(s(1));
            }
        }
        let Ending::StoreFailed {
            perhaps_granted, ..
        } = rig.ending()
        else {
            panic!("{:?}", rig.ending());
        };
        assert_eq!(*perhaps_granted, in_doubt);
    }
}

#[test]
fn a_stop_before_the_grant_is_settled_releases_it_unused() {
    let mut rig = Rig::claiming();
    assert!(rig.tell(stop(15)).is_empty(), "the grant may happen");
    let did = rig.answered();
    assert_eq!(sent(&did), [StampOf::Released]);
    rig.answered();
    let Ending::Ran { end, .. } = rig.ending() else {
        panic!("{:?}", rig.ending());
    };
    assert_eq!(*end, JobEnd::NotStarted(Unstarted::Signal(15)));
    assert_eq!(last_outcome(&rig), Some(Outcome::NotStarted));
}

/// A supervisor that was stopped reads what has come meanwhile in any order.
#[test]
fn a_guard_that_leaves_in_time_is_the_reason_whatever_the_store_answers() {
    let codes = crate::run::ending::Codes {
        not_now: 75,
        done: 0,
        once: false,
    };
    let orders: [fn(&mut Rig, Event); 4] = [
        |rig, too_late| {
            rig.tell(too_late);
            assert_eq!(sent(&rig.answered()), [StampOf::Released]);
            rig.answered();
        },
        |rig, too_late| {
            rig.taken_by_another();
            rig.tell(too_late);
            rig.answered();
            rig.answered();
        },
        |rig, too_late| {
            rig.taken_by_another();
            rig.answered();
            rig.tell(too_late);
        },
        |rig, too_late| {
            rig.tell(too_late);
            rig.fails();
            rig.wait(s(1));
            rig.answered();
        },
    ];
    for (order, play) in orders.into_iter().enumerate() {
        let mut rig = Rig::claiming();
        play(&mut rig, Event::JobNotStarted(NotStarted::TooLate));
        let ending = rig.ending();
        let exit = ending.exit(codes);
        assert_eq!(exit, crate::exit::Exit::Code(69), "{order}: {ending:?}");
        let said = match ending {
            Ending::Unstartable(why) => why,
            Ending::Ran {
                end: JobEnd::NotStarted(Unstarted::Guard(why)),
                ..
            } => why,
            other => panic!("{order}: {other:?}"),
        };
        assert_eq!(*said, NotStarted::TooLate, "{order}");
    }
}

#[test]
fn a_stop_while_an_unclear_grant_is_settled_releases_it_too() {
    let mut rig = Rig::claiming();
    rig.tell(stop(15));
    rig.answer_is_lost();
    rig.wait(s(1));
    assert_eq!(sent(&rig.answered()), [StampOf::Released]);
}

#[test]
fn a_stop_after_an_unclear_grant_settles_it_first() {
    // While the machine waits before the read, and during the read.
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
        assert_eq!(sent(&rig.answered()), [StampOf::Released]);
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

/// A row that a job's transaction holds may be locked by this session's own grant, whose answer was
/// lost.
#[test]
fn a_locked_row_refuses_unless_the_own_grant_may_hold_it() {
    let held = || Event::Swapped(Err(crate::store::StoreError::held("pid 7")));
    let mut rig = Rig::claiming();
    rig.out = None;
    rig.tell(held());
    assert_eq!(short(rig.ending()), "store failed, perhaps granted: false");

    let mut rig = Rig::claiming();
    rig.fails();
    rig.wait(s(1));
    rig.answered();
    assert!(matches!(rig.out, Some(Request::Swap(_))), "{:?}", rig.out);
    rig.out = None;
    rig.tell(held());
    assert_eq!(rig.machine.ending(), None);
    rig.wait(s(2));
    rig.answered();
    let did = rig.answered();
    assert!(kill_at(&did).is_some(), "{did:?}");
}

#[test]
fn a_stop_ends_a_run_whose_grant_has_certainly_failed() {
    let mut rig = Rig::claiming();
    rig.tell(stop(15));
    assert_eq!(rig.machine.ending(), None, "it may have been granted");
    rig.out = None;
    let locked = crate::store::StoreError::locked("by pid 7");
    rig.tell(Event::Swapped(Err(locked)));
    assert_eq!(*rig.ending(), Ending::Stopped(15));
}

#[test]
fn a_start_is_expected_while_a_grant_is_out_and_the_time_for_it_is_not_near() {
    let mut rig = Rig::looking();
    assert_eq!(rig.machine.start_by(rig.now), None, "nothing is requested");
    rig.answered();
    let latest = timing().last_start(rig.now);
    assert_eq!(rig.machine.start_by(rig.now), Some(latest));
    assert_eq!(rig.machine.start_by(latest.minus(s(3))), Some(latest));
    assert_eq!(rig.machine.start_by(latest.minus(s(2))), None);
    rig.answered();
    assert_eq!(rig.machine.start_by(rig.now), None, "the job is started");
}

#[test]
fn after_a_lost_answer_a_start_is_expected_and_after_a_conflict_none() {
    let mut rig = Rig::claiming();
    let sent_at = rig.now;
    rig.answer_is_lost();
    let latest = timing().last_start(sent_at);
    assert_eq!(rig.machine.start_by(rig.now), Some(latest));

    let mut rig = Rig::claiming();
    rig.taken_by_another();
    rig.answered();
    assert_eq!(rig.machine.start_by(rig.now), None);
}

/// Both have the same session; the run is that of the grant that happened.
#[test]
fn a_grant_that_happens_after_the_next_one_was_sent_is_the_runs() {
    let mut rig = Rig::claiming();
    let first = rig.out.clone().expect("a grant is out");
    rig.fails();
    rig.wait(s(1));
    rig.answered();
    let second = rig.out.clone().expect("another grant is out");
    let sent_at = Moment(s(100));
    let fence = |request: &Request| match request {
        Request::Swap(swap) => swap.to.fence,
        other => panic!("{other:?}"),
    };
    assert!(fence(&second) > fence(&first));
    rig.fails();
    first.carry_out(&mut rig.store);
    rig.wait(s(1));
    let did = rig.answered();
    assert_eq!(kill_at(&did), Some(sent_at.plus(TRUSTED)));
    assert_eq!(rig.row().fence, fence(&first));
    rig.tell(Event::JobStarted);
    rig.wait(s(10));
    let did = rig.answered();
    assert_eq!(kill_at(&did), Some(rig.now.plus(TRUSTED)), "no conflict");
    rig.job_ends(Status::Exited(0));
    let Some(Request::Swap(release)) = &rig.out else {
        panic!("{:?}", rig.out);
    };
    let ended = release.ended.as_ref().expect("a run ends");
    assert_eq!(ended.fence, fence(&first));
}

#[test]
fn a_stop_while_a_grant_is_out_asks_for_no_key() {
    let mut claim = claim_of("a");
    claim.about.once_key = Some("today".into());
    let mut rig = Rig::of(claim, Limits::default(), ModelStore::new());
    rig.answered();
    rig.tell(stop(15));
    assert_eq!(sent(&rig.answered()), [StampOf::Released]);
}

#[test]
fn a_read_without_an_answer_does_not_settle_a_grant() {
    let mut rig = Rig::claiming();
    rig.fails();
    rig.wait(s(1));
    assert!(matches!(rig.out, Some(Request::Read(..))), "{:?}", rig.out);
    rig.wait(s(10));
    assert_eq!(short(rig.ending()), "store failed, perhaps granted: true");
}

#[test]
fn a_stop_while_the_key_is_asked_for_releases_the_token_without_an_answer() {
    let mut claim = claim_of("a");
    claim.about.once_key = Some("today".into());
    let mut rig = Rig::of(claim, Limits::default(), ModelStore::new());
    rig.answered();
    rig.answered();
    assert!(matches!(rig.out, Some(Request::Once { .. })));
    rig.tell(stop(15));
    rig.fails();
    assert_eq!(sent(&rig.wait(s(1))), [StampOf::Released]);
}
