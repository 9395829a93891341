//! Pruning, and counters that pruning does not change.

use super::*;
use crate::store::{OUTPUT_BATCH, RefusalQuery};
use crate::token::record::fixture::output;
use crate::token::refusal::fixture::refused;
use crate::token::{OutputLimits, RefusalRecord};

const DAY: Duration = Duration::from_hours(24);

/// A retention of ten days.
const TEN_DAYS: Retention = Retention {
    history: DAY.saturating_mul(10),
    once: DAY.saturating_mul(10),
    outputs: OutputLimits {
        retain: DAY.saturating_mul(10),
        count: 100,
    },
};

/// Lets days pass, each with a pruning at its end: a store without prunings is not observed to
/// live.
fn days_pass(store: &mut dyn Store, fixture: &dyn Fixture, count: usize, retention: Retention) {
    let group = GroupName::new("g").unwrap();
    for _ in 0..count {
        fixture.advance(DAY);
        store.prune(&group, retention).unwrap();
    }
}

pub(super) fn what_is_too_old_is_pruned_and_the_newest_run_stays(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let group = GroupName::new("g").unwrap();
    let retention = |history: Duration, once: Duration| Retention {
        history,
        once,
        outputs: OutputLimits {
            retain: history,
            count: 100,
        },
    };
    let all = retention(DAY * 9, DAY * 9);
    for n in 0..6 {
        let key = format!("k{n}");
        let held = grant_with_key(store, "a", &key, 10 + n);
        // The first run's record is never written.
        if n != 0 {
            store.record(&done_with_key(&held, &key)).unwrap();
        }
        grant_to(store, &claim("other", "a", &format!("o{n}")), 30 + n);
        store.prune(&group, all).unwrap();
        fixture.advance(DAY);
    }
    let held = row(store, "g");
    let (act, _) = act_on(&held, &Act::Revoke, &fixture.now(), 50);
    done(store.swap(&act).unwrap());
    for group in ["g", "other"] {
        let refusal = RefusalRecord {
            fence: held.fence,
            ..refused(group, "b", "held")
        };
        store.refuse(&refusal).unwrap();
        store
            .keep_output(&output(group, held.fence.0, "eA=="))
            .unwrap();
    }
    let extras = |store: &mut dyn Store, group: &str| {
        let group = GroupName::new(group).unwrap();
        let of_group = RefusalQuery {
            group: Some(group.clone()),
            ..RefusalQuery::default()
        };
        let refusals = store.refusals(&of_group).unwrap().len();
        (refusals, store.output(&group, None).unwrap().is_some())
    };
    let left = |store: &mut dyn Store| {
        let runs = runs(store).into_iter().filter(|run| run.group == group);
        let names = runs.map(|run| run.session.to_string());
        names.collect::<Vec<_>>().join(" ")
    };
    store.prune(&group, all).unwrap();
    assert_eq!(left(store), "s15 s14 s13 s12 s11 s10");
    store.prune(&group, retention(DAY * 3, DAY * 9)).unwrap();
    // The run that was taken over is unknown, so it is over too.
    assert_eq!(left(store), "s15 s14 s13");
    assert_eq!(
        store.once_marks(None).unwrap().len(),
        5,
        "keys outlive history"
    );
    assert_eq!(store.acts(&ActQuery::default()).unwrap().len(), 1);
    assert_eq!(extras(store, "g"), (1, true));
    days_pass(store, fixture, 11, retention(DAY, DAY * 14));
    assert_eq!(
        left(store),
        "s15",
        "whom the token was taken from is found by it"
    );
    assert_eq!(store.acts(&ActQuery::default()).unwrap(), []);
    assert_eq!(extras(store, "g"), (0, false));
    assert_eq!(store.refusal_totals().unwrap().len(), 2, "no count is lost");
    assert_eq!(extras(store, "other"), (1, true));
    assert_eq!(store.once_marks(None).unwrap().len(), 3);
    let others = runs(store).into_iter().filter(|run| run.group != group);
    assert_eq!(others.count(), 6, "another group's are its own");
}

/// The fences of a group's outputs among these.
fn outputs(store: &mut dyn Store, group: &str, fences: std::ops::Range<i64>) -> Vec<i64> {
    let group = GroupName::new(group).unwrap();
    let has = |fence: &i64| store.output(&group, Some(Fence(*fence))).unwrap().is_some();
    fences.filter(has).collect()
}

pub(super) fn outputs_go_before_history(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let retention = Retention {
        outputs: OutputLimits {
            retain: DAY * 3,
            count: 100,
        },
        ..TEN_DAYS
    };
    let mut fences = Vec::new();
    for n in 0..6 {
        let key = format!("k{n}");
        let held = grant_with_key(store, "a", &key, 400 + n);
        store.record(&done_with_key(&held, &key)).unwrap();
        store
            .keep_output(&output("g", held.fence.0, "eA=="))
            .unwrap();
        fences.push(held.fence.0);
        days_pass(store, fixture, 1, retention);
    }
    let left = |store: &mut dyn Store| {
        let all = fences.iter();
        all.filter(|fence| !outputs(store, "g", **fence..**fence + 1).is_empty())
            .count()
    };
    // Those that have lived for three days and one more are gone.
    assert_eq!((left(store), runs(store).len()), (4, 6));
    days_pass(store, fixture, 4, retention);
    assert_eq!((left(store), runs(store).len()), (0, 6));
}

pub(super) fn of_many_outputs_the_newest_stay(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let held = grant_to(store, &claim("g", "a", "s1"), 1);
    grant_to(store, &claim("other", "a", "s2"), 2);
    let first = held.fence.0;
    for group in ["g", "other"] {
        for fence in first..first + 40 {
            store.keep_output(&output(group, fence, "eA==")).unwrap();
        }
    }
    let prune = |store: &mut dyn Store, count| {
        let outputs = OutputLimits { retain: DAY, count };
        let retention = Retention {
            outputs,
            ..TEN_DAYS
        };
        store.prune(&held.group, retention).unwrap();
    };
    let all = first..first + 40;
    prune(store, 40);
    assert_eq!(outputs(store, "g", all.clone()).len(), 40);
    // Of a batch each time, as outputs may be long.
    prune(store, 3);
    let batch = usize::try_from(OUTPUT_BATCH).unwrap();
    assert_eq!(outputs(store, "g", all.clone()).len(), 40 - batch);
    prune(store, 3);
    let newest: Vec<i64> = (first + 37..first + 40).collect();
    assert_eq!(outputs(store, "g", all.clone()), newest);
    prune(store, 3);
    assert_eq!(outputs(store, "g", all.clone()), newest);
    prune(store, 0);
    assert_eq!(outputs(store, "g", all.clone()).len(), 0);
    assert_eq!(
        outputs(store, "other", all).len(),
        40,
        "another group's are its own"
    );
}

/// A run with a key, an act, and a pruning.
fn night(store: &mut dyn Store, fixture: &dyn Fixture, n: u64) {
    let group = GroupName::new("g").unwrap();
    let key = format!("k{n}");
    let held = grant_with_key(store, "a", &key, 100 + 3 * n);
    store.record(&done_with_key(&held, &key)).unwrap();
    let held = row(store, "g");
    let (act, _) = act_on(&held, &Act::Revoke, &fixture.now(), 101 + 3 * n);
    done(store.swap(&act).unwrap());
    store.prune(&group, TEN_DAYS).unwrap();
}

/// How many runs, acts and keys there are.
fn kept(store: &mut dyn Store) -> [usize; 3] {
    let acts = store.acts(&ActQuery::default()).unwrap();
    let marks = store.once_marks(None).unwrap();
    [runs(store).len(), acts.len(), marks.len()]
}

pub(super) fn a_clock_that_leaps_prunes_nothing_that_has_not_lived_for_so_long(
    fixture: &dyn Fixture,
) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let mut nights = 0..;
    let mut pass = |store: &mut dyn Store, count: usize| {
        for n in nights.by_ref().take(count) {
            fixture.advance(DAY);
            night(store, fixture, n);
        }
    };
    let year = i64::try_from(DAY.as_millis()).unwrap() * 365;
    pass(store, 5);
    // In one boot, and with one in between.
    for (boot, left) in [("memory-0", [6; 3]), ("another boot", [7; 3])] {
        let mut leapt = fixture.now();
        leapt.stamp.wall.0 += 10 * year;
        leapt.epoch = ClockEpoch(boot.into());
        fixture.set_clock(leapt);
        pass(store, 1);
        let group = GroupName::new("g").unwrap();
        for _ in 0..5 {
            store.prune(&group, TEN_DAYS).unwrap();
            assert_eq!(kept(store), left, "{boot}");
        }
    }
    // Records that have lived for so long are pruned, whatever their stamps are.
    pass(store, 30);
    let [runs, acts, keys] = kept(store);
    assert!((10..=14).contains(&runs), "{runs} runs");
    assert_eq!([acts, keys], [runs, runs]);
}

pub(super) fn a_leap_past_both_retentions_prunes_no_key_that_has_lived_for_history_alone(
    fixture: &dyn Fixture,
) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let group = GroupName::new("g").unwrap();
    let retention = Retention {
        history: DAY,
        once: DAY * 100,
        outputs: OutputLimits {
            retain: DAY,
            count: 100,
        },
    };
    for n in 0..3 {
        let key = format!("k{n}");
        let held = grant_with_key(store, "a", &key, 200 + n);
        store.record(&done_with_key(&held, &key)).unwrap();
        store.prune(&group, retention).unwrap();
        fixture.advance(DAY);
    }
    let mut leapt = fixture.now();
    leapt.stamp.wall.0 += 2 * 365 * i64::try_from(DAY.as_millis()).unwrap();
    leapt.epoch = ClockEpoch("another boot".into());
    fixture.set_clock(leapt);
    days_pass(store, fixture, 5, retention);
    let [runs, _, keys] = kept(store);
    assert_eq!([runs, keys], [1, 3], "history goes, and no key");
}

pub(super) fn keys_that_are_kept_for_less_than_history_go_first(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let retention = Retention {
        history: DAY * 100,
        once: DAY * 3,
        outputs: OutputLimits {
            retain: DAY * 100,
            count: 100,
        },
    };
    for n in 0..3 {
        let key = format!("k{n}");
        let held = grant_with_key(store, "a", &key, 300 + n);
        store.record(&done_with_key(&held, &key)).unwrap();
        days_pass(store, fixture, 1, retention);
    }
    days_pass(store, fixture, 9, retention);
    let [runs, _, keys] = kept(store);
    assert_eq!([runs, keys], [3, 0]);
}

pub(super) fn a_host_that_restarts_each_day_prunes_too(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    for n in 0..30 {
        fixture.advance(DAY);
        let mut booted = fixture.now();
        booted.epoch = ClockEpoch(format!("boot {n}"));
        booted.stamp.tick_ms = 60_000;
        fixture.set_clock(booted);
        night(store, fixture, n);
    }
    let [runs, acts, keys] = kept(store);
    assert!((10..=14).contains(&runs), "{runs} runs");
    assert_eq!([acts, keys], [runs, runs]);
}

/// The counters by outcome, without zeros.
pub(super) fn counted(store: &mut dyn Store) -> Vec<(&'static str, i64)> {
    let listing = store.list().unwrap();
    let row = listing.rows.first().unwrap();
    let running = matches!(row.state, State::Running { .. });
    let all = row.document.counters.by_outcome(running).into_iter();
    all.filter(|(_, count)| *count != 0).collect()
}

pub(super) fn each_end_is_counted_once_and_pruning_takes_no_count_back(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    // Each outcome has another count, so that a wrong counter is noticed.
    let ends = [
        (Outcome::Succeeded, 2),
        (Outcome::Failed, 3),
        (Outcome::Signalled, 4),
        (Outcome::TimedOut, 5),
        (Outcome::Lost, 6),
        (Outcome::NotStarted, 7),
    ];
    let ends = ends.into_iter();
    let ends = ends.flat_map(|(outcome, times)| std::iter::repeat_n(outcome, times));
    for (n, outcome) in (100..).zip(ends) {
        let held = grant_to(store, &claim("g", "a", &format!("s{n}")), n);
        let end = RunEnd { outcome, ..SUCCESS };
        let limit = ten_seconds_from(fixture);
        let swap = release(&held, run_of(&held).ended(end), version(200 + n), limit);
        done(store.swap(&swap).unwrap());
        fixture.advance(DAY);
    }
    let mut vanished = grant_to(store, &claim("g", "a", "s20"), 20);
    for n in 21..28 {
        vanished = grant_to(store, &claim("g", "a", &format!("s{n}")), n);
    }
    let held = grant_to(store, &claim("g", "b", "s28"), 28);
    let (act, _) = act_on(&held, &Act::Release { force: true }, &fixture.now(), 29);
    done(store.swap(&act).unwrap());
    // Later records by sessions change history alone.
    for run in [&vanished, &held] {
        store.record(&run_of(run).ended(SUCCESS)).unwrap();
    }
    let (act, _) = act_on(
        &row(store, "g"),
        &Act::Release { force: true },
        &fixture.now(),
        30,
    );
    done(store.swap(&act).unwrap());
    grant_to(store, &claim("g", "b", "s31"), 31);
    let expected = [
        ("succeeded", 2),
        ("failed", 3),
        ("killed", 4),
        ("timed_out", 5),
        ("lost", 6),
        ("unknown", 8),
        ("not_started", 7),
        ("forced", 1),
    ];
    assert_eq!(counted(store), expected);
    let retention = Retention {
        history: DAY,
        once: DAY,
        outputs: OutputLimits {
            retain: DAY,
            count: 100,
        },
    };
    days_pass(store, fixture, 30, retention);
    let left: Vec<_> = runs(store).iter().map(|run| run.outcome).collect();
    // The present run, the newest finished one, and the newest success.
    assert_eq!(left.len(), 2, "all else is pruned: {left:?}");
    assert_eq!(counted(store), expected);
    assert_eq!(row(store, "g").document.counters.runs, 37);
}
