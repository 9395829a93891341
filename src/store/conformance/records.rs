//! The records of runs.

use super::*;

pub(super) fn every_column_of_a_record_comes_back_as_written(fixture: &dyn Fixture) {
    let store = Mutex::new(fixture.store());
    let token = grant_to(fixture.store().as_mut(), &claim("g", "a", "s1"), 1);
    let fence = std::cell::Cell::new(0);
    proptest!(|(written in strategies::records())| {
        let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
        fence.set(fence.get() + 1);
        let run = RunRecord {
            fence: Fence(fence.get()),
            ..written
        };
        let to = Row { group: run.group.clone(), ..token.clone() };
        put(store.as_mut(), fixture, &to, Some(run.clone()));
        let run = run.written(&fixture.now());
        let query = RunQuery { group: Some(run.group.clone()), ..RunQuery::default() };
        let found = store.runs(&query).unwrap();
        prop_assert!(found.contains(&run), "{run:?} is not in {found:?}");
    });
}

pub(super) fn a_grant_makes_the_run_that_vanished_unknown(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let first = grant_to(store, &claim("g", "a", "s1"), 1);
    let heard_at = first.stamped.stamp.wall;
    fixture.advance(Duration::from_secs(600));
    let other = grant_to(store, &claim("other", "a", "s1"), 2);
    let second = grant_to(store, &claim("g", "b", "s2"), 3);
    let outcomes: Vec<_> = runs(store)
        .into_iter()
        .map(|run| (run.group.to_string(), run.fence, run.outcome, run.ended_at))
        .collect();
    let second = ("g".into(), second.fence, Outcome::Running, None);
    assert!(outcomes.contains(&second), "{outcomes:?}");
    let vanished = ("g".into(), first.fence, Outcome::Unknown, Some(heard_at));
    assert!(outcomes.contains(&vanished), "{outcomes:?}");
    assert!(
        outcomes.contains(&("other".into(), other.fence, Outcome::Running, None)),
        "another group's record is left alone"
    );
    let of_b = RunQuery {
        client: Some(ClientId::new("b").unwrap()),
        ..RunQuery::default()
    };
    let previous = found(store, &of_b).pop().unwrap().previous_client;
    assert_eq!(previous.unwrap().as_str(), "a");
}

pub(super) fn a_vanished_run_that_was_recorded_stays_as_it_is(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let first = claim("g", "a", "s1");
    let run = run_of(&grant_to(store, &first, 1)).ended(SUCCESS);
    assert_eq!(store.record(&run), Ok(Recorded::Written));
    grant_to(store, &claim("g", "b", "s2"), 2);
    let closed = runs(store)
        .into_iter()
        .find(|run| run.session == first.session);
    assert_eq!(closed.unwrap().outcome, Outcome::Succeeded);
}

pub(super) fn a_release_records_the_run_in_the_same_swap(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let held = grant_to(store, &claim("g", "a", "s1"), 1);
    fixture.advance(Duration::from_secs(5));
    let end = RunEnd {
        outcome: Outcome::Signalled,
        exit_code: None,
        signal: Some(9),
        revoked: false,
        reason: None,
    };
    let swap = release(
        &held,
        run_of(&held).ended(end),
        version(2),
        ten_seconds_from(fixture),
    );
    done(store.swap(&swap).unwrap());
    let run = runs(store).pop().unwrap();
    assert_eq!(run.outcome, Outcome::Signalled);
    assert_eq!((run.exit_code, run.signal), (None, Some(9)));
    assert_eq!(run.ended_at, Some(fixture.now().stamp.wall));
    let idle = row(store, "g");
    assert_eq!(idle.session(), None);
    assert_eq!(idle.document.last_outcome, Some(Outcome::Signalled));
    assert_eq!(idle.document.counters.failures, 1);
}

pub(super) fn a_release_that_does_not_happen_records_nothing(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let held = grant_to(store, &claim("g", "a", "s1"), 1);
    let conflicting = release(
        &Row {
            version: version(7),
            ..held.clone()
        },
        run_of(&held).ended(SUCCESS),
        version(2),
        ten_seconds_from(fixture),
    );
    let expired = release(
        &held,
        run_of(&held).ended(SUCCESS),
        version(3),
        fixture.now().until(Duration::ZERO),
    );
    fixture.advance(Duration::from_secs(1));
    assert_eq!(store.swap(&conflicting).unwrap(), Swapped::Conflict);
    assert_eq!(
        store.swap(&expired).unwrap(),
        Swapped::Expired(fixture.now())
    );
    assert_eq!(runs(store)[0].outcome, Outcome::Running);
}

pub(super) fn a_session_closes_its_own_record_late_but_never_twice(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let first = claim("g", "a", "s1");
    let own = run_of(&grant_to(store, &first, 1));
    grant_to(store, &claim("g", "b", "s2"), 2);
    let before = row(store, "g");
    fixture.advance(Duration::from_secs(60));
    let lost = RunEnd {
        outcome: Outcome::Lost,
        exit_code: Some(143),
        signal: None,
        revoked: false,
        reason: None,
    };
    let written = store.record(&own.clone().ended(lost));
    assert_eq!(written, Ok(Recorded::Written));
    let closed_at = fixture.now().stamp.wall;
    fixture.advance(Duration::from_secs(60));
    let own = own.ended(SUCCESS);
    assert_eq!(store.record(&own), Ok(Recorded::Already));
    let run = runs(store)
        .into_iter()
        .find(|run| run.session == first.session);
    let run = run.unwrap();
    assert_eq!((run.outcome, run.exit_code), (Outcome::Lost, Some(143)));
    assert_eq!(run.ended_at, Some(closed_at));
    assert_eq!(row(store, "g"), before, "the token is not touched");
    let others = runs(store)
        .into_iter()
        .find(|run| run.session != first.session);
    assert_eq!(others.unwrap().outcome, Outcome::Running);
}

/// The record that a session writes after a failover that lost its grant, or after its row was
/// deleted.
pub(super) fn a_run_that_history_lost_is_written_whole_with_its_key(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let group = GroupName::new("g").unwrap();
    let run = unheld_run(&group, 1_790_000_000_000);
    assert_eq!(store.record(&run), Ok(Recorded::Written));
    let ended_at = Some(fixture.now().stamp.wall);
    let written = RunRecord { ended_at, ..run };
    let (tokens, found) = everything(store.as_mut());
    assert_eq!((tokens, found), (vec![], vec![written.clone()]));
    let mark = store.once(&group, "key").unwrap();
    assert_eq!(mark, written.once_mark(fixture.now().stamp.wall));
    fixture.advance(Duration::from_secs(1));
    assert_eq!(store.record(&written), Ok(Recorded::Already));
    assert_eq!(everything(store.as_mut()), (vec![], vec![written]));
    assert_eq!(store.once(&group, "key").unwrap(), mark);
}

/// The grant did not happen in the store that gets the release.
pub(super) fn a_release_writes_a_run_that_history_lost(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let held = grant_to(store, &claim("g", "a", "s1"), 1);
    let lost = RunRecord {
        fence: Fence(held.fence.0 + 7),
        ..done_with_key(&held, "key")
    };
    let swap = release(&held, lost.clone(), version(2), ten_seconds_from(fixture));
    let at = done(store.swap(&swap).unwrap()).stamp.wall;
    let written = RunRecord {
        ended_at: Some(at),
        ..lost
    };
    assert!(runs(store).contains(&written), "{:?}", runs(store));
    let mark = store.once(&held.group, "key").unwrap();
    assert_eq!(mark, written.once_mark(at));
}

pub(super) fn history_is_newest_first_by_group_and_limited(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    for n in 0..6 {
        let group = if n % 2 == 0 { "even" } else { "odd" };
        grant_to(store, &claim(group, "a", &format!("s{n}")), n);
        fixture.advance(Duration::from_secs(1));
    }
    let mut sessions = |group: Option<&str>, limit| {
        let group = group.map(|group| GroupName::new(group).unwrap());
        let query = RunQuery {
            group,
            limit,
            ..RunQuery::default()
        };
        let found = found(store, &query);
        let names = found.iter().map(|run| run.session.as_str());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(sessions(None, None), "s5 s4 s3 s2 s1 s0");
    assert_eq!(sessions(None, Some(2)), "s5 s4");
    assert_eq!(sessions(None, Some(0)), "");
    assert_eq!(sessions(Some("even"), None), "s4 s2 s0");
    assert_eq!(sessions(Some("odd"), Some(1)), "s5");
    assert_eq!(sessions(Some("none"), Some(9)), "");
}

/// The two orders differ once the clock was set back.
pub(super) fn finished_runs_come_by_fence_in_a_group_and_by_start_across_groups(
    fixture: &dyn Fixture,
) {
    let mut store = fixture.store();
    for (group, fence, started_at) in [("g", 1, 300), ("g", 3, 100), ("g", 2, 200), ("h", 9, 150)] {
        let run = RunRecord {
            started_at: WallTime(started_at),
            ..unheld_run(&GroupName::new(group).unwrap(), fence)
        };
        assert_eq!(store.record(&run), Ok(Recorded::Written));
    }
    let mut fences = |group: Option<&str>, limit| {
        let query = RunQuery {
            group: group.map(|group| GroupName::new(group).unwrap()),
            limit,
            ..RunQuery::default()
        };
        let runs = store.runs(&query).unwrap().into_iter();
        runs.map(|run| run.fence.0).collect::<Vec<_>>()
    };
    assert_eq!(fences(None, None), [1, 2, 9, 3]);
    assert_eq!(fences(Some("g"), None), [3, 2, 1]);
    assert_eq!(fences(Some("g"), Some(1)), [3]);
}

pub(super) fn history_is_filtered_by_client_outcome_and_time(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let mut third = fixture.now();
    for n in 0..4u64 {
        let client = if n % 2 == 0 { "a" } else { "b" };
        let held = grant_to(store, &claim("g", client, &format!("s{n}")), 10 + n);
        let end = RunEnd {
            outcome: if n == 2 {
                Outcome::Failed
            } else {
                Outcome::Succeeded
            },
            exit_code: Some(0),
            signal: None,
            revoked: false,
            reason: None,
        };
        let limit = ten_seconds_from(fixture);
        let swap = release(&held, run_of(&held).ended(end), version(20 + n), limit);
        done(store.swap(&swap).unwrap());
        fixture.advance(Duration::from_secs(1));
        if n == 1 {
            third = fixture.now();
        }
    }
    let mut sessions = |query: RunQuery| {
        let found = found(store, &query);
        let names = found.iter().map(|run| run.session.as_str());
        names.collect::<Vec<_>>().join(" ")
    };
    let all = RunQuery::default();
    for group in [None, Some(GroupName::new("g").unwrap())] {
        let all = RunQuery {
            group,
            ..all.clone()
        };
        let of_b = RunQuery {
            client: Some(ClientId::new("b").unwrap()),
            ..all.clone()
        };
        assert_eq!(sessions(of_b), "s3 s1");
        let failed = RunQuery {
            outcomes: vec![Outcome::Failed],
            ..all.clone()
        };
        assert_eq!(sessions(failed), "s2");
        let since = RunQuery {
            since: Some(third.stamp.wall),
            ..all.clone()
        };
        assert_eq!(sessions(since), "s3 s2");
        let before = RunQuery {
            until: Some(third.stamp.wall),
            ..all.clone()
        };
        assert_eq!(sessions(before), "s1 s0");
        let either = RunQuery {
            outcomes: vec![Outcome::Lost, Outcome::Failed, Outcome::Succeeded],
            ..all.clone()
        };
        assert_eq!(sessions(either), "s3 s2 s1 s0");
        let both = RunQuery {
            outcomes: vec![Outcome::Succeeded],
            since: Some(third.stamp.wall),
            limit: Some(5),
            ..all
        };
        assert_eq!(sessions(both), "s3");
    }
}

pub(super) fn a_forced_release_makes_the_run_unknown_until_its_session_tells(
    fixture: &dyn Fixture,
) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let held = grant_to(store, &claim("g", "a", "s1"), 1);
    fixture.advance(Duration::from_secs(60));
    let (act, _) = act_on(&held, &Act::Release { force: true }, &fixture.now(), 2);
    done(store.swap(&act).unwrap());
    let [run] = &runs(store)[..] else {
        panic!("one run is expected");
    };
    let heard_at = held.stamped.stamp.wall;
    assert_eq!(run.outcome, Outcome::Unknown);
    assert_eq!(run.ended_at, Some(heard_at));
    let own = run_of(&held).ended(SUCCESS);
    assert_eq!(store.record(&own), Ok(Recorded::Written));
    let ended_at = fixture.now().stamp.wall;
    assert_eq!(
        runs(store),
        [RunRecord {
            ended_at: Some(ended_at),
            ..own.clone()
        }]
    );
    // No record replaces that of the session itself.
    let vanished = RunRecord {
        outcome: Outcome::Unknown,
        ended_at: Some(heard_at),
        ..own.clone()
    };
    assert_eq!(store.record(&vanished), Ok(Recorded::Already));
    assert_eq!(runs(store)[0].outcome, Outcome::Succeeded);
}

/// After a failover to a clock that is more than a minute behind.
pub(super) fn two_runs_may_have_one_fence(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let group = GroupName::new("g").unwrap();
    let one = unheld_run(&group, 7);
    let other = RunRecord {
        session: SessionId::new("another").unwrap(),
        ..one.clone()
    };
    for run in [&one, &other] {
        assert_eq!(store.record(run), Ok(Recorded::Written));
    }
    let found = runs(store);
    assert_eq!(found.len(), 2, "{found:?}");
}
