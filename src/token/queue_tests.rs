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

/// Where `name` stands if these have come, in this order.
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
fn who_came_first_comes_first() {
    let open = seen(free());
    for (name, entry) in [("b", 0), ("c", 1), ("d", 2)] {
        assert_eq!(stands(name, &["b", "c", "d"], &open), at(entry));
    }
}

#[test]
fn who_does_not_wait_is_behind_all() {
    let open = seen(free());
    assert_eq!(stands("a", &["b", "c", "d"], &open), outside(3));
    assert_eq!(stands("a", &[], &open), outside(0));
}

#[test]
fn the_bound_client_waits_behind_those_who_came_before() {
    let idle = seen(idle("a"));
    assert_eq!(stands("a", &["b", "a"], &idle), at(1));
    let queue = stands("a", &["b"], &idle);
    let late = but(idle, |seen| seen.position = queue);
    assert!(matches!(late.by(&f::claim("a")).clause.number(), 10));
}

#[test]
fn who_gives_no_sign_of_life_is_not_in_the_queue_any_more() {
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
fn a_sign_of_life_by_another_clock_or_of_the_future_counts_as_none() {
    let then = seen(free());
    let queue = [entry("b", 1, &then), entry("c", 2, &then)];
    for now in [then.clone().elsewhere(), then.clone().before(MS)] {
        let stands = position(&f::claim("c"), &look(&now, &now.row), &queue);
        assert_eq!(stands, at(0));
    }
}

#[test]
fn whom_the_rule_refuses_holds_up_nobody() {
    // New, and reserved for a: b may stand before it.
    let new = seen(expecting(created(), "a"));
    assert_eq!(stands("a", &["b", "a"], &new), at(0));
    assert_eq!(
        stands("c", &["b", "c"], &new),
        at(0),
        "and both are refused"
    );
    // No longer reserved.
    let old = seen(expecting(created(), "a")).after(TAKEOVER_AFTER);
    assert_eq!(stands("a", &["b", "a"], &old), at(1));
}

#[test]
fn who_leaves_a_head_start_holds_its_place() {
    // Handed off to somebody who does not come: b waits for a moment, and c behind it.
    let handed = seen(handed_to(idle("a"), "z"));
    assert_eq!(stands("c", &["b", "c"], &handed), at(1));
    let first = but(handed, |seen| seen.position = at(0));
    assert!(matches!(first.by(&f::claim("b")).verdict, Verdict::Wait(_)));
}

#[test]
fn a_waiter_takes_what_is_kept_for_another() {
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
fn nobody_is_held_up_by_the_line_of_a_token_that_is_held_or_paused() {
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
fn a_dead_holders_token_goes_to_the_first_in_the_queue() {
    let dead = seen(running("a")).dead();
    assert_eq!(stands("b", &["b", "c"], &dead), at(0));
    assert_eq!(stands("c", &["b", "c"], &dead), at(1));
    assert_eq!(stands("a", &["b", "c"], &dead), outside(2));
}
