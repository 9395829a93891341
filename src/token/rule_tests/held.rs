//! Clauses 1 to 6: while a session runs, or seems to.

use std::time::Duration;

use super::fixture::*;
use super::{grants, observes, refuses, waits};
use crate::token::mutant::{Mutant, with_mutant};
use crate::token::{Clause, Decision, Evidence, GrantKind, Refusal, Verdict};
use crate::token::{Incarnation, Look, WallTime, decide};

fn held(silent_for: Duration) -> Decision {
    refuses(
        4,
        Refusal::Held {
            by: client("a"),
            session: session("a0"),
            same_client: false,
            silent_for,
            takeover_in: TAKEOVER_AFTER - silent_for,
        },
    )
}

fn paused_by_admin() -> Decision {
    refuses(6, Refusal::Paused(pause(None)))
}

#[test]
fn clause_1_runs_under_the_lease_of_the_session_it_is_inside_of() {
    let inside = |of: &str| but(claim("a"), |c| c.nested_in = Some(session(of)));
    let nested = Decision {
        clause: Clause::Nested,
        verdict: Verdict::Nested,
    };
    assert_eq!(seen(running("a")).by(&inside("a0")), nested);
    // The rest of the row does not matter: the outer session guards this process.
    let strange = seen(paused(running("a"))).after(2 * TAKEOVER_AFTER);
    assert_eq!(strange.elsewhere().by(&inside("a0")), nested);
    // A session that is no longer in the row lends nothing.
    assert_eq!(seen(running("a")).by(&inside("a9")).clause.number(), 4);
    assert_eq!(
        seen(idle("a")).by(&inside("a0")),
        grants(11, GrantKind::Renew)
    );
}

#[test]
fn clause_4_the_expected_client_with_failback_leaves_a_handoff_to_itself() {
    let silent_for = s(7);
    let why = match held(silent_for).verdict {
        Verdict::Refused(why) => why,
        other => panic!("{other:?}"),
    };
    let handed = Decision {
        clause: Clause::Held,
        verdict: Verdict::RefusedWithHandoff(why),
    };
    let row = expecting(running("a"), "b");
    let look = seen(row.clone()).after(silent_for);
    assert_eq!(look.by(&failback("b")), handed);
    assert_eq!(look.by(&claim("b")), held(silent_for), "if it says so");
    assert_eq!(
        look.by(&failback("c")),
        held(silent_for),
        "if it is expected"
    );
    // Once is enough, and an operator's own hand-off stays.
    for to in ["b", "c"] {
        let handed = seen(handed_to(row.clone(), to)).after(silent_for);
        assert_eq!(handed.by(&failback("b")), held(silent_for));
    }
    // Two live instances of the expected client: the token is its own already.
    let twin = seen(expecting(running("a"), "a")).by(&failback("a"));
    assert!(matches!(twin.verdict, Verdict::Refused(_)), "{twin:?}");
    // The client's next run at its slot gets the token.
    let idle = seen(handed_to(expecting(idle("a"), "b"), "b"));
    assert_eq!(idle.by(&failback("b")), grants(8, GrantKind::Handoff));
    assert_eq!(idle.by(&claim("a")), waits(9, HEAD_START));
}

#[test]
fn clause_2_a_provably_dead_holder_leaves_the_token_open() {
    let dead = seen(running("a")).dead();
    assert_eq!(dead.by(&claim("a")), grants(15, GrantKind::Renew));
    assert_eq!(dead.by(&claim("b")), waits(16, HEAD_START));
    let watched = dead.watched(HEAD_START);
    assert_eq!(watched.by(&claim("b")), grants(16, GrantKind::Takeover));
}

#[test]
fn clause_2_proof_needs_no_age() {
    let dead = seen(running("a")).dead().elsewhere();
    assert_eq!(dead.by(&claim("a")), grants(15, GrantKind::Renew));
}

#[test]
fn clause_2_passes_over_clauses_11_to_14_but_not_over_the_pause_or_at_least() {
    let dead = seen(running("a")).dead();
    assert_eq!(dead.by(&claim("a")), grants(15, GrantKind::Renew));
    assert_eq!(
        seen(paused(running("a"))).dead().by(&claim("a")),
        paused_by_admin()
    );
    let row = but(running("a"), |row| row.document.not_before = s(1_000));
    assert_eq!(seen(row).dead().by(&claim("a")).clause.number(), 7);
}

#[test]
fn clause_2_needs_both_locks_free() {
    let of = |run, job| Evidence::of_locks(run, job, vec!["job (7)".into()]);
    assert_eq!(of(false, false), Evidence::Dead);
    assert_eq!(of(false, true), Evidence::Alive(vec!["job (7)".into()]));
    assert_eq!(of(true, true), Evidence::Alive(vec!["job (7)".into()]));
    // A merely stopped supervisor whose job the guard has ended.
    assert_eq!(of(true, false), Evidence::None);
}

#[test]
fn clause_3_an_age_of_another_epoch_is_observed_for_its_whole_length() {
    let other = |watched| {
        seen(running("a"))
            .after(s(9_999))
            .elsewhere()
            .watched(watched)
    };
    let b = claim("b");
    assert_eq!(other(s(0)).by(&b), observes(TAKEOVER_AFTER));
    assert_eq!(other(TAKEOVER_AFTER - MS).by(&b), observes(MS));
    // Then the head start, on top of it.
    assert_eq!(other(TAKEOVER_AFTER).by(&b), waits(16, HEAD_START));
    let both = TAKEOVER_AFTER + HEAD_START;
    assert_eq!(other(both - MS).by(&b), waits(16, MS));
    assert_eq!(other(both).by(&b), grants(16, GrantKind::Takeover));
    // The bound client needs no head start, but observes like any other.
    assert_eq!(
        other(TAKEOVER_AFTER - MS).by(&claim("a")),
        observes(MS),
        "the same client in another session"
    );
    assert_eq!(
        other(TAKEOVER_AFTER).by(&claim("a")),
        grants(15, GrantKind::Renew)
    );
}

#[test]
fn clause_3_a_heartbeat_in_the_future_is_observed_too() {
    let early = seen(running("a")).before(MS);
    assert_eq!(early.by(&claim("b")), observes(TAKEOVER_AFTER));
    // At the very time of its stamp the heartbeat is no longer in the future.
    assert_eq!(seen(running("a")).by(&claim("b")), held(s(0)));
}

#[test]
fn clause_3_observes_for_the_holders_length_not_the_contenders() {
    let impatient = but(claim("b"), |c| c.timing.takeover_after = s(20));
    let other = seen(running("a")).elsewhere();
    assert_eq!(other.by(&impatient), observes(TAKEOVER_AFTER));
}

#[test]
fn clause_3_does_not_hold_up_the_refusal_of_a_paused_token() {
    let other = seen(paused(running("a"))).elsewhere();
    assert_eq!(other.by(&claim("b")), paused_by_admin());
    let idle = seen(paused(idle("a"))).elsewhere();
    assert_eq!(idle.by(&claim("b")), paused_by_admin());
}

#[test]
fn clause_3_is_caught_when_ages_are_compared_across_epochs() {
    let other = seen(running("a")).after(TAKEOVER_AFTER).elsewhere();
    assert_eq!(other.by(&claim("b")).clause.number(), 3);
    let mutant = with_mutant(Mutant::AgesAcrossEpochs, || other.by(&claim("b")));
    assert_eq!(mutant.clause.number(), 16);
}

#[test]
fn clause_4_refuses_until_the_holder_was_silent_for_its_takeover_after() {
    let silent = |by| seen(running("a")).after(by).by(&claim("b"));
    assert_eq!(silent(s(0)), held(s(0)));
    assert_eq!(silent(s(30)), held(s(30)));
    assert_eq!(silent(TAKEOVER_AFTER - MS), held(TAKEOVER_AFTER - MS));
    assert_eq!(silent(TAKEOVER_AFTER), waits(16, HEAD_START));
}

#[test]
fn clause_4_honours_the_holders_takeover_after() {
    let impatient = but(claim("b"), |c| c.timing.takeover_after = s(20));
    let patient = but(claim("b"), |c| c.timing.takeover_after = s(900));
    let after_50 = seen(running("a")).after(s(50));
    assert_eq!(after_50.by(&impatient), held(s(50)));
    let after_100 = seen(running("a")).after(TAKEOVER_AFTER);
    assert_eq!(after_100.by(&patient), waits(16, HEAD_START));
    let mutant = Mutant::ContendersTakeoverAfter;
    let mutant = with_mutant(mutant, || after_50.by(&impatient));
    assert_eq!(mutant, waits(16, HEAD_START), "caught");
}

#[test]
fn clause_4_refuses_the_same_client_in_another_session_and_says_so() {
    let decision = seen(running("a")).after(s(1)).by(&claim("a"));
    let Verdict::Refused(Refusal::Held { same_client, .. }) = decision.verdict else {
        panic!("{decision:?}");
    };
    assert!(same_client);
    assert_eq!(decision.clause.number(), 4);
}

#[test]
fn clause_4_refuses_the_first_in_the_queue_the_target_and_the_expected_client() {
    let row = handed_to(expecting(running("a"), "b"), "b");
    let decision = seen(row).first_in_the_queue().by(&failback("b"));
    assert_eq!(decision, held(s(0)), "a running job is never pre-empted");
}

#[test]
fn clause_4_ignores_live_processes_on_this_host() {
    assert_eq!(seen(running("a")).alive().by(&claim("b")), held(s(0)));
}

#[test]
fn clause_5_a_silent_holder_leaves_the_token_open() {
    let silent = seen(running("a")).after(TAKEOVER_AFTER);
    assert_eq!(silent.by(&claim("a")), grants(15, GrantKind::Renew));
    assert_eq!(silent.by(&claim("b")), waits(16, HEAD_START));
}

#[test]
fn clause_5_refuses_while_something_of_the_old_run_is_alive_here() {
    let alive = refuses(5, Refusal::AliveHere(vec!["job (7)".into()]));
    let silent = seen(running("a")).alive().after(TAKEOVER_AFTER);
    assert_eq!(silent.by(&claim("a")), alive);
    assert_eq!(silent.by(&claim("b")), alive);
    let observed = silent.elsewhere().watched(TAKEOVER_AFTER);
    assert_eq!(observed.by(&claim("b")), alive);
}

#[test]
fn clause_6_refuses_every_client_while_paused() {
    for row in [created(), free(), idle("a"), handed_to(idle("a"), "a")] {
        let decision = seen(paused(row)).by(&claim("a"));
        assert_eq!(decision, paused_by_admin());
    }
    let silent = seen(paused(running("a"))).after(TAKEOVER_AFTER);
    assert_eq!(silent.by(&claim("a")), paused_by_admin());
    let mutant = with_mutant(Mutant::PausedTakenFromDead, || silent.by(&claim("a")));
    assert_eq!(mutant, grants(15, GrantKind::Renew), "caught");
}

#[test]
fn clause_6_a_pause_ends_by_the_calendar_in_any_epoch() {
    let until = pause(Some(WallTime(THEN.wall.0 + 60_000)));
    let row = but(idle("a"), |row| row.document.paused = Some(until.clone()));
    let refused = refuses(6, Refusal::Paused(until));
    let after = |by| seen(row.clone()).after(by);
    let renewed = grants(11, GrantKind::Renew);
    assert_eq!(after(s(60) - MS).by(&claim("a")), refused);
    assert_eq!(after(s(60)).by(&claim("a")), renewed);
    assert_eq!(after(s(60) - MS).elsewhere().by(&claim("a")), refused);
    assert_eq!(after(s(60)).elsewhere().by(&claim("a")), renewed);
}

fn client_paused(until: Option<WallTime>) -> Decision {
    Decision {
        clause: Clause::ClientPaused,
        verdict: Verdict::Refused(Refusal::ClientPaused(pause(until))),
    }
}

#[test]
fn clause_6_a_paused_client_is_refused_whatever_the_row_says() {
    let rows = [running("b"), idle("a"), free(), handed_to(idle("b"), "a")];
    for row in rows {
        let paused = seen(row).pausing(&client("a"), None);
        assert_eq!(paused.by(&claim("a")), client_paused(None));
        assert_eq!(
            paused.clone().elsewhere().by(&claim("a")),
            client_paused(None)
        );
        assert_eq!(
            paused.clone().dead().by(&failback("a")),
            client_paused(None)
        );
        assert!(paused.by(&claim("c")) != client_paused(None));
    }
    // A group that was never seen, and a store that may have forgotten a grant.
    let mut paused = seen(free()).pausing(&client("a"), None);
    let first = |paused: &Seen| {
        let position = paused.position;
        let (now, memory, evidence) = (&paused.now, &paused.memory, &paused.evidence);
        let unchanged_for = Duration::ZERO;
        let (row, heard) = (None, false);
        decide(
            &claim("a"),
            &Look {
                row,
                now,
                memory,
                position,
                evidence,
                unchanged_for,
                heard,
            },
        )
    };
    assert_eq!(first(&paused), client_paused(None));
    paused.memory.incarnation = Some(Incarnation("restored".into()));
    assert_eq!(first(&paused), client_paused(None));
    // A job inside of the run goes on.
    let inside = but(claim("a"), |c| c.nested_in = Some(session("b0")));
    let nested = seen(running("b")).pausing(&client("a"), None).by(&inside);
    assert_eq!(nested.verdict, Verdict::Nested);
}

#[test]
fn clause_6_a_pause_of_a_client_ends_by_itself() {
    let until = WallTime(THEN.wall.0 + 500);
    let paused = seen(idle("a")).pausing(&client("a"), Some(until));
    let just_before = paused.clone().after(Duration::from_millis(499));
    assert_eq!(just_before.by(&claim("a")), client_paused(Some(until)));
    let over = paused.after(Duration::from_millis(500));
    assert_eq!(over.by(&claim("a")), grants(11, GrantKind::Renew));
}

/// As long as the observation is long enough: the claimant need not stay.
#[test]
fn clause_5_refuses_a_token_whose_at_least_lasts_as_long_as_the_observation() {
    let clause = |left: Duration| {
        let row = but(running("b"), |row| row.document.not_before = left);
        seen(row).elsewhere().by(&claim("a")).clause
    };
    let same = but(running("b"), |row| row.document.not_before = TAKEOVER_AFTER);
    assert_eq!(
        same.too_soon_for(&seen(same.clone()).now),
        Some(TAKEOVER_AFTER)
    );
    assert_ne!(clause(TAKEOVER_AFTER), Clause::UnknownAge);
    let shorter = TAKEOVER_AFTER - Duration::from_millis(1);
    assert_eq!(clause(shorter), Clause::UnknownAge);
}
