//! Properties of any row, claim and look.

use std::time::Duration;

use proptest::prelude::*;

use super::fixture::*;
use crate::token::WallTime;
use crate::token::{
    Claim, Evidence, Handoff, Others, QueuePosition, Refusal, Row, Stamp, StampOf, State,
    StoreTime, Verdict, Version, swap,
};

const NAMES: [&str; 3] = ["a", "b", "c"];

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&NAMES[..])
}

fn maybe_name() -> impl Strategy<Value = Option<&'static str>> {
    prop::option::of(name())
}

fn some_epoch() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["d", "d", "d", "other"])
}

/// A stamp some seconds around [`THEN`], the wall clock on its own.
fn stamp() -> impl Strategy<Value = Stamp> {
    (0i64..40, 0i64..40).prop_map(|(tick, wall)| Stamp {
        tick_ms: THEN.tick_ms + 500 * tick,
        wall: WallTime(THEN.wall.0 + 500 * wall),
    })
}

fn short() -> impl Strategy<Value = Duration> {
    (0u64..20).prop_map(|half| Duration::from_millis(500 * half))
}

fn state() -> impl Strategy<Value = State> {
    prop_oneof![
        Just(State::Free),
        name().prop_map(|name| State::Idle {
            client: client(name),
        }),
        name().prop_map(|name| State::Running {
            client: client(name),
            run: run_by(&format!("{name}0")),
        }),
    ]
}

prop_compose! {
    fn any_row()(
        state in state(),
        stamps in (stamp(), stamp(), prop::option::of(stamp())),
        epochs in (some_epoch(), some_epoch()),
        expected in maybe_name(),
        handoff in prop::option::weighted(0.3, name()),
        gives_way in prop::option::weighted(0.2, name()),
        pause_for in prop::option::weighted(0.2, prop::option::of(0i64..60)),
        lengths in (short(), short(), short(), prop_oneof![3 => Just(s(0)), 1 => short()]),
    ) -> Row {
        let (stamped, created_at, acquired_at) = stamps;
        but(created(), |row| {
            row.stamped = StoreTime { stamp: stamped, epoch: epoch(epochs.0) };
            let acquired = match state {
                State::Free => acquired_at,
                // A bound token has been granted.
                _ => Some(acquired_at.unwrap_or(created_at)),
            };
            row.document.granted_epoch = acquired.map(|_| epoch(epochs.1));
            row.document.stamp_of = match state {
                State::Running { .. } => StampOf::Heartbeat,
                _ if acquired.is_some() => StampOf::Released,
                _ => StampOf::Created,
            };
            row.document.created = Some(created_at);
            row.document.acquired = acquired;
            row.state = state;
            row.expected_client = expected.map(client);
            row.document.handoff = handoff.map(|to| Handoff { to: client(to), at: WallTime(0), for_failback: false, other: Others::new() });
            row.document.gives_way = gives_way.map(client);
            row.document.paused = pause_for.map(|until| pause(until.map(|n| THEN.wall.0 + 500 * n).map(WallTime)));
            (row.document.takeover_after, row.document.keep, row.document.head_start, row.document.not_before) = lengths;
        })
    }
}

prop_compose! {
    fn any_claim()(
        name in name(), expected in maybe_name(), failback in any::<bool>(),
        inside in prop::option::weighted(0.1, name()),
    ) -> Claim {
        but(claim(name), |claim| {
            claim.expected = expected.map(client);
            claim.failback = failback;
            claim.nested_in = inside.map(|name| session(&format!("{name}0")));
        })
    }
}

prop_compose! {
    fn any_seen()(
        row in any_row(), at in stamp(), at_epoch in some_epoch(), watched in short(),
        (ahead, waiting) in prop_oneof![
            3 => Just((0, false)), 1 => Just((0, true)), 1 => (1usize..3, any::<bool>()),
        ],
        evidence in prop_oneof![
            3 => Just(Evidence::None), 1 => Just(Evidence::Dead),
            1 => Just(Evidence::Alive(vec!["job".into()])),
        ],
    ) -> Seen {
        but(seen(row), |seen| {
            seen.now = StoreTime { epoch: epoch(at_epoch), stamp: at };
            seen.position = QueuePosition { ahead, waiting };
            seen.evidence = evidence;
            seen.unchanged_for = watched;
        })
    }
}

/// True if a stamp of the row lies in the reader's future: by its clock epoch's clock, or by the
/// wall clock. Clocks that go on never leave such a stamp.
fn has_a_stamp_in_the_future(seen: &Seen) -> bool {
    let row = &seen.row;
    let ahead = |stamp: Stamp, same: bool| {
        let now = seen.now.stamp;
        stamp.wall > now.wall || (same && stamp.tick_ms > now.tick_ms)
    };
    let same = row.stamped.epoch == seen.now.epoch;
    let granted_here = row.document.granted_epoch.as_ref() == Some(&seen.now.epoch);
    ahead(row.stamped.stamp, same)
        || ahead(row.created_at(), same)
        || row.acquired_at().is_some_and(|at| ahead(at, granted_here))
}

const fn is_grant(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Grant(_))
}

/// The duration in a verdict.
fn named(verdict: &Verdict, now: &StoreTime) -> Option<Duration> {
    match verdict {
        Verdict::Observe(wait) | Verdict::Wait(wait) | Verdict::ObserveStore { wait, .. } => {
            Some(*wait)
        }
        Verdict::Refused(why) | Verdict::RefusedWithHandoff(why) => match why {
            Refusal::Held {
                takeover_in: wait, ..
            }
            | Refusal::TooSoon { wait }
            | Refusal::Bound { wait, .. }
            | Refusal::Reserved { wait, .. }
            | Refusal::HeadStart { wait, .. }
            | Refusal::Observed { wait }
            | Refusal::Forgetful { wait, .. } => Some(*wait),
            Refusal::Paused(pause) | Refusal::ClientPaused(pause) => pause
                .until
                .map(|until| Duration::from_millis(until.0.abs_diff(now.stamp.wall.0))),
            Refusal::AliveHere(_) | Refusal::Behind { .. } => None,
        },
        Verdict::Nested | Verdict::Create | Verdict::Grant(_) => None,
    }
}

fn age_of_heartbeat(seen: &Seen) -> Option<Duration> {
    seen.row.run().and_then(|_| seen.row.age(&seen.now))
}

/// Follows the verdicts alone until the token is granted. Returns the number of looks.
#[allow(clippy::result_large_err)] // of no matter in a test
fn looks_until_granted(mut seen: Seen, claim: &Claim) -> Result<usize, Seen> {
    for look in 1..=60 {
        let decision = seen.by(claim);
        let wait = named(&decision.verdict, &seen.now);
        match decision.verdict {
            Verdict::Grant(_) | Verdict::Nested => return Ok(look),
            Verdict::RefusedWithHandoff(_) => {
                let version = Version::from_stored(100 + i64::try_from(look).unwrap());
                seen.row = swap::handoff_to_self(claim, &seen.row, &seen.now, version).to;
                seen.unchanged_for = Duration::ZERO;
            }
            _ => match wait {
                Some(wait) => seen = seen.wait(wait),
                None => return Err(seen),
            },
        }
    }
    Err(seen)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(4_000)
    })]

    #[test]
    fn no_numbers_make_it_panic(
        seen in any_seen(), claim in any_claim(),
        ticks in prop::array::uniform4(any::<i64>()),
        lengths in prop::array::uniform5(any::<u64>()),
    ) {
        let stamp = |n: usize| Stamp { tick_ms: ticks[n], wall: WallTime(ticks[3 - n]) };
        let length = |n: usize| Duration::from_millis(lengths[n]).saturating_mul(1_000);
        let strange = but(seen, |seen| {
            let row = &mut seen.row;
            row.document.created = Some(stamp(0));
            row.document.acquired = row.document.acquired.map(|_| stamp(1));
            row.stamped.stamp = stamp(2);
            (row.document.takeover_after, row.document.keep) = (length(0), length(1));
            (row.document.head_start, row.document.not_before) = (length(2), length(3));
            seen.now.stamp = stamp(3);
            seen.unchanged_for = length(4);
        });
        let _ = strange.by(&claim);
    }

    #[test]
    fn a_holder_of_known_age_is_never_robbed(seen in any_seen(), claim in any_claim()) {
        let young = age_of_heartbeat(&seen).is_some_and(|age| age < seen.row.document.takeover_after);
        if young && seen.evidence != Evidence::Dead {
            let decision = seen.by(&claim);
            prop_assert!(
                matches!(decision.clause.number(), 1 | 4) && !is_grant(&decision.verdict),
                "{decision:?}"
            );
        }
    }

    #[test]
    fn a_holder_of_unknown_age_is_never_robbed_before_it_was_watched_for_takeover_after(
        seen in any_seen(), claim in any_claim(),
    ) {
        let running = seen.row.session().is_some() && seen.evidence != Evidence::Dead;
        let unknown = running && age_of_heartbeat(&seen).is_none();
        if unknown && seen.unchanged_for < seen.row.document.takeover_after {
            prop_assert!(!is_grant(&seen.by(&claim).verdict));
        }
    }

    #[test]
    fn nothing_is_granted_while_paused(seen in any_seen(), claim in any_claim()) {
        if seen.row.pause_at(&seen.now).is_some() {
            let decision = seen.by(&claim);
            prop_assert!(matches!(decision.clause.number(), 1 | 3 | 4 | 5 | 6), "{decision:?}");
            prop_assert!(decision.clause.number() != 3, "there is nothing to stay for");
            prop_assert!(!is_grant(&decision.verdict));
        }
    }

    #[test]
    fn nothing_is_granted_to_a_paused_client(seen in any_seen(), claim in any_claim()) {
        let paused = seen.clone().pausing(&claim.client, None);
        let decided = paused.by(&claim);
        let is_refused = matches!(decided.verdict, Verdict::Refused(Refusal::ClientPaused(_)));
        prop_assert!(is_refused || decided.verdict == Verdict::Nested, "{decided:?}");
        // No other client notices.
        let elsewhere = seen.clone().pausing(&client("elsewhere"), None);
        prop_assert_eq!(elsewhere.by(&claim), seen.by(&claim));
    }

    #[test]
    fn only_some_clauses_grant(seen in any_seen(), claim in any_claim()) {
        let decision = seen.by(&claim);
        let expected = match decision.verdict {
            Verdict::Nested => decision.clause.number() == 1,
            Verdict::ObserveStore { .. } => decision.clause.number() == 0,
            Verdict::Observe(_) => decision.clause.number() == 3,
            Verdict::Wait(wait) => matches!(decision.clause.number(), 9 | 16) && !wait.is_zero(),
            Verdict::Create => false,
            Verdict::RefusedWithHandoff(_) => matches!(decision.clause.number(), 4 | 12),
            Verdict::Refused(_) => matches!(decision.clause.number(), 4..=7 | 10 | 13 | 14),
            Verdict::Grant(_) => matches!(decision.clause.number(), 8 | 9 | 11 | 15 | 16),
        };
        prop_assert!(expected, "{decision:?}");
    }

    #[test]
    fn nothing_is_observed_where_every_age_is_known(
        seen in any_seen(), claim in any_claim(),
    ) {
        let here = seen.row.stamped.epoch == seen.now.epoch;
        if here && !has_a_stamp_in_the_future(&seen) {
            prop_assert!(seen.by(&claim).clause.number() != 3);
        }
    }

    /// Only a stamp in the future breaks this: after a long observation it counts as old, and once
    /// the clock has reached it, its age is known and small.
    #[test]
    fn a_grant_now_is_a_grant_later_if_nothing_changes(
        seen in any_seen(), claim in any_claim(), later in short(),
    ) {
        let now = seen.by(&claim);
        if is_grant(&now.verdict) && !has_a_stamp_in_the_future(&seen) {
            prop_assert_eq!(now, seen.wait(later).by(&claim));
        }
    }

    #[test]
    fn a_named_duration_is_exact(seen in any_seen(), claim in any_claim()) {
        let now = seen.by(&claim);
        let future = has_a_stamp_in_the_future(&seen);
        if let (Some(wait), false) = (named(&now.verdict, &seen.now), future) {
            prop_assert!(!wait.is_zero(), "{now:?}");
            let just_before = seen.clone().wait(wait - MS).by(&claim);
            // A pause and --at-least decide before an unknown age does.
            let gives_way = matches!(now.clause.number(), 6 | 7);
            prop_assert!(gives_way || just_before.clause == now.clause, "{just_before:?}");
            prop_assert!(!is_grant(&just_before.verdict));
            let then = seen.wait(wait).by(&claim);
            let same_kind = std::mem::discriminant(&then.verdict)
                == std::mem::discriminant(&now.verdict);
            prop_assert!(then.clause != now.clause || !same_kind, "{now:?}, then {then:?}");
        }
    }

    #[test]
    fn a_lone_client_that_follows_the_verdicts_gets_the_token(
        seen in any_seen(), claim in any_claim(),
    ) {
        let alone = but(seen, |seen| {
            seen.position = QueuePosition::default();
            if matches!(seen.evidence, Evidence::Alive(_)) {
                seen.evidence = Evidence::None;
            }
            if seen.row.document.paused.as_ref().is_some_and(|p| p.until.is_none()) {
                seen.row.document.paused = None;
            }
        });
        // After a clock was set back, the wait starts again: `--at-least` counts anew until the
        // calendar has reached the grant.
        let at_most = if has_a_stamp_in_the_future(&alone) { 60 } else { 6 };
        let looks = looks_until_granted(alone, &claim);
        prop_assert!(looks.as_ref().is_ok_and(|looks| *looks <= at_most), "{looks:?}");
    }

    /// Within the head start at most one client gets the token at once. After it the swap decides:
    /// both clients start from the version that they read.
    #[test]
    fn two_clients_get_it_at_once_only_if_none_is_preferred(
        seen in any_seen(), one in any_claim(), other in any_claim(),
    ) {
        let two = one.client != other.client;
        let alone = but(seen, |seen| seen.position = QueuePosition::default());
        let gets_it = |claim| is_grant(&alone.by(claim).verdict);
        let both = two && gets_it(&one) && gets_it(&other);
        let row = &alone.row;
        let is_unclaimed = row.preferred_client().is_none() && row.document.handoff.is_none();
        let over = alone.unchanged_for >= row.document.head_start;
        let expected = row.expected_client.as_ref();
        let back = [&one, &other]
            .iter()
            .any(|claim| claim.failback && expected == Some(&claim.client));
        prop_assert!(!both || is_unclaimed || over || back);
    }
}
