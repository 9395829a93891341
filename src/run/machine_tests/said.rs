//! What a waiting run says, how long it has waited, and when it asks again.

use super::*;
use crate::store::Reading;
use crate::token::{Evidence, Refusal, Swapped};

/// How often a note of this name is said.
fn said(did: &[Action], name: &str, rig: &Rig) -> usize {
    let words = words(did, rig.now);
    words
        .split(", ")
        .filter(|it| *it == format!("say {name}"))
        .count()
}

/// A message that the session waits for the token.
fn is_wait_for_token(action: &Action) -> bool {
    let Action::Say(note) = action else {
        return false;
    };
    matches!(
        note,
        Note::Queued { newly: true, .. } | Note::Staying { .. } | Note::ObservingStore { .. }
    )
}

/// A holder that is dead, whose token others get after the head start of the client `c`.
fn handed_off_to_c() -> Rig {
    let mut dead = Rig::running();
    dead.operates(&Act::Handoff(client("c")));
    dead.store.advance(s(60));
    dead
}

#[test]
fn a_store_that_is_away_again_is_said_again() {
    let head_start = waits("b", Wait::Forever, &handed_off_to_c());
    let (queued, _) = in_queue(Wait::Forever);
    for mut rig in [head_start, queued] {
        rig.out
            .get_or_insert(Request::Read(GroupName::new("g").unwrap(), None));
        for _ in 0..2 {
            let did = rig.fails();
            assert_eq!(said(&did, "StoreAway", &rig), 1, "{did:?}");
            rig.wait(s(1));
            let did = rig.fails();
            assert_eq!(said(&did, "StoreAway", &rig), 0, "{did:?}");
            rig.wait(s(2));
            let did = rig.answered();
            let for_token = did.iter().filter(|a| is_wait_for_token(a));
            assert_eq!(for_token.count(), 1, "{did:?}");
            rig.wait(Duration::from_millis(10));
            while rig.out.is_some() {
                let did = rig.answered();
                assert!(!did.iter().any(is_wait_for_token), "{did:?}");
            }
            rig.wait(s(2));
        }
    }
}

#[test]
fn a_head_start_is_said_once_and_named_at_the_end() {
    let mut rig = waits("b", Wait::For(BEGUN + s(3)), &handed_off_to_c());
    let did = rig.answered();
    assert_eq!(said(&did, "Staying", &rig), 1, "{did:?}");
    while rig.machine.ending().is_none() {
        assert!(rig.now.0 <= BEGUN + s(4), "{:?}", rig.machine.phase());
        let mut did = rig.wait(Duration::from_millis(500));
        while rig.out.is_some() {
            did.extend(rig.answered());
        }
        assert_eq!(said(&did, "Staying", &rig), 0, "{did:?}");
    }
    let Ending::Refused { why, .. } = rig.ending() else {
        panic!("{:?}", rig.ending());
    };
    assert!(matches!(why, Refusal::HeadStart { .. }), "{why:?}");
}

/// It has not said that it waits for the store.
#[test]
fn a_run_that_may_not_wait_says_a_head_start_once() {
    let mut rig = waits("b", Wait::No, &handed_off_to_c());
    let did = rig.answered();
    assert_eq!(said(&did, "Staying", &rig), 1, "{did:?}");
    rig.wait(s(1));
    rig.out = Some(Request::Read(GroupName::new("g").unwrap(), None));
    rig.fails();
    rig.wait(s(1));
    let did = rig.answered();
    assert_eq!(said(&did, "Staying", &rig), 0, "{did:?}");
    assert!(rig.machine.ending().is_none());
}

#[test]
fn the_time_in_the_queue_counts_from_the_refusal() {
    let (mut rig, mut holder) = in_queue(Wait::Forever);
    rig.wait(Duration::from_millis(700));
    holder.job_ends(Status::Exited(0));
    holder.answered();
    rig.tell(Event::Notified);
    rig.answered();
    let did = rig.answered();
    assert_eq!(waited(&did), Some(Duration::from_millis(700)));
}

/// The last note of how long the run has waited.
fn waited(did: &[Action]) -> Option<Duration> {
    let mut waited = did.iter().filter_map(|action| match action {
        Action::Say(Note::Waited { waited }) => Some(*waited),
        _ => None,
    });
    waited.next_back()
}

#[test]
fn the_time_without_a_store_and_the_time_of_a_head_start_are_waited_too() {
    let mut rig = waits("a", Wait::Forever, &Rig::looking());
    rig.fails();
    rig.wait(s(1));
    rig.answered();
    assert_eq!(waited(&rig.answered()), Some(s(1)));

    let mut rig = waits("b", Wait::Forever, &handed_off_to_c());
    let mut all = Vec::new();
    while rig.machine.seeks() {
        while rig.out.is_some() {
            all.extend(rig.answered());
        }
        if rig.machine.seeks() {
            all.extend(rig.wait(s(1)));
        }
    }
    assert_eq!(waited(&all), Some(rig.now.0 - BEGUN));
}

/// It goes on without a word when the store has failed meanwhile.
#[test]
fn a_run_that_may_not_wait_says_no_waiting_time() {
    let mut rig = Rig::claiming();
    let mut did = rig.answer_is_lost();
    did.extend(rig.wait(s(1)));
    while rig.machine.seeks() {
        did.extend(rig.answered());
    }
    let starts = |action: &Action| matches!(action, Action::StartJob { .. });
    assert!(did.iter().any(starts), "{did:?}");
    assert_eq!(waited(&did), None);
}

#[test]
fn the_store_is_asked_once_however_short_the_wait_is() {
    let rig = waits("a", Wait::For(BEGUN - s(1)), &Rig::looking());
    assert!(matches!(rig.out, Some(Request::Read(..))), "{:?}", rig.out);
}

#[test]
fn a_store_that_is_away_after_a_conflict_is_said_again() {
    let (mut rig, mut holder) = in_queue(Wait::Forever);
    holder.job_ends(Status::Exited(0));
    holder.answered();
    rig.tell(Event::Notified);
    let did = rig.fails();
    assert_eq!(said(&did, "StoreAway", &rig), 1);
    rig.wait(s(1));
    rig.answered();
    assert!(matches!(rig.out, Some(Request::Swap(_))), "{:?}", rig.out);
    rig.out = None;
    rig.tell(Event::Swapped(Ok(Swapped::Conflict)));
    let did = rig.fails();
    assert_eq!(said(&did, "StoreAway", &rig), 1, "{did:?}");
}

/// It would delay those that wait for the token.
#[test]
fn a_session_that_is_refused_for_its_own_host_joins_no_queue_and_looks_again_soon() {
    let holder = Rig::running();
    let mut rig = waits("b", Wait::Forever, &holder);
    let Event::Looked(Ok((reading, _))) = rig.arrives() else {
        panic!("no reading");
    };
    let alive = Evidence::Alive(vec!["job".into()]);
    holder.store.advance(s(60));
    let late = Reading {
        now: rig.store.now(),
        ..*reading
    };
    rig.tell(Event::Looked(Ok((Box::new(late), alive))));
    assert!(rig.out.is_none(), "{:?}", rig.out);
    rig.wait(s(1));
    assert!(matches!(rig.out, Some(Request::Read(..))), "{:?}", rig.out);
}
