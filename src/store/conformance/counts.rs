//! What is pruned, and what is counted whatever is pruned.

use super::*;

pub(super) fn what_is_too_old_is_pruned_and_the_newest_run_stays(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let group = GroupName::new("g").unwrap();
    let day = Duration::from_secs(86_400);
    for n in 0..6 {
        let key = format!("k{n}");
        let held = grant_with_key(store, "a", &key, 10 + n);
        // The first is never closed.
        if n != 0 {
            store.record(&done_with_key(&held, &key)).unwrap();
        }
        grant_to(store, &claim("other", "a", &format!("o{n}")), 30 + n);
        fixture.advance(day);
    }
    let held = row(store, "g");
    let (act, _) = act_on(&held, &Act::Revoke, &fixture.now(), 50);
    done(store.swap(&act).unwrap());
    let left = |store: &mut dyn Store| {
        let runs = runs(store).into_iter().filter(|run| run.group == group);
        let names = runs.map(|run| run.session.to_string());
        names.collect::<Vec<_>>().join(" ")
    };
    let retention = |history: Duration, once: Duration| Retention { history, once };
    store.prune(&group, retention(day * 9, day * 9)).unwrap();
    assert_eq!(left(store), "s15 s14 s13 s12 s11 s10");
    store.prune(&group, retention(day * 3, day * 9)).unwrap();
    // The one that was taken over is unknown: over, too.
    assert_eq!(left(store), "s15 s14 s13");
    assert_eq!(
        store.once_marks(None).unwrap().len(),
        5,
        "keys outlive history"
    );
    assert_eq!(store.acts(&ActQuery::default()).unwrap().len(), 1);
    fixture.advance(day * 30);
    store.prune(&group, retention(day, day * 33)).unwrap();
    assert_eq!(
        left(store),
        "s15",
        "whom the token was taken from is found by it"
    );
    assert_eq!(store.acts(&ActQuery::default()).unwrap(), []);
    assert_eq!(store.once_marks(None).unwrap().len(), 3);
    let others = runs(store).into_iter().filter(|run| run.group != group);
    assert_eq!(others.count(), 6, "another group's are its own");
}

/// What is listed as counted, by outcome, without the zeros.
pub(super) fn counted(store: &mut dyn Store) -> Vec<(&'static str, i64)> {
    let listing = store.list().unwrap();
    let row = listing.rows.first().unwrap();
    let running = matches!(row.state, State::Running { .. });
    let all = row.counters.by_outcome(running).into_iter();
    all.filter(|(_, count)| *count != 0).collect()
}

pub(super) fn each_end_is_counted_once_and_pruning_takes_no_count_back(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let day = Duration::from_secs(86_400);
    // No two as often, so that one counted as another is seen.
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
        fixture.advance(day);
    }
    let mut vanished = grant_to(store, &claim("g", "a", "s20"), 20);
    for n in 21..28 {
        vanished = grant_to(store, &claim("g", "a", &format!("s{n}")), n);
    }
    let held = grant_to(store, &claim("g", "b", "s28"), 28);
    let (act, _) = act_on(&held, &Act::Release { force: true }, &fixture.now(), 29);
    done(store.swap(&act).unwrap());
    // What sessions say later is history's.
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
        ("signalled", 4),
        ("timed_out", 5),
        ("lost", 6),
        ("unknown", 8),
        ("not_started", 7),
        ("forced", 1),
    ];
    assert_eq!(counted(store), expected);
    fixture.advance(day * 30);
    let retention = Retention {
        history: day,
        once: day,
    };
    store.prune(&held.group, retention).unwrap();
    assert_eq!(runs(store).len(), 1, "all else is pruned");
    assert_eq!(counted(store), expected);
    assert_eq!(row(store, "g").counters.runs, 37);
}
