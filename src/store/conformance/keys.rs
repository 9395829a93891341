//! The keys of `--once`.

use super::*;
use crate::token::queue::LIVES;
use crate::token::{SessionId, Waiter};

/// A grant with a key.
pub(super) fn grant_with_key(store: &mut dyn Store, client: &str, key: &str, n: u64) -> Row {
    let mut me = claim("g", client, &format!("s{n}"));
    me.about.once_key = Some(key.into());
    grant_to(store, &me, n)
}

/// The record of the run in a row, with this key and a success.
pub(super) fn done_with_key(row: &Row, key: &str) -> RunRecord {
    RunRecord {
        once_key: Some(key.into()),
        ..run_of(row).ended(SUCCESS)
    }
}

pub(super) fn a_key_is_done_by_the_swap_that_records_success(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let group = GroupName::new("g").unwrap();
    assert_eq!(store.once(&group, "it's \"1\"").unwrap(), None);
    let held = grant_with_key(store, "a", "it's \"1\"", 1);
    fixture.advance(Duration::from_secs(1));
    let limit = ten_seconds_from(fixture);
    let run = done_with_key(&held, "it's \"1\"");
    let swap = release(&held, run, version(2), limit);
    let mut conflicting = swap.clone();
    conflicting.from = Some(version(9));
    assert_eq!(store.swap(&conflicting).unwrap(), Swapped::Conflict);
    assert_eq!(store.once(&group, "it's \"1\"").unwrap(), None);
    let look = |store: &mut dyn Store, group: &GroupName, key| {
        let reading = store.look(group, Some(key)).unwrap();
        let now = reading.now.clone();
        let waiter = Waiter::of(&claim("g", "a", "s9"));
        // A line of two: a look has a row for each of them.
        for session in ["s8", "s9"] {
            let waiter = Waiter {
                session: SessionId::new(session).unwrap(),
                ..waiter.clone()
            };
            let joined = store.join(group, &waiter, &now.until(LIVES), Some(key));
            let joined = joined.unwrap();
            assert_eq!(joined.done, reading.done);
            assert_eq!(joined.row, reading.row);
        }
        assert_eq!(
            store.read(group).unwrap().done,
            None,
            "it was not asked for"
        );
        reading.done.map(|mark| *mark)
    };
    assert_eq!(look(store, &group, "it's \"1\""), None);
    done(store.swap(&swap).unwrap());
    let mark = store.once(&group, "it's \"1\"").unwrap().unwrap();
    assert_eq!(look(store, &group, "it's \"1\""), Some(mark.clone()));
    assert_eq!(look(store, &group, "2"), None);
    assert_eq!(mark.done_at, fixture.now().stamp.wall);
    assert_eq!((mark.fence, mark.client.as_str()), (held.fence, "a"));
    assert_eq!(store.once(&group, "2").unwrap(), None);
    let other = GroupName::new("h").unwrap();
    assert_eq!(look(store, &other, "it's \"1\""), None);
    assert_eq!(store.once(&other, "it's \"1\"").unwrap(), None);
    let of_group = store.once_marks(Some(&group)).unwrap();
    assert_eq!(of_group, store.once_marks(None).unwrap());
    assert_eq!(of_group, [mark]);
    assert_eq!(store.once_marks(Some(&other)).unwrap(), []);
    // A run without a key marks none.
    let held = grant_to(store, &claim("g", "a", "s7"), 7);
    let limit = ten_seconds_from(fixture);
    let swap = release(&held, run_of(&held).ended(SUCCESS), version(8), limit);
    done(store.swap(&swap).unwrap());
    assert_eq!(store.once_marks(None).unwrap().len(), 1);
}

pub(super) fn a_key_is_done_at_most_once_and_by_a_late_record_too(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let group = GroupName::new("g").unwrap();
    let first = done_with_key(&grant_with_key(store, "a", "k", 1), "k");
    let second = done_with_key(&grant_with_key(store, "b", "k", 2), "k");
    assert_eq!(store.record(&first), Ok(Recorded::Written));
    let mark = store.once(&group, "k").unwrap().unwrap();
    assert_eq!(mark.client.as_str(), "a");
    fixture.advance(Duration::from_secs(1));
    assert_eq!(store.record(&second), Ok(Recorded::Written));
    assert_eq!(store.once(&group, "k").unwrap(), Some(mark.clone()));
    // Nor by the swap of a release.
    let held = grant_with_key(store, "c", "k", 8);
    let limit = ten_seconds_from(fixture);
    let swap = release(&held, done_with_key(&held, "k"), version(9), limit);
    done(store.swap(&swap).unwrap());
    assert_eq!(store.once(&group, "k").unwrap(), Some(mark));
    let closed = runs(store)
        .into_iter()
        .filter(|run| run.outcome == Outcome::Succeeded);
    assert_eq!(closed.count(), 3, "each has its own outcome");
    // A record that is written already marks nothing any more.
    let held = grant_with_key(store, "a", "other", 3);
    let third = done_with_key(&held, "other");
    let failed = RunEnd {
        outcome: Outcome::Failed,
        ..SUCCESS
    };
    let failed = third.clone().ended(failed);
    assert_eq!(store.record(&failed), Ok(Recorded::Written));
    assert_eq!(store.record(&third), Ok(Recorded::Already));
    assert_eq!(store.once(&group, "other").unwrap(), None);
    let swap = release(&held, third, version(4), ten_seconds_from(fixture));
    done(store.swap(&swap).unwrap());
    assert_eq!(store.once(&group, "other").unwrap(), None);
}

pub(super) fn keys_come_by_the_time_at_which_they_were_done(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let group = GroupName::new("g").unwrap();
    for (fence, key) in [(1, "b"), (2, "a"), (3, "z")] {
        if key == "z" {
            fixture.advance(Duration::from_secs(1));
        }
        let run = RunRecord {
            once_key: Some(key.into()),
            ..unheld_run(&group, fence)
        };
        assert_eq!(store.record(&run), Ok(Recorded::Written));
    }
    let marks = store.once_marks(Some(&group)).unwrap();
    let keys: Vec<_> = marks.iter().map(|mark| mark.key.as_str()).collect();
    assert_eq!(keys, ["z", "a", "b"]);
}

pub(super) fn a_key_is_forgotten_in_the_swap_of_an_act(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let group = GroupName::new("g").unwrap();
    for (n, key) in [(1, "k"), (2, "l")] {
        let held = grant_with_key(store, "a", key, n);
        store.record(&done_with_key(&held, key)).unwrap();
    }
    let held = row(store, "g");
    let (swap, record) = act_on(&held, &Act::Forget("k".into()), &fixture.now(), 5);
    assert_eq!(record.once_key.as_deref(), Some("k"));
    done(store.swap(&swap).unwrap());
    assert_eq!(store.once(&group, "k").unwrap(), None);
    assert!(store.once(&group, "l").unwrap().is_some());
    assert_eq!(store.acts(&ActQuery::default()).unwrap(), [record]);
    // The key can be done again.
    let held = grant_with_key(store, "b", "k", 6);
    store.record(&done_with_key(&held, "k")).unwrap();
    let mark = store.once(&group, "k").unwrap().unwrap();
    assert_eq!(mark.client.as_str(), "b");
}
