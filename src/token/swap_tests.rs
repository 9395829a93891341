//! What a swap writes, and what it does not change.

use std::time::Duration;

#[path = "swap_tests/fence.rs"]
mod fence;

use super::*;
use crate::store::model::ModelData;
use crate::token::RunEnd;
use crate::token::WallTime;
use crate::token::record::fixture::run_of;
use crate::token::rule::tests::fixture::*;
use crate::token::{ClientId, Stamp};

fn version(n: i64) -> Version {
    Version::from_stored(n)
}

/// [`THEN`] and `by`, in the clock epoch of a fresh row.
fn at(by: Duration) -> StoreTime {
    seen(created()).after(by).now
}

fn until(by: Duration) -> Until {
    at(by).until(Duration::ZERO)
}

fn grant_to(name: &str, row: &Row, now: &StoreTime) -> Swap {
    grant(&claim(name), GrantKind::Bind, Some(row), now, version(9))
}

fn ended(outcome: Outcome) -> RunEnd {
    RunEnd {
        outcome,
        exit_code: None,
        signal: None,
        revoked: false,
        reason: None,
    }
}

fn released(row: &Row, outcome: Outcome) -> Swap {
    release(
        row,
        run_of(row).ended(ended(outcome)),
        version(9),
        until(s(8)),
    )
}

// A grant.

#[test]
fn a_grant_writes_the_holder_and_the_time() {
    let now = at(s(5));
    let swap = grant_to("a", &free(), &now);
    assert_eq!(swap.from, Some(free().version));
    assert_eq!(swap.version(), version(9));
    assert_eq!(swap.to.document.session_version, Some(version(9)));
    assert_eq!(swap.to.client_bound(), Some(&client("a")));
    assert_eq!(swap.to.session(), Some(&session("a1")));
    assert_eq!(swap.stamp, Some(StampOf::Granted));
    let new = grant(&claim("a"), GrantKind::Bind, None, &now, version(9));
    assert_eq!((new.from, new.stamp), (None, Some(StampOf::Granted)));
}

#[test]
fn a_grant_expires_one_store_timeout_after_the_look() {
    let swap = grant_to("a", &free(), &at(s(5)));
    assert_eq!(swap.expiry, until(s(5) + timing().store_timeout));
}

#[test]
fn a_grant_writes_the_terms_that_contenders_honour() {
    let new_terms = but(claim("b"), |c| {
        c.timing.takeover_after = s(200);
        c.timing.keep = s(0);
        c.timing.head_start = s(1);
        c.timing.at_least = s(3_600);
        c.about.host = Some("host-b".into());
        c.about.pid = Some(7);
        c.about.lock_file = Some("lock".into());
        c.about.label = Some("label".into());
    });
    let swap = grant(
        &new_terms,
        GrantKind::Bind,
        Some(&free()),
        &at(s(0)),
        version(9),
    );
    let to = swap.to;
    assert_eq!(
        (to.document.takeover_after, to.document.keep),
        (s(200), s(0))
    );
    assert_eq!(
        (to.document.head_start, to.document.not_before),
        (s(1), s(3_600))
    );
    assert_eq!(
        (to.document.host.as_deref(), to.document.pid),
        (Some("host-b"), Some(7))
    );
    assert_eq!(to.run().unwrap().lock_file.as_deref(), Some("lock"));
    assert_eq!(to.document.label.as_deref(), Some("label"));
}

#[test]
fn a_grant_clears_requests_and_keeps_the_configuration() {
    let row = expecting(handed_to(running("a"), "b"), "c");
    let row = but(row, |row| row.document.revoke_requested = true);
    let swap = grant_to("b", &row, &at(TAKEOVER_AFTER));
    assert_eq!(swap.to.document.handoff, None);
    assert!(!swap.to.document.revoke_requested);
    assert_eq!(swap.to.expected_client, Some(client("c")));
}

#[test]
fn a_grant_to_another_client_counts_as_a_takeover_and_names_the_previous_one() {
    let counted = |name, row: &Row| {
        let swap = grant_to(name, row, &at(s(0)));
        let previous = run_of(&swap.to).previous_client;
        let previous = previous.as_ref().map(ClientId::to_string);
        (
            swap.to.document.counters.runs,
            swap.to.document.counters.takeovers,
            previous,
        )
    };
    assert_eq!(counted("a", &idle("a")), (1, 0, None));
    assert_eq!(counted("b", &free()), (1, 0, None));
    assert_eq!(counted("b", &idle("a")), (1, 1, Some("a".into())));
    assert_eq!(counted("b", &running("a")), (1, 1, Some("a".into())));
}

#[test]
fn a_grant_over_a_running_session_records_that_it_vanished() {
    let swap = grant_to("b", &running("a"), &at(TAKEOVER_AFTER));
    assert_eq!(swap.to.document.counters.losses, 1);
    assert_eq!(swap.to.document.last_outcome, Some(Outcome::Unknown));
    let heard_at = running("a").stamped.stamp.wall;
    let vanished = swap.ended.unwrap();
    assert_eq!(vanished.session, session("a0"));
    assert_eq!(vanished.fence, running("a").fence);
    let ended = (vanished.outcome, vanished.ended_at);
    assert_eq!(ended, (Outcome::Unknown, Some(heard_at)));
    let run = run_of(&swap.to);
    assert_eq!((run.session, run.fence), (session("b1"), swap.to.fence));
    assert_eq!((run.outcome, run.ended_at), (Outcome::Running, None));
    assert_eq!(grant_to("b", &idle("a"), &at(s(0))).ended, None);
}

// A heartbeat.

#[test]
fn a_heartbeat_changes_nothing_but_the_versions() {
    let row = but(running("a"), |row| {
        row.document.paused = Some(pause(None));
        row.document.handoff = handed_to(free(), "b").document.handoff;
        row.document.revoke_requested = true;
    });
    let swap = heartbeat(&row, version(9), until(s(8)));
    let expected = but(row.clone(), |row| {
        row.version = version(9);
        row.document.session_version = Some(version(9));
    });
    assert_eq!(swap.to, expected);
    assert_eq!(swap.from, Some(row.version));
    assert_eq!(swap.stamp, Some(StampOf::Heartbeat));
    assert_eq!((swap.ended, swap.act, swap.leaves), (None, None, None));
    assert_eq!(swap.expiry, until(s(8)));
}

#[test]
fn a_heartbeat_alone_moves_the_stamp_to_the_stores_epoch() {
    let row = running("a");
    let now = seen(row.clone()).after(s(30)).elsewhere().now;
    let stamped = heartbeat(&row, row.version, now.until(s(0))).written(&now);
    let expected = but(row, |row| row.stamped = now);
    assert_eq!(stamped, expected);
}

// A release.

#[test]
fn a_release_keeps_the_token_for_its_client() {
    let swap = released(&running("a"), Outcome::Succeeded);
    let State::Idle { client: bound } = &swap.to.state else {
        panic!("{:?}", swap.to.state);
    };
    assert_eq!(*bound, client("a"));
    assert_eq!(swap.to.document.session_version, None);
    assert_eq!(swap.stamp, Some(StampOf::Released));
    let record = run_of(&running("a")).ended(ended(Outcome::Succeeded));
    assert_eq!(swap.ended, Some(Box::new(record)));
}

#[test]
fn a_release_frees_the_token_without_keep_or_after_a_revoke() {
    let no_keep = but(running("a"), |row| row.document.keep = Duration::ZERO);
    assert_eq!(released(&no_keep, Outcome::Succeeded).to.state, State::Free);
    let revoked = but(running("a"), |row| row.document.revoke_requested = true);
    let swap = released(&revoked, Outcome::Lost);
    assert_eq!(swap.to.state, State::Free);
    assert!(!swap.to.document.revoke_requested, "it is done");
}

#[test]
fn a_release_leaves_the_fence_the_handoff_and_the_pause() {
    let row = paused(handed_to(running("a"), "b"));
    let to = released(&row, Outcome::Succeeded).to;
    assert_eq!(
        (to.fence, &to.document.granted_epoch),
        (row.fence, &row.document.granted_epoch)
    );
    assert_eq!(
        (&to.document.handoff, &to.document.paused),
        (&row.document.handoff, &row.document.paused)
    );
    assert_eq!(
        to.acquired_at(),
        row.acquired_at(),
        "--at-least counts from it"
    );
}

#[test]
fn a_release_forgets_the_lock_file_and_counts_the_outcome() {
    let row = but(running("a"), |row| *lock_file(row) = Some("lock".into()));
    for (outcome, failures, losses) in [
        (Outcome::Succeeded, 0, 0),
        (Outcome::NotStarted, 0, 0),
        (Outcome::Failed, 1, 0),
        (Outcome::Signalled, 1, 0),
        (Outcome::TimedOut, 1, 0),
        (Outcome::Lost, 0, 1),
    ] {
        let to = released(&row, outcome).to;
        assert_eq!(to.document.last_outcome, Some(outcome));
        assert_eq!(
            (to.document.counters.failures, to.document.counters.losses),
            (failures, losses)
        );
    }
}

/// The end of a run of `b` that starts no job, granted at `now` on this row.
fn given_back(row: Option<&Row>, now: &StoreTime, change: impl FnOnce(&mut Row)) -> Row {
    let b = but(claim("b"), |claim| claim.timing.at_least = s(900));
    let mut held = grant(&b, GrantKind::Takeover, row, now, version(9)).to;
    change(&mut held);
    let run = run_of(&held).ended(ended(Outcome::NotStarted));
    give_back(&held, run, &Before::of(row, now), version(10), until(s(8))).to
}

#[test]
fn a_run_that_starts_no_job_leaves_binding_keep_and_not_before_as_they_were() {
    let keep = idle("a").document.keep;
    let idle_of = |name: &str| State::Idle {
        client: client(name),
    };
    for (row, passed, state, left) in [
        // Another client's, within its keep and after it.
        (idle("a"), s(1), idle_of("a"), keep - s(1)),
        (idle("a"), keep + s(1), idle_of("a"), s(0)),
        // Its own.
        (idle("b"), s(1), idle_of("b"), keep - s(1)),
        (free(), s(1), State::Free, s(0)),
        // A dead run's.
        (running("a"), s(1), idle_of("a"), s(0)),
    ] {
        let to = given_back(Some(&row), &seen(row.clone()).after(passed).now, |_| {});
        assert_eq!((&to.state, to.document.keep), (&state, left), "{row:?}");
        assert_eq!(to.document.not_before, s(0));
        assert!(to.fence > row.fence);
        assert_eq!(to.document.last_outcome, Some(Outcome::NotStarted));
        assert_eq!(
            to.document.counters.not_started,
            row.document.counters.not_started + 1
        );
    }
    let new = given_back(None, &at(s(1)), |_| {});
    assert_eq!((&new.state, new.document.keep), (&State::Free, s(0)));
    // Of unknown age: all of it.
    let row = idle("a");
    let elsewhere = StoreTime {
        epoch: epoch("another"),
        ..at(s(1))
    };
    assert_eq!(
        given_back(Some(&row), &elsewhere, |_| {}).document.keep,
        keep
    );
}

#[test]
fn a_run_that_starts_no_job_keeps_what_operators_want() {
    let handed = handed_to(idle("a"), "b");
    let now = seen(handed.clone()).after(s(1)).now;
    let back = given_back(Some(&handed), &now, |_| {});
    assert_eq!(back.document.handoff, handed.document.handoff);
    // What they have asked for since.
    let back = given_back(Some(&handed), &now, |held| {
        held.document.handoff = handed_to(idle("a"), "c").document.handoff;
        held.document.revoke_requested = true;
    });
    assert_eq!(back.document.handoff.unwrap().to, client("c"));
    assert_eq!(
        (back.state, back.document.revoke_requested),
        (State::Free, false)
    );
}

#[test]
fn a_revoked_run_is_counted_as_such_and_not_as_a_loss() {
    let row = but(running("a"), |row| row.document.revoke_requested = true);
    let end = RunEnd {
        revoked: true,
        reason: None,
        ..ended(Outcome::Lost)
    };
    let run = run_of(&row).ended(end);
    let counters = release(&row, run, version(9), until(s(8))).to;
    let counters = counters.document.counters;
    assert_eq!((counters.losses, counters.revoked), (0, 1));
}

// Creation, and the handoff to oneself.

#[test]
fn a_creation_grants_nothing_and_records_the_expected_client() {
    let first = but(claim("b"), |c| {
        c.expected = Some(client("a"));
        c.about.lock_file = Some("lock".into());
    });
    let swap = creation(&first, &at(s(1)), version(9));
    assert_eq!((swap.from, swap.stamp), (None, Some(StampOf::Created)));
    assert_eq!(
        (swap.to.fence, &swap.to.document.granted_epoch),
        (Fence(0), &None)
    );
    assert_eq!(
        (&swap.to.state, swap.to.acquired_at()),
        (&State::Free, None)
    );
    assert_eq!(swap.to.expected_client, Some(client("a")));
    assert_eq!(swap.to.document.takeover_after, first.timing.takeover_after);
    assert_eq!(swap.to.document.session_version, None);
    assert_eq!(swap.expiry, until(s(1) + timing().store_timeout));
    assert_eq!((swap.ended, swap.act), (None, None));
}

#[test]
fn a_handoff_to_oneself_changes_the_handoff_alone() {
    let row = expecting(idle("b"), "a");
    let swap = handoff_to_self(&failback("a"), &row, &at(s(3)), version(9));
    let expected = but(row.clone(), |row| {
        row.version = version(9);
        row.document.handoff = Some(Handoff {
            to: client("a"),
            at: WallTime(THEN.wall.0 + 3_000),
            for_failback: true,
            other: Others::new(),
        });
    });
    assert_eq!(swap.to, expected);
    assert_eq!((swap.from, swap.stamp), (Some(row.version), None));
}

// What a store does with a swap of any kind.

#[test]
fn only_one_of_two_grants_from_one_look_happens() {
    let mut store = ModelData::default();
    store.rows.insert(free().group, free());
    let first = grant_to("a", &free(), &at(s(0)));
    let second = grant(
        &claim("b"),
        GrantKind::Bind,
        Some(&free()),
        &at(s(0)),
        version(10),
    );
    assert!(matches!(store.swap(&first, &at(s(0))), Swapped::Done(_)));
    assert_eq!(store.swap(&second, &at(s(0))), Swapped::Conflict);
}

#[test]
fn a_grant_that_arrives_after_its_expiry_does_not_happen() {
    let swap = grant_to("a", &free(), &at(s(0)));
    let arrives = |now: StoreTime| {
        let mut store = ModelData::default();
        store.rows.insert(free().group, free());
        store.swap(&swap, &now)
    };
    let timeout = timing().store_timeout;
    assert!(matches!(arrives(at(timeout)), Swapped::Done(_)));
    assert!(matches!(arrives(at(timeout + MS)), Swapped::Expired(_)));
    let elsewhere = seen(free()).elsewhere().now;
    assert!(matches!(arrives(elsewhere), Swapped::Expired(_)));
}

#[test]
fn a_release_has_a_version_and_a_stamp_of_its_own() {
    let swap = released(&running("a"), Outcome::Succeeded);
    assert_eq!(swap.version(), version(9));
    assert_eq!(swap.to.document.stamp_of, StampOf::Released);
    assert_eq!(swap.from, Some(running("a").version));
}

#[test]
fn a_failed_run_moves_on_if_it_was_told_to() {
    let moving = |moves| {
        but(running("a"), |row| {
            let State::Running { run, .. } = &mut row.state else {
                panic!("it runs");
            };
            run.move_on_failure = moves;
        })
    };
    for (moves, outcome, has_moved) in [
        (true, Outcome::Failed, true),
        (true, Outcome::TimedOut, true),
        (true, Outcome::Succeeded, false),
        (false, Outcome::Failed, false),
    ] {
        let swap = released(&moving(moves), outcome);
        assert_eq!(
            swap.ended.unwrap().moved_on,
            has_moved,
            "{moves} {outcome:?}"
        );
        let gives_way = swap.to.document.gives_way;
        assert_eq!(
            gives_way,
            has_moved.then(|| client("a")),
            "{moves} {outcome:?}"
        );
    }
}

#[test]
fn a_run_that_starts_no_job_leaves_the_client_that_gave_way() {
    let row = but(free(), |row| row.document.gives_way = Some(client("c")));
    let to = given_back(Some(&row), &at(s(5)), |_| {});
    assert_eq!(to.document.gives_way, Some(client("c")));
}

#[test]
fn a_grant_forgets_when_the_last_one_was_and_knows_the_longest_lease() {
    let before = but(idle("a"), |row| {
        row.document.acquired = Some(at(s(1)).stamp)
    });
    let swap = grant_to("b", &before, &at(s(5)));
    assert_eq!(swap.to.document.acquired, None);
    let longer = but(claim("b"), |claim| claim.timing.takeover_after = s(900));
    let now = at(s(5));
    let long = grant(&longer, GrantKind::Bind, Some(&free()), &now, version(9)).to;
    assert_eq!(long.document.longest_takeover_after, s(900));
    let short = grant(&claim("b"), GrantKind::Bind, Some(&long), &now, version(10)).to;
    assert_eq!(short.document.longest_takeover_after, s(900));
}
