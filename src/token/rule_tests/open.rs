//! Clauses 15 and 16: the token is open; at once, or after a head start?

use super::fixture::*;
use super::{grants, waits};
use crate::token::GrantKind;
use crate::token::{Row, State, Verdict};

#[test]
fn clause_15_binds_any_client_if_none_is_preferred() {
    assert_eq!(seen(free()).by(&claim("b")), grants(15, GrantKind::Bind));
    assert_eq!(seen(created()).by(&claim("b")), grants(15, GrantKind::Bind));
}

#[test]
fn clause_15_binds_the_expected_client_of_a_free_token() {
    let row = expecting(free(), "a");
    assert_eq!(seen(row).by(&claim("a")), grants(15, GrantKind::Bind));
}

#[test]
fn clause_15_prefers_the_bound_client_to_the_expected_one() {
    let silent = seen(expecting(running("b"), "a")).after(TAKEOVER_AFTER);
    assert_eq!(silent.by(&claim("b")), grants(15, GrantKind::Renew));
    assert_eq!(silent.by(&claim("a")), waits(16, HEAD_START));
    assert_eq!(silent.by(&failback("a")), grants(15, GrantKind::Failback));
}

#[test]
fn clause_15_gives_to_the_first_in_the_queue_at_once() {
    let silent = seen(running("a"))
        .after(TAKEOVER_AFTER)
        .first_in_the_queue();
    assert_eq!(silent.by(&claim("b")), grants(15, GrantKind::Takeover));
}

#[test]
fn clause_16_waits_the_holders_head_start_then_takes_over() {
    let eager = but(claim("b"), |c| c.timing.head_start = s(0));
    let silent = |watched| seen(running("a")).after(TAKEOVER_AFTER).watched(watched);
    assert_eq!(silent(s(0)).by(&eager), waits(16, HEAD_START));
    assert_eq!(silent(HEAD_START - MS).by(&eager), waits(16, MS));
    let taken = grants(16, GrantKind::Takeover);
    assert_eq!(silent(HEAD_START).by(&eager), taken);
}

#[test]
fn clause_16_no_head_start_is_taken_at_once() {
    let row = but(idle("a"), |row| row.document.head_start = s(0));
    let open = seen(row).after(KEEP);
    assert_eq!(open.by(&claim("b")), grants(16, GrantKind::Takeover));
}

#[test]
fn clause_16_watching_while_it_was_held_counts_as_head_start() {
    // The head start counts from the session's first look at this version.
    let watched = seen(running("a")).after(TAKEOVER_AFTER - s(1));
    let watched = watched.watched(HEAD_START - s(1)).wait(s(1));
    assert_eq!(watched.by(&claim("b")), grants(16, GrantKind::Takeover));
}

#[test]
fn clause_16_the_head_start_is_added_to_what_had_to_be_observed() {
    let row = but(idle("a"), |row| row.document.head_start = s(9));
    let other = |watched| seen(row.clone()).elsewhere().watched(watched);
    assert_eq!(other(KEEP).by(&claim("b")), waits(16, s(9)));
    assert_eq!(other(KEEP + s(9) - MS).by(&claim("b")), waits(16, MS));
    assert_eq!(
        other(KEEP + s(9)).by(&claim("b")),
        grants(16, GrantKind::Takeover)
    );
    // A client that needs no head start needs only the observation.
    let back = expecting(row.clone(), "c");
    let observed = seen(back).elsewhere().watched(KEEP);
    assert_eq!(observed.by(&failback("c")), grants(15, GrantKind::Failback));
}

fn giving_way(row: Row, name: &str) -> Row {
    but(row, |row| row.document.gives_way = Some(client(name)))
}

#[test]
fn a_client_that_gives_way_waits_the_head_start_for_any_other() {
    for row in [idle("a"), but(idle("a"), |row| row.state = State::Free)] {
        let row = giving_way(expecting(row, "a"), "a");
        let open = seen(row).after(KEEP);
        assert_eq!(open.by(&claim("a")), waits(16, HEAD_START));
        assert_eq!(open.by(&failback("a")), waits(16, HEAD_START));
        // The first in the queue, too: another waiter comes before it.
        let first = open.clone().first_in_the_queue();
        assert_eq!(first.by(&claim("a")), waits(16, HEAD_START));
        assert!(matches!(open.by(&claim("b")).verdict, Verdict::Grant(_)));
        let waited = open.watched(HEAD_START);
        assert!(matches!(waited.by(&claim("a")).verdict, Verdict::Grant(_)));
    }
    // Others are refused within keep all the same, and a hand-off to the client counts.
    let kept = seen(giving_way(idle("a"), "a"));
    assert_eq!(kept.by(&claim("b")).clause.number(), 13);
    assert_eq!(kept.by(&claim("a")), waits(16, HEAD_START));
    let handed = seen(handed_to(giving_way(idle("a"), "a"), "a"));
    assert_eq!(handed.by(&claim("a")), grants(8, GrantKind::Handoff));
}
