//! The rule's table, clause by clause, with its boundaries; then properties of any row, claim and
//! look.

#[path = "rule_tests/between.rs"]
mod between;
#[path = "rule_tests/fixture.rs"]
pub(crate) mod fixture;
#[path = "rule_tests/forgetful.rs"]
mod forgetful;
#[path = "rule_tests/held.rs"]
mod held;
#[path = "rule_tests/open.rs"]
mod open;
#[path = "rule_tests/properties.rs"]
mod properties;

use std::time::Duration;

use crate::token::{Clause, Decision, GrantKind, Refusal, Verdict};

/// The first clause with this number.
fn clause_of(number: u8) -> Clause {
    let mut all = Clause::ALL.into_iter();
    all.find(|it| it.number() == number).unwrap()
}

fn grants(clause: u8, kind: GrantKind) -> Decision {
    Decision {
        clause: clause_of(clause),
        verdict: Verdict::Grant(kind),
    }
}

fn waits(clause: u8, wait: Duration) -> Decision {
    Decision {
        clause: clause_of(clause),
        verdict: Verdict::Wait(wait),
    }
}

fn observes(wait: Duration) -> Decision {
    Decision {
        clause: Clause::UnknownAge,
        verdict: Verdict::Observe(wait),
    }
}

fn refuses(clause: u8, why: Refusal) -> Decision {
    Decision {
        clause: clause_of(clause),
        verdict: Verdict::Refused(why),
    }
}
