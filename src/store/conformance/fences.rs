//! Raised fences, and the marks of resources.

use super::*;

pub(super) fn a_raised_fence_is_recorded_and_the_next_grant_is_higher(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let held = grant_to(store, &claim("g", "a", "s1"), 1);
    let run = run_of(&held).ended(SUCCESS);
    let end = release(&held, run, version(2), ten_seconds_from(fixture));
    done(store.swap(&end).unwrap());
    let mut last = held.fence;
    let far = Fence(held.fence.0 + 1_000_000_000);
    for (n, to) in [(3, None), (4, Some(far))] {
        let before = row(store, "g");
        let (swap, record) = act_on(&before, &Act::Raise(to), &fixture.now(), n);
        done(store.swap(&swap).unwrap());
        let raised = row(store, "g");
        assert!(raised.fence > last, "{raised:?}");
        assert_eq!(raised.fence, record.fence);
        let expected = Row {
            fence: raised.fence,
            version: version(n),
            ..before
        };
        assert_eq!(raised, expected, "nothing else is changed");
        last = raised.fence;
    }
    assert_eq!(last, far);
    let recorded = store.acts(&ActQuery::default()).unwrap();
    let fences: Vec<_> = recorded.iter().map(|act| act.fence).collect();
    assert!(fences.contains(&far), "{fences:?}");
    assert_eq!(fences.len(), 2);
    let next = grant_to(store, &claim("g", "a", "s2"), 5);
    assert!(next.fence > far);
}

pub(super) fn resource(name: &str) -> ResourceName {
    ResourceName::new(name).unwrap()
}

pub(super) fn a_mark_never_falls_and_each_resource_has_its_own(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let (one, two) = (resource("s3://b/o'neil %"), resource("two"));
    for (n, expected) in [
        (5, Advanced::Stored),
        (5, Advanced::Stored),
        (4, Advanced::Behind(Fence(5))),
        (Fence::MAX, Advanced::Stored),
        (6, Advanced::Behind(Fence(Fence::MAX))),
    ] {
        assert_eq!(store.advance(&one, Fence(n)).unwrap(), expected, "{n}");
    }
    let mut other = fixture.store();
    let behind = Advanced::Behind(Fence(Fence::MAX));
    assert_eq!(other.advance(&one, Fence(7)).unwrap(), behind);
    assert_eq!(other.advance(&two, Fence(1)).unwrap(), Advanced::Stored);
}

pub(super) fn of_marks_set_at_once_the_highest_stays(fixture: &dyn Fixture) {
    let barrier = Arc::new(Barrier::new(8));
    std::thread::scope(|scope| {
        for n in 1..=8 {
            let barrier = Arc::clone(&barrier);
            scope.spawn(move || {
                let mut store = fixture.store();
                barrier.wait();
                for step in 0..5 {
                    let fence = Fence(step * 8 + n);
                    store.advance(&resource("r"), fence).unwrap();
                }
            });
        }
    });
    let answer = fixture.store().advance(&resource("r"), Fence(1)).unwrap();
    assert_eq!(answer, Advanced::Behind(Fence(40)));
}
