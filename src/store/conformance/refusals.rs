//! Refused runs, and the output of runs.

use super::*;
use crate::store::RefusalQuery;
use crate::token::record::fixture::output;
use crate::token::refusal::fixture::refused;
use crate::token::{OutputRecord, RefusalRecord, WallTime};

fn refusals(store: &mut dyn Store) -> Vec<RefusalRecord> {
    store.refusals(&RefusalQuery::default()).unwrap()
}

pub(super) fn a_refusal_is_recorded_with_the_stores_time(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    assert_eq!(refusals(store), []);
    let refusal = refused("g", "a", "paused");
    store.refuse(&refusal).unwrap();
    let now = fixture.now().stamp.wall;
    let recorded = RefusalRecord {
        first_at: now,
        last_at: now,
        ..refusal
    };
    assert_eq!(refusals(store), [recorded]);
}

pub(super) fn refusals_that_are_close_are_one_record(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let refusal = refused("g", "a", "held");
    let first_at = fixture.now().stamp.wall;
    let expect = |store: &mut dyn Store, wanted: &[(i64, i64, u64)]| {
        let times = |it: &RefusalRecord| {
            let minutes = |at: WallTime| (at.0 - first_at.0) / 60_000;
            (minutes(it.first_at), minutes(it.last_at), it.count)
        };
        let found: Vec<_> = refusals(store).iter().map(times).collect();
        assert_eq!(found, wanted);
    };
    store.refuse(&refusal).unwrap();
    fixture.advance(Duration::from_secs(59));
    store.refuse(&refusal).unwrap();
    expect(store, &[(0, 0, 1)]);
    fixture.advance(Duration::from_secs(1));
    let later = RefusalRecord {
        fence: Fence(8),
        host: Some("another".into()),
        ..refusal.clone()
    };
    store.refuse(&later).unwrap();
    expect(store, &[(0, 1, 2)]);
    let found = refusals(store).remove(0);
    assert_eq!(
        (found.fence, found.host.as_deref()),
        (Fence(8), Some("another"))
    );
    fixture.advance(Duration::from_mins(59));
    store.refuse(&refusal).unwrap();
    expect(store, &[(0, 60, 3)]);
    fixture.advance(Duration::from_mins(60));
    store.refuse(&refusal).unwrap();
    expect(store, &[(120, 120, 1), (0, 60, 3)]);
    store.refuse(&refused("g", "b", "held")).unwrap();
    store.refuse(&refused("g", "b", "paused")).unwrap();
    store.refuse(&refused("a", "b", "held")).unwrap();
    let totals = store.refusal_totals().unwrap();
    let totals = totals
        .iter()
        .map(|it| format!("{} {} {}", it.group, it.reason, it.total));
    let totals: Vec<_> = totals.collect();
    assert_eq!(totals, ["a held 1", "g held 5", "g paused 1"]);
}

/// A clock that was set back: a refusal of later says nothing of this one.
pub(super) fn a_refusal_before_the_last_one_is_recorded(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let refusal = refused("g", "a", "held");
    store.refuse(&refusal).unwrap();
    let later = fixture.now();
    let wall = later.wall_before(Duration::from_mins(90));
    fixture.set_clock(StoreTime {
        stamp: Stamp {
            wall,
            ..later.stamp
        },
        ..later.clone()
    });
    store.refuse(&refusal).unwrap();
    let found = refusals(store).into_iter();
    let mut found: Vec<_> = found
        .map(|it| (it.first_at, it.last_at, it.count))
        .collect();
    found.sort();
    let at = later.stamp.wall;
    assert_eq!(found, [(wall, wall, 1), (at, at, 1)]);
}

pub(super) fn refusals_of_other_clients_and_reasons_are_other_records(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    for (group, client, reason) in [
        ("g", "a", "held"),
        ("g", "b", "held"),
        ("g", "a", "paused"),
        ("h", "a", "held"),
    ] {
        store.refuse(&refused(group, client, reason)).unwrap();
        fixture.advance(Duration::from_secs(10));
    }
    let since = fixture.now().wall_before(Duration::from_secs(25));
    let mut found = |query: RefusalQuery| {
        let found = store.refusals(&query).unwrap();
        let words = found
            .iter()
            .map(|it| format!("{}{}{}", it.group, it.client, &it.reason[..1]));
        words.collect::<Vec<_>>().join(" ")
    };
    let all = RefusalQuery::default();
    assert_eq!(found(all.clone()), "hah gap gbh gah");
    let of_group = RefusalQuery {
        group: Some(GroupName::new("g").unwrap()),
        ..all.clone()
    };
    assert_eq!(found(of_group), "gap gbh gah");
    let newest = RefusalQuery {
        limit: Some(1),
        ..all.clone()
    };
    assert_eq!(found(newest), "hah");
    let late = RefusalQuery {
        since: Some(since),
        ..all.clone()
    };
    assert_eq!(found(late), "hah gap");
    let early = RefusalQuery {
        until: Some(since),
        ..all
    };
    assert_eq!(found(early), "gbh gah");
}

pub(super) fn refusals_with_other_names_are_other_records(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let first = refused("g", "a", "paused");
    let upgrade = Some("kernel upgrade".to_owned());
    let second = RefusalRecord {
        paused_reason: upgrade.clone(),
        ..first.clone()
    };
    store.refuse(&first).unwrap();
    fixture.advance(Duration::from_secs(1));
    store.refuse(&second.with_cause()).unwrap();
    let reasons: Vec<_> = refusals(store)
        .into_iter()
        .map(|it| it.paused_reason)
        .collect();
    assert_eq!(reasons, [upgrade, first.paused_reason]);
}

pub(super) fn an_output_is_kept_with_its_run(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let group = GroupName::new("g").unwrap();
    assert_eq!(store.output(&group, None).unwrap(), None);
    let long = "QUJD".repeat(30_000);
    let outputs = [
        output("g", 2, &long),
        output("g", 1, ""),
        output("h", 9, "eA=="),
    ];
    for output in &outputs {
        store.keep_output(output).unwrap();
    }
    let written_at = fixture.now().stamp.wall;
    let kept = |output: &OutputRecord| {
        Some(OutputRecord {
            written_at,
            ..output.clone()
        })
    };
    assert_eq!(store.output(&group, None).unwrap(), kept(&outputs[0]));
    let first = store.output(&group, Some(Fence(1))).unwrap();
    assert_eq!(first, kept(&outputs[1]));
    assert_eq!(store.output(&group, Some(Fence(9))).unwrap(), None);
    let again = output("g", 2, "eA==");
    store.keep_output(&again).unwrap();
    assert_eq!(store.output(&group, Some(Fence(2))).unwrap(), kept(&again));
}
