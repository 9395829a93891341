//! The keys of `--once`.

use super::*;

/// A grant with a key.
pub(super) fn grant_with_key(store: &mut dyn Store, client: &str, key: &str, n: u64) -> Row {
    let mut me = claim("g", client, &format!("s{n}"));
    me.about.once_key = Some(key.into());
    grant_to(store, &me, n)
}

pub(super) const DONE: RunEnd = RunEnd {
    marks_once: true,
    ..SUCCESS
};

pub(super) fn a_key_is_done_by_the_swap_that_records_success(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let group = GroupName::new("g").unwrap();
    assert_eq!(store.once(&group, "it's \"1\"").unwrap(), None);
    let held = grant_with_key(store, "a", "it's \"1\"", 1);
    fixture.advance(Duration::from_secs(1));
    let limit = ten_seconds_from(fixture);
    let swap = release(&held, held.run().unwrap(), DONE, version(2), limit);
    let mut conflicting = swap.clone();
    conflicting.from = Some(version(9));
    assert_eq!(store.swap(&conflicting).unwrap(), Swapped::Conflict);
    assert_eq!(store.once(&group, "it's \"1\"").unwrap(), None);
    done(store.swap(&swap).unwrap());
    let mark = store.once(&group, "it's \"1\"").unwrap().unwrap();
    assert_eq!(mark.done_at_ms, fixture.now().stamp.wall_ms);
    assert_eq!((mark.fence, mark.client.as_str()), (held.fence, "a"));
    assert_eq!(store.once(&group, "2").unwrap(), None);
    let other = GroupName::new("h").unwrap();
    assert_eq!(store.once(&other, "it's \"1\"").unwrap(), None);
    let of_group = store.once_marks(Some(&group)).unwrap();
    assert_eq!(of_group, store.once_marks(None).unwrap());
    assert_eq!(of_group, [mark]);
    assert_eq!(store.once_marks(Some(&other)).unwrap(), []);
    // A run without a key marks none.
    let held = grant_to(store, &claim("g", "a", "s7"), 7);
    let limit = ten_seconds_from(fixture);
    let swap = release(&held, held.run().unwrap(), DONE, version(8), limit);
    done(store.swap(&swap).unwrap());
    assert_eq!(store.once_marks(None).unwrap().len(), 1);
}

pub(super) fn a_key_is_done_at_most_once_and_by_a_late_record_too(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let group = GroupName::new("g").unwrap();
    let first = grant_with_key(store, "a", "k", 1).run().unwrap();
    let second = grant_with_key(store, "b", "k", 2).run().unwrap();
    store.record(&group, &first, &DONE).unwrap();
    let mark = store.once(&group, "k").unwrap().unwrap();
    assert_eq!(mark.client.as_str(), "a");
    fixture.advance(Duration::from_secs(1));
    store.record(&group, &second, &DONE).unwrap();
    assert_eq!(store.once(&group, "k").unwrap(), Some(mark));
    let closed = runs(store)
        .into_iter()
        .filter(|run| run.outcome == Outcome::Succeeded);
    assert_eq!(closed.count(), 2, "both are told as they ended");
    // A record that is closed marks nothing any more.
    let third = grant_with_key(store, "a", "other", 3).run().unwrap();
    let failed = RunEnd {
        outcome: Outcome::Failed,
        ..SUCCESS
    };
    store.record(&group, &third, &failed).unwrap();
    store.record(&group, &third, &DONE).unwrap();
    assert_eq!(store.once(&group, "other").unwrap(), None);
}

pub(super) fn a_key_is_forgotten_in_the_swap_of_an_act(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let group = GroupName::new("g").unwrap();
    for (n, key) in [(1, "k"), (2, "l")] {
        let run = grant_with_key(store, "a", key, n).run().unwrap();
        store.record(&group, &run, &DONE).unwrap();
    }
    let held = row(store, "g");
    let (swap, record) = act_on(&held, &Act::Forget("k".into()), &fixture.now(), 5);
    assert_eq!(record.once_key.as_deref(), Some("k"));
    done(store.swap(&swap).unwrap());
    assert_eq!(store.once(&group, "k").unwrap(), None);
    assert!(store.once(&group, "l").unwrap().is_some());
    assert_eq!(store.acts(&ActQuery::default()).unwrap(), [record]);
    // It can be done again.
    let run = grant_with_key(store, "b", "k", 6).run().unwrap();
    store.record(&group, &run, &DONE).unwrap();
    let mark = store.once(&group, "k").unwrap().unwrap();
    assert_eq!(mark.client.as_str(), "b");
}
