//! The effects of a swap: versions, expiry, stamps, columns.

use super::*;
use crate::token::WallTime;

pub(super) fn an_unknown_group_has_no_row_but_a_time(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let reading = store.read(&GroupName::new("g").unwrap()).unwrap();
    assert_eq!(reading.row, None);
    assert_eq!(reading.now, fixture.now());
    assert_eq!(store.list().unwrap().rows, []);
    assert_eq!(store.list().unwrap().now, fixture.now());
    assert_eq!(runs(store.as_mut()), []);
}

pub(super) fn two_claims_race_one_wins(fixture: &dyn Fixture) {
    const RACERS: usize = 8;
    let start = Barrier::new(RACERS);
    let wins: Vec<bool> = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..RACERS)
            .map(|n| {
                let start = &start;
                scope.spawn(move || {
                    let mut store = fixture.store();
                    let me = claim("g", "client", &format!("s{n}"));
                    let swap = grant(
                        &me,
                        GrantKind::Bind,
                        None,
                        &fixture.now(),
                        version(n as u64),
                    );
                    start.wait();
                    match store.swap(&swap).unwrap() {
                        Swapped::Done(_) => true,
                        Swapped::Conflict => false,
                        Swapped::Expired(_) => panic!("no time has passed"),
                    }
                })
            })
            .collect();
        racers.into_iter().map(|r| r.join().unwrap()).collect()
    });
    assert_eq!(wins.iter().filter(|won| **won).count(), 1);
    let winner = wins.iter().position(|won| *won).unwrap();
    let mut store = fixture.store();
    let session = row(store.as_mut(), "g").session().unwrap().clone();
    assert_eq!(session.as_str(), format!("s{winner}"));
    assert_eq!(runs(store.as_mut()).len(), 1);
}

/// The contents of a store, for comparison.
pub(super) fn everything(store: &mut dyn Store) -> (Vec<Row>, Vec<RunRecord>) {
    (store.list().unwrap().rows, runs(store))
}

pub(super) fn a_conflict_changes_nothing(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let held = grant_to(store.as_mut(), &claim("g", "a", "s1"), 1);
    let before = everything(store.as_mut());
    let mut stale = held.clone();
    stale.version = version(99);
    let mut swap = grant(
        &claim("g", "b", "s2"),
        GrantKind::Takeover,
        Some(&stale),
        &fixture.now(),
        version(2),
    );
    assert_eq!(store.swap(&swap).unwrap(), Swapped::Conflict);
    swap.from = None;
    assert_eq!(store.swap(&swap).unwrap(), Swapped::Conflict);
    assert_eq!(everything(store.as_mut()), before);
}

pub(super) fn a_swap_of_a_row_that_is_not_there_conflicts(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let mut swap = creation(&claim("g", "a", "s1"), &fixture.now(), version(1));
    swap.from = Some(version(7));
    assert_eq!(store.swap(&swap).unwrap(), Swapped::Conflict);
    assert_eq!(everything(store.as_mut()), (vec![], vec![]));
}

pub(super) fn an_expired_swap_changes_nothing_and_is_no_conflict(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let held = grant_to(store.as_mut(), &claim("g", "a", "s1"), 1);
    let before = everything(store.as_mut());
    let beat = heartbeat(&held, version(2), fixture.now().until(Duration::ZERO));
    let end = release(
        &held,
        run_of(&held).ended(SUCCESS),
        version(3),
        fixture.now().until(Duration::ZERO),
    );
    fixture.advance(Duration::from_millis(1));
    for swap in [beat, end] {
        let answer = store.swap(&swap).unwrap();
        assert_eq!(answer, Swapped::Expired(fixture.now()));
    }
    assert_eq!(everything(store.as_mut()), before);
}

pub(super) fn a_swap_happens_until_its_last_millisecond(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let held = grant_to(store.as_mut(), &claim("g", "a", "s1"), 1);
    let beat = heartbeat(&held, version(2), ten_seconds_from(fixture));
    fixture.advance(Duration::from_secs(10));
    assert_eq!(done(store.swap(&beat).unwrap()), fixture.now());
}

pub(super) fn an_expiry_of_another_epoch_has_expired(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let held = grant_to(store.as_mut(), &claim("g", "a", "s1"), 1);
    let beat = heartbeat(&held, version(2), ten_seconds_from(fixture));
    let mut other = fixture.now();
    other.epoch = ClockEpoch("another".into());
    other.stamp.tick_ms = 0;
    fixture.set_clock(other);
    assert_eq!(store.swap(&beat).unwrap(), Swapped::Expired(fixture.now()));
    assert_eq!(row(store.as_mut(), "g"), held);
}

pub(super) fn a_conflict_is_reported_before_an_expiry(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let held = grant_to(store.as_mut(), &claim("g", "a", "s1"), 1);
    let late = heartbeat(&held, version(2), fixture.now().until(Duration::ZERO));
    let beat = heartbeat(&held, version(3), ten_seconds_from(fixture));
    done(store.swap(&beat).unwrap());
    fixture.advance(Duration::from_secs(1));
    assert_eq!(store.swap(&late).unwrap(), Swapped::Conflict);
}

pub(super) fn fence_survives_release(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let mut me = claim("g", "a", "s1");
    me.timing.keep = Duration::ZERO;
    let held = grant_to(store.as_mut(), &me, 1);
    let swap = release(
        &held,
        run_of(&held).ended(SUCCESS),
        version(2),
        ten_seconds_from(fixture),
    );
    done(store.swap(&swap).unwrap());
    let free = row(store.as_mut(), "g");
    assert_eq!(free.state, State::Free);
    assert_eq!(free.fence, held.fence);
    let again = grant_to(store.as_mut(), &claim("g", "b", "s2"), 3);
    assert!(again.fence > held.fence);
}

pub(super) fn heartbeat_of_a_lost_session_changes_nothing(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let lost = grant_to(store.as_mut(), &claim("g", "a", "s1"), 1);
    grant_to(store.as_mut(), &claim("g", "b", "s2"), 2);
    let before = everything(store.as_mut());
    let beat = heartbeat(&lost, version(3), ten_seconds_from(fixture));
    assert_eq!(store.swap(&beat).unwrap(), Swapped::Conflict);
    assert_eq!(everything(store.as_mut()), before);
}

pub(super) fn stamps_are_the_stores_own(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let second = Duration::from_secs(1);

    let swap = creation(&claim("g", "a", "s1"), &fixture.now(), version(1));
    fixture.advance(second);
    let created = done(store.swap(&swap).unwrap());
    let found = row(store, "g");
    assert_eq!(found.created_at(), created.stamp);
    assert_eq!(found.acquired_at(), None);

    let me = claim("g", "a", "s1");
    let swap = grant(
        &me,
        GrantKind::Bind,
        Some(&found),
        &fixture.now(),
        version(2),
    );
    fixture.advance(second);
    let granted = done(store.swap(&swap).unwrap());
    let held = row(store, "g");
    assert_eq!(held.created_at(), created.stamp);
    assert_eq!(held.acquired_at(), Some(granted.stamp));
    assert_eq!(heartbeat_at(&held), granted.stamp);
    assert_eq!(runs(store)[0].started_at, granted.stamp.wall);

    let swap = heartbeat(&held, version(3), ten_seconds_from(fixture));
    fixture.advance(second);
    let beaten = done(store.swap(&swap).unwrap());
    let held = row(store, "g");
    assert_eq!(heartbeat_at(&held), beaten.stamp);
    assert_eq!(held.acquired_at(), Some(granted.stamp));

    let swap = release(
        &held,
        run_of(&held).ended(SUCCESS),
        version(4),
        ten_seconds_from(fixture),
    );
    fixture.advance(second);
    let released = done(store.swap(&swap).unwrap());
    let idle = row(store, "g");
    assert_eq!(idle.released_at(), Some(released.stamp), "{idle:?}");
    assert_eq!(runs(store)[0].ended_at, Some(released.stamp.wall));

    let me = claim("new", "a", "s9");
    let swap = grant(&me, GrantKind::Bind, None, &fixture.now(), version(5));
    fixture.advance(second);
    let at_once = done(store.swap(&swap).unwrap());
    assert_eq!(row(store, "new").created_at(), at_once.stamp);
}

pub(super) fn heartbeat_at(row: &Row) -> Stamp {
    row.heartbeat_at().expect("it runs")
}

pub(super) fn operators_stamp_nothing(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let held = grant_to(store.as_mut(), &claim("g", "a", "s1"), 1);
    fixture.advance(Duration::from_secs(60));
    let mut later = fixture.now();
    later.epoch = ClockEpoch("another".into());
    fixture.set_clock(later.clone());
    let pause = Pause {
        by: "root".into(),
        reason: String::new(),
        until: Some(later.stamp.wall),
        other: Others::new(),
    };
    let act = Act::Pause(pause.clone());
    let limit = Duration::from_secs(1);
    let Effect::Swap { swap, .. } = perform(&act, &held, &later, limit, version(2)) else {
        panic!("a pause is a swap");
    };
    assert_eq!(done(store.swap(&swap).unwrap()), later);
    let mut expected = held;
    expected.version = version(2);
    expected.document.paused = Some(pause);
    assert_eq!(row(store.as_mut(), "g"), expected);
}

pub(super) fn a_stamp_is_kept_to_the_millisecond_in_every_epoch(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let odd = StoreTime {
        epoch: ClockEpoch("a 'clock epoch' of its own, 5 %".into()),
        stamp: Stamp {
            tick_ms: -123_456_789,
            wall: WallTime(1_790_000_000_987),
        },
    };
    fixture.set_clock(odd.clone());
    let held = grant_to(store.as_mut(), &claim("g", "a", "s1"), 1);
    assert_eq!(heartbeat_at(&held), fixture.as_kept(odd.stamp));
    assert_eq!(held.stamped.epoch, odd.epoch);
    assert_eq!(held.document.granted_epoch, Some(odd.epoch));
}

/// Replaces any row with this one, with the store's stamp.
pub(super) fn put(
    store: &mut dyn Store,
    fixture: &dyn Fixture,
    to: &Row,
    ended: Option<RunRecord>,
) {
    let from = store.read(&to.group).unwrap().row.map(|row| row.version);
    if from.is_none() && ended.is_some() {
        // A group's first row follows no run.
        put(store, fixture, to, None);
        return put(store, fixture, to, ended);
    }
    let swap = Swap {
        from,
        to: to.clone(),
        stamp: Some(to.document.stamp_of),
        note: None,
        expiry: fixture.now().until(Duration::ZERO),
        ended: ended.map(Box::new),
        leaves: None,
        act: None,
    };
    done(store.swap(&swap).unwrap());
}

/// A row as the store stamps it now.
pub(super) fn stamped(fixture: &dyn Fixture, mut row: Row) -> Row {
    row.stamped = fixture.now();
    row
}

pub(super) fn every_column_comes_back_as_written(fixture: &dyn Fixture) {
    let store = Mutex::new(fixture.store());
    proptest!(|(written in strategies::rows(), then in strategies::rows())| {
        let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
        let (written, then) = (stamped(fixture, written), stamped(fixture, then));
        // The end of a run, when everything may change.
        let end = |n| Some(unheld_run(&written.group, n));
        put(store.as_mut(), fixture, &written, end(1));
        prop_assert_eq!(&row(store.as_mut(), written.group.as_str()), &written);
        // Nothing of the old row is left in the new one.
        let end = end(2);
        let then = Row { group: written.group, ..then };
        put(store.as_mut(), fixture, &then, end);
        prop_assert_eq!(&row(store.as_mut(), then.group.as_str()), &then);
    });
}
