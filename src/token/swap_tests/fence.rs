//! The fence, grant by grant and through failovers.

use proptest::prelude::*;

use super::*;
use crate::token::WallTime;

#[test]
fn a_grant_in_the_same_epoch_sets_the_fence_to_the_time_or_one_more() {
    let row = free();
    let later = grant_to("a", &row, &at(s(5)));
    assert_eq!(later.to.fence.0, THEN.wall.0 + 5_000);
    let at_once = grant_to("a", &row, &at(s(0)));
    assert_eq!(at_once.to.fence.0, row.fence.0 + 1);
    let set_back = seen(row.clone()).before(s(3_600)).now;
    assert_eq!(grant_to("a", &row, &set_back).to.fence.0, row.fence.0 + 1);
}

#[test]
fn a_grant_in_another_epoch_is_a_minute_ahead() {
    let row = free();
    let other = seen(row.clone()).after(s(5)).elsewhere().now;
    let swap = grant_to("a", &row, &other);
    assert_eq!(swap.to.fence.0, THEN.wall.0 + 5_000 + 60_000);
    assert_eq!(swap.to.document.granted_epoch, Some(epoch("other")));
    // And only the first one there.
    let then = grant_to("a", &swap.to, &other);
    assert_eq!(then.to.fence.0, swap.to.fence.0 + 1);
}

#[test]
fn the_first_grant_is_a_minute_ahead_as_a_failover_may_have_lost_an_earlier_one() {
    let of_no_row = grant(&claim("a"), GrantKind::Bind, None, &at(s(0)), version(9));
    assert_eq!(of_no_row.to.fence.0, THEN.wall.0 + 60_000);
    let of_a_created_row = grant_to("a", &created(), &at(s(0)));
    assert_eq!(of_a_created_row.to.fence.0, THEN.wall.0 + 60_000);
}

#[test]
fn the_epoch_that_counts_for_the_fence_is_that_of_the_last_grant() {
    // A heartbeat after the store's restart moves the row's clock epoch, not the grant's.
    let row = but(running("a"), |row| row.stamped.epoch = epoch("other"));
    let other = seen(row.clone()).elsewhere().now;
    let swap = grant_to("b", &row, &other);
    assert_eq!(swap.to.fence.0, THEN.wall.0 + 60_000);
}

#[test]
fn the_minutes_of_failovers_do_not_add_up() {
    // Otherwise an older backup would not rise above the fences that they granted.
    let mut row = free();
    for boot in 0..5 {
        let now = StoreTime {
            epoch: epoch(&format!("boot {boot}")),
            ..at(s(5))
        };
        row = grant_to("a", &row, &now).to;
        assert_eq!(row.fence.0, THEN.wall.0 + 65_000 + boot);
    }
}

#[test]
fn the_greatest_fence_does_not_overflow() {
    let row = but(free(), |row| row.fence = Fence(i64::MAX));
    let other = seen(row.clone()).elsewhere().now;
    assert_eq!(grant_to("a", &row, &other).to.fence.0, i64::MAX);
}

/// One grant of a sequence, with the change of the store's clock before it.
#[derive(Debug, Clone, Copy)]
struct Leap {
    /// True time since the last grant.
    passed_ms: i64,
    /// Another clock epoch, and its wall clock so far behind the true one.
    behind_ms: Option<i64>,
    /// True if that change loses the last grant.
    lossy: bool,
}

fn leap() -> impl Strategy<Value = Leap> {
    (0i64..200_000, prop::option::of(0i64..60_000), any::<bool>()).prop_map(
        |(passed_ms, behind_ms, lossy)| Leap {
            passed_ms,
            behind_ms,
            lossy,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// Clocks may be behind each other by less than a minute, and a failover may lose commits. Each
    /// failover comes a minute or more after the first grant since the last one, as that grant uses
    /// the minute up.
    #[test]
    fn the_fence_rises_through_any_sequence_of_grants(
        leaps in prop::collection::vec(leap(), 1..40),
    ) {
        let mut true_ms = THEN.wall;
        let (mut incarnation, mut behind, mut highest) = (0, 0, 0);
        let mut rows = vec![created()];
        for leap in leaps {
            true_ms.0 += leap.passed_ms;
            if let Some(behind_ms) = leap.behind_ms {
                true_ms.0 += 60_000;
                incarnation += 1;
                behind = behind_ms;
                if leap.lossy && rows.len() > 1 {
                    rows.pop();
                }
            }
            let now = StoreTime {
                epoch: epoch(&format!("d{incarnation}")),
                stamp: Stamp { tick_ms: 0, wall: WallTime(true_ms.0 - behind) },
            };
            let row = grant_to("a", rows.last().unwrap(), &now).written(&now);
            prop_assert!(row.fence.0 > highest, "{} after {highest}", row.fence);
            highest = row.fence.0;
            rows.push(row);
        }
    }

    /// The clocks agree. A failover goes on from any state that any server ever had: a promotion
    /// that lost commits, there and back again, a restart, a restored backup. Failovers follow each
    /// other as fast as grants do.
    #[test]
    fn the_fence_rises_through_any_loss_if_the_clocks_agree(
        failovers in prop::collection::vec(
            (1i64..100_000, any::<prop::sample::Index>(), 1usize..20),
            1..20,
        ),
    ) {
        let mut true_ms = THEN.wall;
        let mut highest = 0;
        let mut states = vec![created()];
        for (server, (passed_ms, left, grants)) in failovers.into_iter().enumerate() {
            true_ms.0 += passed_ms;
            let mut row = states[left.index(states.len())].clone();
            for _ in 0..grants {
                true_ms.0 += 1;
                let now = StoreTime {
                    epoch: epoch(&format!("d{server}")),
                    stamp: Stamp { tick_ms: 0, wall: true_ms },
                };
                row = grant_to("a", &row, &now).written(&now);
                prop_assert!(row.fence.0 > highest, "{} after {highest}", row.fence);
                highest = row.fence.0;
                states.push(row.clone());
            }
        }
    }

    /// Nothing is lost: then no clock and no clock epoch makes the fence fall.
    #[test]
    fn the_fence_rises_with_any_clock_if_nothing_is_lost(
        times in prop::collection::vec((any::<i32>(), 0..3), 1..40),
    ) {
        let mut row = created();
        for (wall, incarnation) in times {
            let now = StoreTime {
                epoch: epoch(&format!("d{incarnation}")),
                stamp: Stamp { tick_ms: 0, wall: WallTime(i64::from(wall)) },
            };
            let next = grant_to("a", &row, &now).to;
            prop_assert!(next.fence > row.fence);
            row = next;
        }
    }
}
