//! Clauses 7 to 14: between two runs.

use std::time::Duration;

use super::fixture::*;
use super::{grants, observes, refuses, waits};
use crate::token::mutant::{Mutant, with_mutant};
use crate::token::{Clause, Decision, GrantKind, Look, Refusal, Verdict, decide};

fn bound(wait: Duration) -> Refusal {
    let to = client("a");
    Refusal::Bound { to, wait }
}

fn too_soon(wait: Duration) -> Decision {
    refuses(7, Refusal::TooSoon { wait })
}

fn reserved(wait: Duration) -> Decision {
    let to = client("a");
    refuses(14, Refusal::Reserved { to, wait })
}

#[test]
fn clause_7_refuses_anyone_until_at_least_has_passed_since_the_grant() {
    let at_least = |row| {
        but(row, |row: &mut crate::token::Row| {
            row.document.not_before = s(600)
        })
    };
    // A dead or silent run too: it may have done its work.
    for row in [free(), idle("a"), handed_to(idle("a"), "a"), running("a")] {
        let soon = seen(at_least(row)).after(s(600) - MS).first_in_the_queue();
        assert_eq!(soon.by(&claim("a")), too_soon(MS));
        assert_eq!(soon.by(&claim("b")), too_soon(MS));
    }
    let row = at_least(idle("a"));
    let due = seen(row).after(s(600));
    assert_eq!(due.by(&claim("a")), grants(11, GrantKind::Renew));
    let silent = seen(at_least(running("a"))).after(s(600));
    assert_eq!(silent.by(&claim("a")), grants(15, GrantKind::Renew));
}

#[test]
fn clause_7_refuses_after_a_proven_death_until_at_least_has_passed() {
    let row = but(running("a"), |row| row.document.not_before = s(600));
    let dead = |by| seen(row.clone()).after(by).dead();
    assert_eq!(dead(s(1)).by(&claim("a")), too_soon(s(599)));
    assert_eq!(dead(s(1)).by(&claim("b")), too_soon(s(599)));
    assert_eq!(dead(s(600)).by(&claim("a")), grants(15, GrantKind::Renew));
}

#[test]
fn clause_7_refuses_at_once_without_an_observation() {
    let row = |at_least| but(running("a"), |row| row.document.not_before = at_least);
    let elsewhere = |at_least| seen(row(at_least)).elsewhere();
    let long = TAKEOVER_AFTER + s(60);
    assert_eq!(elsewhere(long).by(&claim("b")), too_soon(long));
    assert_eq!(elsewhere(s(1)).by(&claim("b")), observes(TAKEOVER_AFTER));
}

#[test]
fn clause_7_goes_by_the_calendar_in_another_epoch() {
    let row = but(idle("a"), |row| row.document.not_before = s(600));
    let other = |by| seen(row.clone()).after(by).elsewhere();
    assert_eq!(other(s(600) - MS).by(&claim("a")), too_soon(MS));
    assert_eq!(
        other(s(600)).by(&claim("a")),
        grants(11, GrantKind::Renew),
        "at once: nothing has to be observed"
    );
    // A wall clock that was set back: the grant counts as made now.
    let back = seen(row).before(s(5)).elsewhere();
    assert_eq!(back.by(&claim("a")), too_soon(s(600)));
}

#[test]
fn clause_7_goes_by_the_tick_clock_within_an_epoch() {
    let row = but(idle("a"), |row| row.document.not_before = s(600));
    let stepped = but(seen(row).after(s(10)), |seen| {
        seen.now.stamp.wall.0 += 86_400_000;
    });
    assert_eq!(stepped.by(&claim("a")), too_soon(s(590)));
}

#[test]
fn clause_7_asks_for_the_epoch_of_the_grant_not_of_the_row() {
    let row = but(idle("a"), |row| {
        row.document.not_before = s(600);
        row.document.granted_epoch = Some(epoch("before"));
        row.document.acquired = Some(but(THEN, |stamp| stamp.tick_ms = 0));
    });
    assert_eq!(seen(row).after(s(1)).by(&claim("a")), too_soon(s(599)));
}

#[test]
fn clause_8_binds_the_client_that_it_was_handed_off_to() {
    let handoff = grants(8, GrantKind::Handoff);
    for row in [free(), idle("a"), created()] {
        let young = seen(handed_to(row, "b")).behind(3);
        assert_eq!(
            young.by(&claim("b")),
            handoff,
            "within keep, outside the queue"
        );
    }
    let from_dead = seen(handed_to(running("a"), "b")).after(TAKEOVER_AFTER);
    assert_eq!(from_dead.by(&claim("b")), handoff);
    assert_eq!(seen(handed_to(idle("a"), "a")).by(&claim("a")), handoff);
}

#[test]
fn clause_9_other_clients_wait_the_head_start() {
    let open = seen(handed_to(idle("a"), "b")).after(KEEP);
    assert_eq!(open.by(&claim("c")), waits(9, HEAD_START));
    assert_eq!(
        open.by(&claim("a")),
        waits(9, HEAD_START),
        "whose it is waits as well"
    );
    let nearly = open.clone().watched(HEAD_START - MS);
    assert_eq!(nearly.by(&claim("c")), waits(9, MS));
}

#[test]
fn clause_9_a_dead_target_blocks_no_client() {
    let open = seen(handed_to(idle("a"), "b"))
        .after(KEEP)
        .watched(HEAD_START);
    assert_eq!(open.by(&claim("c")), grants(9, GrantKind::Takeover));
    assert_eq!(open.by(&claim("a")), grants(9, GrantKind::Renew));
}

#[test]
fn clause_9_is_no_right_within_keep_others_stay_refused() {
    let young = seen(handed_to(idle("a"), "b")).after(s(1));
    assert_eq!(young.by(&claim("c")), refuses(13, bound(KEEP - s(1))));
    let watched = young.watched(s(1));
    assert_eq!(watched.by(&claim("c")), refuses(13, bound(KEEP - s(1))));
    // The client that the token belongs to is not refused: it waits, no more.
    assert_eq!(watched.by(&claim("a")), waits(9, HEAD_START - s(1)));
}

#[test]
fn clause_9_outweighs_failback_and_the_first_position_in_the_queue() {
    let open = seen(expecting(handed_to(idle("a"), "b"), "c")).after(KEEP);
    assert_eq!(open.by(&failback("c")), waits(9, HEAD_START));
    let first = open.first_in_the_queue();
    assert_eq!(first.by(&claim("c")), waits(9, HEAD_START));
}

#[test]
fn clause_10_refuses_while_others_are_in_the_queue_before() {
    for ahead in [1, 2, 17] {
        let open = seen(free()).behind(ahead);
        let behind = refuses(10, Refusal::Behind { ahead });
        assert_eq!(open.by(&claim("b")), behind);
        assert_eq!(seen(idle("a")).behind(ahead).by(&claim("a")), behind);
    }
    // A session outside the queue is behind the waiters.
    let passing = but(seen(free()), |seen| seen.position.ahead = 2);
    let behind = refuses(10, Refusal::Behind { ahead: 2 });
    assert_eq!(passing.by(&claim("b")), behind);
}

#[test]
fn clause_11_renews_for_the_bound_client_at_any_age() {
    let renewed = grants(11, GrantKind::Renew);
    assert_eq!(seen(idle("a")).by(&claim("a")), renewed);
    assert_eq!(seen(idle("a")).after(s(999)).by(&claim("a")), renewed);
    let other = seen(idle("a")).elsewhere();
    assert_eq!(other.by(&claim("a")), renewed, "no age is needed");
    assert_eq!(seen(idle("a")).before(s(9)).by(&claim("a")), renewed);
}

#[test]
fn clause_12_refuses_failback_in_the_slot_and_hands_off_for_the_next_look() {
    let row = expecting(idle("b"), "a");
    let young = seen(row.clone()).after(KEEP - MS);
    let to = client("b");
    let refused = Decision {
        clause: Clause::Failback,
        verdict: Verdict::RefusedWithHandoff(Refusal::Bound { to, wait: MS }),
    };
    assert_eq!(young.by(&failback("a")), refused);
    assert_eq!(
        young.clone().first_in_the_queue().by(&failback("a")),
        refused
    );
    let mutant = Mutant::FailbackInSameSlot;
    let mutant = with_mutant(mutant, || young.by(&failback("a")));
    assert_eq!(mutant, grants(12, GrantKind::Failback), "caught");
    // The next look, after the hand-off was written.
    let next = seen(handed_to(row, "a")).after(s(1));
    assert_eq!(next.by(&failback("a")), grants(8, GrantKind::Handoff));
}

#[test]
fn clause_12_after_keep_the_expected_client_takes_it_back_at_once() {
    let old = seen(expecting(idle("b"), "a")).after(KEEP);
    assert_eq!(old.by(&failback("a")), grants(15, GrantKind::Failback));
    assert_eq!(old.by(&claim("a")), waits(16, HEAD_START), "if it says so");
    let not_expected = failback("c");
    assert_eq!(old.by(&not_expected), waits(16, HEAD_START));
}

#[test]
fn clause_12_does_not_override_an_operators_handoff() {
    let young = seen(handed_to(expecting(idle("b"), "a"), "c"));
    let decision = young.by(&failback("a"));
    let to = client("b");
    assert_eq!(decision, refuses(13, Refusal::Bound { to, wait: KEEP }));
}

#[test]
fn clause_13_refuses_others_until_keep_has_passed_since_the_release() {
    let after = |by| seen(idle("a")).after(by).by(&claim("b"));
    assert_eq!(after(s(0)), refuses(13, bound(KEEP)));
    assert_eq!(after(KEEP - MS), refuses(13, bound(MS)));
    assert_eq!(after(KEEP), waits(16, HEAD_START));
}

#[test]
fn clause_13_honours_the_holders_keep() {
    let eager = but(claim("b"), |c| c.timing.keep = s(0));
    assert_eq!(seen(idle("a")).by(&eager), refuses(13, bound(KEEP)));
}

#[test]
fn clause_13_lets_the_first_in_the_queue_in() {
    let first = seen(idle("a")).first_in_the_queue();
    assert_eq!(first.by(&claim("b")), grants(15, GrantKind::Takeover));
    assert_eq!(
        first.elsewhere().by(&claim("b")),
        grants(15, GrantKind::Takeover)
    );
}

#[test]
fn clause_13_of_another_epoch_is_observed_for_keep() {
    let other = |watched| seen(idle("a")).elsewhere().watched(watched);
    assert_eq!(other(s(0)).by(&claim("b")), observes(KEEP));
    assert_eq!(other(KEEP - MS).by(&claim("b")), observes(MS));
    assert_eq!(other(KEEP).by(&claim("b")), waits(16, HEAD_START));
    let both = KEEP + HEAD_START;
    assert_eq!(other(both).by(&claim("b")), grants(16, GrantKind::Takeover));
}

#[test]
fn clause_14_reserves_a_new_group_for_its_expected_client() {
    let row = expecting(created(), "a");
    let after = |by| seen(row.clone()).after(by);
    assert_eq!(after(s(0)).by(&claim("b")), reserved(TAKEOVER_AFTER));
    assert_eq!(after(TAKEOVER_AFTER - MS).by(&claim("b")), reserved(MS));
    assert_eq!(after(TAKEOVER_AFTER).by(&claim("b")), waits(16, HEAD_START));
    let watched = after(TAKEOVER_AFTER).watched(HEAD_START);
    assert_eq!(watched.by(&claim("b")), grants(16, GrantKind::Bind));
    assert_eq!(after(s(0)).by(&claim("a")), grants(15, GrantKind::Bind));
    let other = after(s(0)).elsewhere();
    assert_eq!(other.by(&claim("b")), observes(TAKEOVER_AFTER));
}

#[test]
fn clause_14_once_granted_a_token_is_reserved_no_more() {
    let row = expecting(free(), "a");
    assert_eq!(seen(row).by(&claim("b")), waits(16, HEAD_START));
}

#[test]
fn clause_14_the_first_look_creates_the_row_for_another() {
    let first = |claim| {
        let now = seen(created()).now;
        let look = Look {
            row: None,
            now: &now,
            memory: &crate::token::Memory::SOUND,
            position: Default::default(),
            evidence: &Default::default(),
            unchanged_for: Duration::ZERO,
            heard: false,
        };
        decide(&claim, &look)
    };
    let expecting = |name, whom| but(claim(name), |c| c.expected = Some(client(whom)));
    let created = Decision {
        clause: Clause::Reserved,
        verdict: Verdict::Create,
    };
    assert_eq!(first(expecting("b", "a")), created);
    assert_eq!(first(expecting("a", "a")), grants(15, GrantKind::Bind));
    assert_eq!(first(claim("b")), grants(15, GrantKind::Bind));
}
