//! Acts of operators.

use super::*;
use crate::token::WallTime;

pub(super) fn actor() -> Actor {
    Actor {
        by: "root (sudo by o'neil)".into(),
        host: Some("jump-host".into()),
        reason: Some("100 % \"quoted\"".into()),
    }
}

/// An act's swap, with its record.
pub(crate) fn act_on(row: &Row, act: &Act, now: &StoreTime, n: u64) -> (Swap, ActRecord) {
    let limit = Duration::from_secs(10);
    let Effect::Swap { mut swap, .. } = perform(act, row, now, limit, version(n)) else {
        panic!("{act:?} has no effect");
    };
    let record = act.record(row, now, version(n), actor());
    swap.act = Some(Box::new(record.clone()));
    (*swap, record)
}

pub(super) fn an_act_is_recorded_in_the_swap_that_does_it(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    assert_eq!(store.acts(&ActQuery::default()).unwrap(), []);
    let held = grant_to(store, &claim("g", "a", "s1"), 1);
    let pause = Act::Pause(Pause {
        by: "root".into(),
        reason: String::new(),
        until: Some(WallTime(fixture.now().stamp.wall.0 + 1_000)),
        other: Others::new(),
    });
    let (swap, record) = act_on(&held, &pause, &fixture.now(), 2);
    fixture.advance(Duration::from_secs(3));
    let at = done(store.swap(&swap).unwrap());
    assert_eq!(at, fixture.now());
    let at = at.stamp.wall;
    let recorded = ActRecord { at, ..record };
    assert_eq!(store.acts(&ActQuery::default()).unwrap(), [recorded]);
    let paused = row(store, "g");
    assert!(paused.document.paused.is_some());
    assert_eq!(
        paused.document.session_version,
        held.document.session_version
    );
    assert_eq!(
        paused.state, held.state,
        "no operator vouches for a session"
    );
    // A holder reads, adopts the row, and goes on.
    let beat = heartbeat(&paused, version(3), ten_seconds_from(fixture));
    done(store.swap(&beat).unwrap());
    assert_eq!(runs(store).len(), 1);
}

pub(super) fn an_act_that_does_not_happen_is_not_recorded(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let held = grant_to(store, &claim("g", "a", "s1"), 1);
    let (expired, _) = act_on(&held, &Act::Revoke, &fixture.now(), 2);
    let mut conflicting = expired.clone();
    conflicting.from = Some(version(77));
    assert_eq!(store.swap(&conflicting).unwrap(), Swapped::Conflict);
    fixture.advance(Duration::from_secs(11));
    let answer = store.swap(&expired).unwrap();
    assert_eq!(answer, Swapped::Expired(fixture.now()));
    assert_eq!(store.acts(&ActQuery::default()).unwrap(), []);
    assert_eq!(row(store, "g"), held);
}

pub(super) fn acts_are_newest_first_by_group_time_and_limited(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let begun = fixture.now().stamp.wall;
    for (n, group) in ["one", "two", "one"].into_iter().enumerate() {
        let n = n as u64;
        let held = grant_to(store, &claim(group, "a", &format!("s{n}")), 10 + n);
        let client = ClientId::new(&format!("c{n}")).unwrap();
        let (swap, _) = act_on(&held, &Act::Handoff(client), &fixture.now(), 20 + n);
        done(store.swap(&swap).unwrap());
        fixture.advance(Duration::from_secs(1));
    }
    let mut clients = |query: ActQuery| {
        let found = store.acts(&query).unwrap();
        let names = found.into_iter().map(|act| act.client.unwrap().to_string());
        names.collect::<Vec<_>>().join(" ")
    };
    let all = ActQuery::default();
    assert_eq!(clients(all.clone()), "c2 c1 c0");
    let one = ActQuery {
        group: Some(GroupName::new("one").unwrap()),
        ..all.clone()
    };
    assert_eq!(clients(one), "c2 c0");
    let newest = ActQuery {
        limit: Some(1),
        ..all.clone()
    };
    assert_eq!(clients(newest), "c2");
    let late = ActQuery {
        since: Some(WallTime(begun.0 + 1_000)),
        ..all.clone()
    };
    assert_eq!(clients(late), "c2 c1");
    let early = ActQuery {
        until: Some(WallTime(begun.0 + 2_000)),
        ..all
    };
    assert_eq!(clients(early), "c1 c0");
}
