//! A store that may have forgotten a grant is noted, observed, and then used.

use super::rig::*;
use crate::moment::Moment;
use crate::run::machine::{Limits, Wait};
use crate::store::Request;
use crate::store::model::{ModelData, ModelStore, Server};
use crate::token::rule::tests::fixture::s;
use crate::token::{ClockEpoch, Served};

/// Promotes another server: another incarnation, and another clock epoch.
fn promote(store: &ModelStore, name: &str) {
    let mut clock = store.now();
    clock.epoch = ClockEpoch(name.into());
    store.set_clock(clock);
    store.become_another(Server::named(name));
}

fn promoted() -> ModelStore {
    let store = ModelStore::new();
    promote(&store, "other");
    store
}

fn seeking(store: ModelStore, wait: Wait) -> Rig {
    let limits = Limits {
        wait,
        ..Limits::default()
    };
    Rig::of(claim_of("a"), limits, store)
}

/// The actions until nothing is out any more.
fn settled(rig: &mut Rig) -> String {
    let mut all = Vec::new();
    while rig.out.is_some() {
        all.push(words(&rig.answered(), rig.now));
    }
    all.join(" | ")
}

/// The actions at the next wake-up.
fn woken(rig: &mut Rig) -> String {
    let at = rig.machine.wake_at().expect("it wakes");
    let first = words(&rig.wait(at.since(rig.now)), rig.now);
    format!("{first} | {}", settled(rig))
}

/// A store that has changed in between rejects the grant.
#[test]
fn a_grant_carries_the_note_by_which_it_was_judged() {
    let mut rig = seeking(promoted(), Wait::No);
    settled(&mut rig);
    rig.wait(s(60));
    while !matches!(&rig.out, Some(Request::Swap(_))) {
        rig.answered();
    }
    let Some(Request::Swap(grant)) = &rig.out else {
        panic!("{:?}", rig.out);
    };
    assert_eq!(
        grant.note.as_deref(),
        rig.store.contents().incarnation.as_ref()
    );
    assert!(grant.note.is_some());
}

#[test]
fn a_new_store_grants_at_once_and_without_a_note() {
    let mut rig = Rig::looking();
    assert_eq!(words(&rig.answered(), rig.now), "grant");
}

#[test]
fn another_incarnation_is_noted_and_observed_for_takeover_after() {
    let mut rig = seeking(promoted(), Wait::No);
    assert_eq!(settled(&mut rig), "note other | read | say ObservingStore");
    let begun = rig.now;
    while rig.now.plus(s(10)) < begun.plus(s(60)) {
        assert_eq!(woken(&mut rig), "read | ");
    }
    // It records what it has verified, then it is granted the token.
    let last = woken(&mut rig);
    assert!(
        last.starts_with("read | note other | read | grant"),
        "{last}"
    );
    assert_eq!(rig.now, begun.plus(s(60)));
    let note = rig.store.contents().incarnation.unwrap();
    assert_eq!(note.served, Served::For(s(60)));
}

#[test]
fn a_further_promotion_restarts_the_observation_with_a_note() {
    let mut rig = seeking(promoted(), Wait::No);
    settled(&mut rig);
    rig.wait(s(10));
    settled(&mut rig);
    promote(&rig.store, "third");
    assert_eq!(
        woken(&mut rig),
        "read | note third | read | say ObservingStore"
    );
}

#[test]
fn a_restart_that_makes_the_observation_longer_is_announced() {
    let store = ModelStore::new();
    let mut server = Server::named("other");
    server.durable = false;
    promote(&store, "other");
    store.become_another(server);
    let mut rig = seeking(store, Wait::No);
    assert_eq!(settled(&mut rig), "note other | read | say ObservingStore");
    rig.wait(s(10));
    assert_eq!(settled(&mut rig), "", "it goes on as announced");
    let mut clock = rig.store.now();
    clock.epoch = ClockEpoch("other, started again".into());
    rig.store.set_clock(clock);
    assert_eq!(
        woken(&mut rig),
        "read | note other | read | say ObservingStore"
    );
}

#[test]
fn a_note_of_another_session_is_read() {
    let mut rig = seeking(promoted(), Wait::No);
    rig.answered();
    let event = {
        let mut other = seeking(rig.store.clone(), Wait::No);
        settled(&mut other);
        rig.arrives()
    };
    assert_eq!(words(&rig.tell(event), rig.now), "read");
    assert_eq!(settled(&mut rig), "say ObservingStore");
}

#[test]
fn without_a_written_note_nothing_is_granted() {
    let mut rig = seeking(promoted(), Wait::Forever);
    rig.answered();
    assert_eq!(words(&rig.fails(), rig.now), "say StoreAway");
    assert_eq!(
        woken(&mut rig),
        "read | note other | read | say ObservingStore, join | "
    );
}

#[test]
fn an_observation_is_said_again_once_the_store_answers_again() {
    let mut rig = seeking(promoted(), Wait::Forever);
    settled(&mut rig);
    rig.wait(s(10));
    assert_eq!(words(&rig.fails(), rig.now), "say StoreAway");
    rig.wait(s(1));
    let said = words(&rig.answered(), rig.now);
    assert!(said.starts_with("say ObservingStore"), "{said}");
}

#[test]
fn a_wiped_store_is_observed() {
    let store = ModelStore::new();
    store.restore(ModelData::default());
    let mut rig = seeking(store, Wait::No);
    assert_eq!(settled(&mut rig), "note model | read | say ObservingStore");
}

#[test]
fn a_session_that_gives_up_meanwhile_is_refused_by_clause_0() {
    let mut rig = seeking(promoted(), Wait::For(s(110)));
    settled(&mut rig);
    while rig.machine.ending().is_none() {
        let now = rig.now;
        assert!(now < Moment(s(120)));
        woken(&mut rig);
    }
    assert_eq!(short(rig.ending()), "refused by clause 0");
}

#[test]
fn a_durable_restart_costs_a_note_and_no_wait() {
    let store = ModelStore::new();
    let mut clock = store.now();
    clock.epoch = ClockEpoch("restarted".into());
    store.set_clock(clock);
    let mut rig = seeking(store, Wait::No);
    assert_eq!(words(&rig.answered(), rig.now), "note model");
    assert_eq!(words(&rig.answered(), rig.now), "read");
    assert_eq!(words(&rig.answered(), rig.now), "grant");
}
