//! The note of the store's incarnation.

use super::acts::actor;
use super::*;
use crate::token::operator::Judgement;
use crate::token::{Doubt, IncarnationNote, Memory, NoteSwap, Served, Waiter};

fn memory(store: &mut dyn Store) -> (Memory, StoreTime) {
    let reading = store.read(&GroupName::new("unseen").unwrap()).unwrap();
    (reading.memory, reading.now)
}

/// Writes the next note, if there is one to write.
fn note(store: &mut dyn Store, n: u64) {
    let (memory, now) = memory(store);
    if let Some(note) = memory.next_note(&now, || version(n)) {
        let swap = memory.swap(note, &now, Duration::from_secs(10));
        done(store.note(&swap).unwrap());
    }
}

/// A swap of the present note for one with another version.
fn next(memory: &Memory, now: &StoreTime, n: u64) -> NoteSwap {
    let incarnation = memory.incarnation.clone().unwrap();
    let note = memory.judged(&incarnation, false, now, version(n));
    memory.swap(note, now, Duration::from_secs(10))
}

pub(super) fn a_new_store_is_trusted_and_says_which_it_is(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    note(store, 1);
    let (memory, now) = memory(store);
    assert!(memory.incarnation.is_some());
    assert_eq!(memory.next_note(&now, || version(2)), None);
    let (served, why) = memory.observed(&now);
    assert_eq!((served, why), fixture.when_new());
    let again = self::memory(fixture.store().as_mut()).0;
    assert_eq!(again, memory, "as another handle sees it");
}

pub(super) fn a_note_comes_with_the_token_as_it_was_written(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    note(store, 1);
    let (before, now) = memory(store);
    let incarnation = before.incarnation.clone().unwrap();
    let judged = before.judged(&incarnation, false, &now, version(2));
    let written = IncarnationNote {
        first_seen: fixture.as_kept(judged.first_seen),
        served: Served::For(Duration::from_millis(1_234)),
        ..judged
    };
    let swap = before.swap(written.clone(), &now, Duration::from_secs(10));
    done(store.note(&swap).unwrap());
    let held = grant_to(store, &claim("g", "a", "s1"), 3);
    let reading = store.read(&held.group).unwrap();
    assert_eq!(reading.memory.note, Some(written));
    assert_eq!(reading.memory.incarnation, before.incarnation);
    assert_eq!(reading.row, Some(held));
}

pub(super) fn of_two_notes_at_once_one_is_written(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    note(store, 1);
    let (read, now) = memory(store);
    done(store.note(&next(&read, &now, 2)).unwrap());
    let late = next(&read, &now, 3);
    assert_eq!(store.note(&late).unwrap(), Swapped::Conflict);
    let first = NoteSwap { from: None, ..late };
    assert_eq!(store.note(&first).unwrap(), Swapped::Conflict);
    assert_eq!(memory(store).0.note.unwrap().version, version(2));
}

pub(super) fn a_note_expires_and_with_the_epoch_too(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    note(store, 1);
    let (read, now) = memory(store);
    let swap = next(&read, &now, 2);
    fixture.advance(Duration::from_millis(10_001));
    assert_eq!(store.note(&swap).unwrap(), Swapped::Expired(fixture.now()));
    let (read, now) = memory(store);
    let swap = next(&read, &now, 3);
    fixture.set_clock(StoreTime {
        epoch: ClockEpoch("another-clock".into()),
        ..now
    });
    assert_eq!(store.note(&swap).unwrap(), Swapped::Expired(fixture.now()));
}

pub(super) fn another_epoch_asks_for_another_note(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    note(store, 1);
    let now = fixture.now();
    fixture.set_clock(StoreTime {
        epoch: ClockEpoch("another-clock".into()),
        ..now
    });
    let (read, now) = memory(store);
    let next = read.next_note(&now, || version(2)).unwrap();
    assert_eq!(Some(&next.incarnation), read.incarnation.as_ref());
    note(store, 2);
    let (read, now) = memory(store);
    assert_eq!(read.next_note(&now, || version(3)), None);
}

pub(super) fn the_note_is_no_group(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    note(store, 1);
    assert_eq!(store.list().unwrap().rows, []);
    assert_eq!(store.list().unwrap().unreadable, []);
    grant_to(store, &claim("g", "a", "s1"), 2);
    assert_eq!(store.list().unwrap().rows.len(), 1);
    let (read, now) = memory(store);
    done(store.note(&next(&read, &now, 3)).unwrap());
    assert_eq!(row(store, "g").version, version(2));
}

pub(super) fn a_judgement_is_recorded_with_its_note(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    note(store, 1);
    let (read, now) = memory(store);
    let mut swap = next(&read, &now, 2);
    swap.act = Judgement::Distrust.record(&swap.to, actor()).map(Box::new);
    let mut late = swap.clone();
    late.to.version = version(3);
    done(store.note(&swap).unwrap());
    assert_eq!(store.note(&late).unwrap(), Swapped::Conflict);
    let acts = store.acts(&ActQuery::default()).unwrap();
    let [act] = &acts[..] else {
        panic!("{acts:?}");
    };
    let at = fixture.now().stamp.wall;
    assert_eq!(
        *act,
        ActRecord {
            at,
            ..*swap.act.unwrap()
        }
    );
    assert_eq!(memory(store).0.observed(&now).1, Doubt::Distrusted);
}

/// A grant that is delayed until another note is there: it was judged by a store that this one may not be.
pub(super) fn a_grant_that_was_judged_by_another_note_conflicts(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    note(store, 1);
    let group = GroupName::new("g").unwrap();
    let (first, second) = (claim("g", "a", "s1"), claim("g", "b", "s2"));
    // The first row of a group, over a free token, over a run, and out of the queue.
    for (n, claim) in [&first, &second, &first, &second].into_iter().enumerate() {
        let n = 10 * (1 + u64::try_from(n).unwrap());
        if n == 20 {
            let held = row(store, "g");
            let end = run_of(&held).ended(SUCCESS);
            let until = fixture.now().until(Duration::from_secs(10));
            done(store.swap(&release(&held, end, version(n), until)).unwrap());
        }
        if n == 40 {
            let until = fixture.now().until(Duration::from_secs(10));
            store
                .join(&group, &Waiter::of(&second), &until, None)
                .unwrap();
        }
        let reading = store.read(&group).unwrap();
        let kind = GrantKind::Bind;
        let mut swap = grant(
            claim,
            kind,
            reading.row.as_ref(),
            &reading.now,
            version(n + 1),
        );
        swap.note = reading.memory.note.clone().map(Box::new);
        assert!(swap.note.is_some());
        swap.leaves = (n == 40).then(|| second.session.clone());
        let judged = next(&reading.memory, &reading.now, n + 2);
        done(store.note(&judged).unwrap());
        let before = everything(store);
        assert_eq!(store.swap(&swap).unwrap(), Swapped::Conflict, "{n}");
        assert_eq!(everything(store), before, "{n}");
        swap.note = Some(Box::new(judged.to));
        done(store.swap(&swap).unwrap());
    }
}
