//! Clause 0: the store may have forgotten a grant.

use std::time::Duration;

use super::fixture::*;
use crate::token::{Clause, Decision, Doubt, Incarnation, Row, Served, Verdict};

#[test]
fn clause_0_a_store_that_may_have_forgotten_is_observed_for_the_longest_lease() {
    let forgetful = |row: Row, served: Duration| {
        but(seen(row), |seen| {
            seen.memory.incarnation = Some(Incarnation("i".into()));
            seen.memory.unnoted = Served::For(served);
        })
    };
    let own = claim("a").timing.takeover_after;
    let observes = |wait| Decision {
        clause: Clause::ForgetfulStore,
        verdict: Verdict::ObserveStore {
            wait,
            doubt: Doubt::Unnoted,
        },
    };
    let decision = |row: Row, served| forgetful(row, served).by(&claim("a"));
    assert_eq!(decision(free(), s(0)), observes(own));
    assert_eq!(decision(free(), s(1)), observes(own - s(1)));
    assert_ne!(decision(free(), own).clause, Clause::ForgetfulStore);
    // The group's longest lease may be that of another client, or of an earlier run.
    for longer in [
        but(free(), |row| row.document.takeover_after = own + s(60)),
        but(free(), |row| {
            row.document.longest_takeover_after = own + s(60);
        }),
    ] {
        assert_eq!(decision(longer.clone(), own), observes(s(60)));
        assert_ne!(decision(longer, own + s(60)).clause, Clause::ForgetfulStore);
    }
    // Proof of death says nothing of the run that was forgotten.
    let dead = forgetful(running("b"), s(0)).dead().by(&claim("a"));
    assert_eq!(dead.clause, Clause::ForgetfulStore);
}
