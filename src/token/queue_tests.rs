use super::*;
use crate::token::rule::tests::fixture::{self as f, *};
use crate::token::{Row, Verdict};

fn entry(name: &str, number: i64, seen: &f::Seen) -> QueueEntry {
    QueueEntry {
        waiter: Waiter::of(&f::claim(name)),
        number,
        seen_at: seen.now.stamp,
        epoch: seen.now.epoch.clone(),
    }
}

fn look<'a>(seen: &'a f::Seen, row: &'a Row) -> Look<'a> {
    Look {
        row: Some(row),
        now: &seen.now,
        memory: &seen.memory,
        position: QueuePosition::default(),
        evidence: &seen.evidence,
        unchanged_for: seen.unchanged_for,
        heard: false,
    }
}

/// The position of `name` in this queue.
fn stands(name: &str, queue: &[&str], seen: &f::Seen) -> QueuePosition {
    let queue: Vec<QueueEntry> = (1..)
        .zip(queue)
        .map(|(number, name)| entry(name, number, seen))
        .collect();
    position(&f::claim(name), &look(seen, &seen.row), &queue)
}

const fn at(ahead: usize) -> QueuePosition {
    QueuePosition {
        ahead,
        waiting: true,
    }
}

const fn outside(ahead: usize) -> QueuePosition {
    QueuePosition {
        ahead,
        waiting: false,
    }
}

#[test]
fn the_first_arrival_comes_first() {
    let open = seen(free());
    for (name, entry) in [("b", 0), ("c", 1), ("d", 2)] {
        assert_eq!(stands(name, &["b", "c", "d"], &open), at(entry));
    }
}

#[test]
fn a_session_outside_the_queue_is_behind_all_waiters() {
    let open = seen(free());
    assert_eq!(stands("a", &["b", "c", "d"], &open), outside(3));
    assert_eq!(stands("a", &[], &open), outside(0));
}

#[test]
fn the_bound_client_waits_behind_earlier_waiters() {
    let idle = seen(idle("a"));
    assert_eq!(stands("a", &["b", "a"], &idle), at(1));
    let queue = stands("a", &["b"], &idle);
    let late = but(idle, |seen| seen.position = queue);
    assert!(matches!(late.by(&f::claim("a")).clause.number(), 10));
}

#[test]
fn a_waiter_without_a_recent_heartbeat_leaves_the_queue() {
    let then = seen(free());
    let queue = [entry("b", 1, &then), entry("c", 2, &then)];
    let stand_after = |by: Duration| {
        let now = then.clone().after(by);
        let fresh = [queue[0].clone(), entry("c", 2, &now)];
        position(&f::claim("c"), &look(&now, &now.row), &fresh)
    };
    assert_eq!(stand_after(LIVES - MS), at(1));
    assert_eq!(stand_after(LIVES), at(0));
}

#[test]
fn a_heartbeat_of_another_clock_epoch_or_of_the_future_does_not_count() {
    let then = seen(free());
    let queue = [entry("b", 1, &then), entry("c", 2, &then)];
    for now in [then.clone().elsewhere(), then.clone().before(MS)] {
        let stands = position(&f::claim("c"), &look(&now, &now.row), &queue);
        assert_eq!(stands, at(0));
    }
}

#[test]
fn a_waiter_that_the_rule_refuses_delays_no_other() {
    // New, and reserved for a: b is in the queue before it.
    let new = seen(expecting(created(), "a"));
    assert_eq!(stands("a", &["b", "a"], &new), at(0));
    assert_eq!(
        stands("c", &["b", "c"], &new),
        at(0),
        "and both are refused"
    );
    // The reservation is over.
    let old = seen(expecting(created(), "a")).after(TAKEOVER_AFTER);
    assert_eq!(stands("a", &["b", "a"], &old), at(1));
}

#[test]
fn a_waiter_in_a_head_start_keeps_its_position() {
    // Handed off to a client that does not come: b waits for a moment, and c behind it.
    let handed = seen(handed_to(idle("a"), "z"));
    assert_eq!(stands("c", &["b", "c"], &handed), at(1));
    let first = but(handed, |seen| seen.position = at(0));
    assert!(matches!(first.by(&f::claim("b")).verdict, Verdict::Wait(_)));
}

#[test]
fn a_waiter_takes_a_token_that_is_kept_for_another() {
    let kept = seen(idle("a"));
    assert_eq!(stands("b", &["b", "c"], &kept), at(0));
    assert_eq!(stands("c", &["b", "c"], &kept), at(1));
    let first = but(kept, |seen| seen.position = at(0));
    assert!(matches!(
        first.by(&f::claim("b")).verdict,
        Verdict::Grant(_)
    ));
}

#[test]
fn the_queue_of_a_held_or_paused_token_refuses_no_claim() {
    for row in [running("a"), paused(idle("a"))] {
        let seen = seen(row);
        assert_eq!(stands("c", &["b", "c"], &seen), at(0));
        let queue = [entry("b", 1, &seen), entry("c", 2, &seen)];
        let claim = f::claim("c");
        assert_eq!(
            before(&claim.session, &queue, &seen.now).count(),
            1,
            "but shown"
        );
    }
}

#[test]
fn the_token_of_a_dead_holder_goes_to_the_first_in_the_queue() {
    let dead = seen(running("a")).dead();
    assert_eq!(stands("b", &["b", "c"], &dead), at(0));
    assert_eq!(stands("c", &["b", "c"], &dead), at(1));
    assert_eq!(stands("a", &["b", "c"], &dead), outside(2));
}

/// A waiter's own observation is not known to others, and one with a short `--wait` may never end it.
#[test]
fn an_observation_that_is_over_stands_behind_no_other() {
    let silent = seen(running("a")).elsewhere().watched(TAKEOVER_AFTER);
    assert_eq!(stands("d", &["b", "c"], &silent), outside(0));
    assert_eq!(stands("c", &["b", "c"], &silent), at(0));
    // Outside the queue it takes the token after the head start, in the queue at once.
    let outsider = but(silent.clone(), |seen| seen.position = outside(0));
    assert!(matches!(
        outsider.by(&f::claim("d")).verdict,
        Verdict::Wait(_)
    ));
    let waiter = but(silent, |seen| seen.position = at(0));
    assert!(matches!(
        waiter.by(&f::claim("c")).verdict,
        Verdict::Grant(_)
    ));
    // An age that all know counts for all.
    let old = seen(running("a")).after(TAKEOVER_AFTER);
    assert_eq!(stands("d", &["b", "c"], &old), outside(2));
}

#[test]
fn a_session_is_not_before_itself_and_equal_numbers_are_in_the_order_of_sessions() {
    let open = seen(free());
    let queue: Vec<QueueEntry> = ["b", "c", "d"].map(|name| entry(name, 1, &open)).to_vec();
    let ahead_of = |name: &str| -> Vec<String> {
        let own = f::claim(name).session;
        let ahead = before(&own, &queue, &open.now);
        ahead.map(|it| it.waiter.client.to_string()).collect()
    };
    assert_eq!(ahead_of("c"), ["b"]);
    assert_eq!(ahead_of("d"), ["b", "c"]);
    assert!(ahead_of("b").is_empty());
}
