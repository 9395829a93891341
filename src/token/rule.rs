//! The rule: who may have the token. One pure function; the first clause that
//! matches decides. Its clauses are numbered as in the table of `token.rs`.

use std::ops::ControlFlow::{self, Break, Continue};
use std::time::Duration;

use super::claim::{Claim, Evidence, Look};
use super::clause::Clause;
use super::incarnation::{Doubt, Observation};
use super::mutant::{Mutant, is_mutant};
use super::names::{ClientId, SessionId};
use super::outcome::GrantKind;
use super::refusal::Refusal;
use super::row::{Row, State};

/// The rule's verdict, with the clause that gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub clause: Clause,
    pub verdict: Verdict,
}

/// What a session must do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Run the job under the outer session's lease.
    Nested,
    /// Write nothing to the token, stay, look again: the store may have forgotten a grant.
    ObserveStore {
        /// How much longer it must be observed.
        wait: Duration,
        doubt: Doubt,
    },
    /// Write nothing, stay, look again: a stamp's age is unknown, but the row counts as old once it
    /// has stood unchanged for this much longer.
    Observe(Duration),
    /// Leave the preferred client its head start: look again after this long.
    Wait(Duration),
    /// Create the row, so that its age counts, then look again.
    Create,
    /// Refused; and the token is to be handed off to this client for its next look.
    RefusedWithHandoff(Refusal),
    /// Not now.
    Refused(Refusal),
    /// Take the token.
    Grant(GrantKind),
}

/// Decides what the claimant must do after this look.
pub fn decide(claim: &Claim, look: &Look<'_>) -> Decision {
    if is_nested(claim, look.row) {
        return decision(Clause::Nested, Verdict::Nested);
    }
    // Whatever the row says: a client without a right to any token has nothing to observe.
    if let Some(pause) = look.memory.pause_of(&claim.client, look.now) {
        return refused(Clause::ClientPaused, Refusal::ClientPaused(pause.clone()));
    }
    if let Some(verdict) = forgetful(claim, look) {
        return decision(Clause::ForgetfulStore, verdict);
    }
    let Some(row) = look.row else {
        return first_look(claim);
    };
    match clauses(claim, look, row) {
        Continue(decision) | Break(decision) => decision,
    }
}

const fn decision(clause: Clause, verdict: Verdict) -> Decision {
    Decision { clause, verdict }
}

const fn refused(clause: Clause, why: Refusal) -> Decision {
    decision(clause, Verdict::Refused(why))
}

/// True if the claimant runs inside the run in the row: clause 1.
pub fn is_nested(claim: &Claim, row: Option<&Row>) -> bool {
    let session = row.and_then(Row::session);
    session.is_some() && session == claim.nested_in.as_ref()
}

/// How long a store must have been observed before this claim is granted: no forgotten lease lasts
/// longer.
pub fn forgotten_lease(claim: &Claim, row: Option<&Row>) -> Duration {
    let longest = row.map(Row::longest_lease).unwrap_or_default();
    claim.timing.takeover_after.max(longest)
}

/// Clause 0. It comes before proof of death: the row may not name the last run.
fn forgetful(claim: &Claim, look: &Look<'_>) -> Option<Verdict> {
    if is_mutant(Mutant::ForgottenGrantGranted) {
        return None;
    }
    let length = forgotten_lease(claim, look.row);
    let Observation { wait, doubt } = look.memory.observation(length, look.now)?;
    Some(Verdict::ObserveStore { wait, doubt })
}

/// The first look at a group: the row is created for the expected client first.
fn first_look(claim: &Claim) -> Decision {
    match &claim.expected {
        Some(expected) if *expected != claim.client => decision(Clause::Reserved, Verdict::Create),
        _ => decision(Clause::Open, Verdict::Grant(GrantKind::Bind)),
    }
}

/// Clauses 2 to 16. A clause that matches breaks off: those below it are not reached.
fn clauses(claim: &Claim, look: &Look<'_>, row: &Row) -> ControlFlow<Decision, Decision> {
    let observed = running(claim, look, row)?;
    paused(look, row)?;
    at_least(look, row)?;

    let handed_to_me = row.document.handoff.as_ref().map(|h| h.to == claim.client);
    if handed_to_me == Some(true) {
        return Break(decision(
            Clause::HandedOff,
            Verdict::Grant(GrantKind::Handoff),
        ));
    }
    // Clause 9 makes the target the preferred client. That gives a head start, never a right: a
    // claimant that 10 to 14 refuse stays refused.
    let handed_to_another = handed_to_me == Some(false);
    if look.position.ahead > 0 {
        let ahead = look.position.ahead;
        return Break(refused(Clause::Behind, Refusal::Behind { ahead }));
    }
    let observed = observed + between_runs(claim, look, row, handed_to_another)?;
    Continue(open(claim, look, row, handed_to_another, observed))
}

/// The time since the stamp, against a length.
enum Passed {
    /// The length has passed. If the age is unknown: the version stood unchanged for this long.
    Yes { observed: Duration },
    /// It will have passed in `wait`.
    No { age: Duration, wait: Duration },
    /// The age is unknown, but counts as reached in `wait` if the row does not change.
    Unknown { wait: Duration },
}

/// Clause 3: an unknown age counts as reached once the version stood unchanged for its whole length
/// on the reader's own clock.
fn passed(look: &Look<'_>, row: &Row, length: Duration) -> Passed {
    match row.age(look.now) {
        Some(age) if age < length => Passed::No {
            age,
            wait: length.saturating_sub(age),
        },
        Some(_) => Passed::Yes {
            observed: Duration::ZERO,
        },
        None if look.unchanged_for < length => Passed::Unknown {
            wait: length.saturating_sub(look.unchanged_for),
        },
        None => Passed::Yes { observed: length },
    }
}

/// Clauses 2 to 5. Returns how long the claimant had to observe to find the token open.
fn running(claim: &Claim, look: &Look<'_>, row: &Row) -> ControlFlow<Decision, Duration> {
    let State::Running { client, run } = &row.state else {
        return Continue(Duration::ZERO);
    };
    if *look.evidence == Evidence::Dead {
        return Continue(Duration::ZERO);
    }
    let takeover_after = if is_mutant(Mutant::ContendersTakeoverAfter) {
        claim.timing.takeover_after
    } else {
        row.document.takeover_after
    };
    let session = &run.session;
    match passed(look, row, takeover_after) {
        // The holder was heard: the time without a change since then is its age.
        Passed::Unknown { wait } if look.heard => {
            Break(held(claim, row, client, session, look.unchanged_for, wait))
        }
        Passed::Unknown { wait } => {
            // Whatever the age is, a paused token is refused, and so is one whose --at-least lasts
            // longer than the observation: the claimant need not stay.
            paused(look, row)?;
            match row.too_soon_for(look.now) {
                Some(longer) if longer >= wait => at_least(look, row)?,
                _ => {}
            }
            Break(decision(Clause::UnknownAge, Verdict::Observe(wait)))
        }
        Passed::No { age, wait } => Break(held(claim, row, client, session, age, wait)),
        Passed::Yes { observed } => match look.evidence {
            Evidence::Alive(processes) => Break(refused(
                Clause::AliveHere,
                Refusal::AliveHere(processes.clone()),
            )),
            Evidence::None | Evidence::Dead => Continue(observed),
        },
    }
}

/// Clause 4. An expected client that takes the token back requests a hand-off to itself. Otherwise
/// one whose clock is late would meet a running job at each slot, and never get the token.
fn held(
    claim: &Claim,
    row: &Row,
    client: &ClientId,
    session: &SessionId,
    silent_for: Duration,
    takeover_in: Duration,
) -> Decision {
    let same_client = *client == claim.client;
    let why = Refusal::Held {
        by: client.clone(),
        session: session.clone(),
        same_client,
        silent_for,
        takeover_in,
    };
    if takes_back(claim, row) && !same_client && row.document.handoff.is_none() {
        return decision(Clause::Held, Verdict::RefusedWithHandoff(why));
    }
    refused(Clause::Held, why)
}

/// Clause 6.
fn paused(look: &Look<'_>, row: &Row) -> ControlFlow<Decision, ()> {
    let running = matches!(row.state, State::Running { .. });
    if running && is_mutant(Mutant::PausedTakenFromDead) {
        return Continue(());
    }
    match row.pause_at(look.now) {
        Some(pause) => Break(refused(Clause::Paused, Refusal::Paused(pause.clone()))),
        None => Continue(()),
    }
}

/// Clause 7, however the last run ended: a crashed run may have done its work.
fn at_least(look: &Look<'_>, row: &Row) -> ControlFlow<Decision, ()> {
    match row.too_soon_for(look.now) {
        Some(wait) => Break(refused(Clause::TooSoon, Refusal::TooSoon { wait })),
        None => Continue(()),
    }
}

/// Clauses 11 to 14. Returns how long the claimant had to observe to find the token open.
fn between_runs(
    claim: &Claim,
    look: &Look<'_>,
    row: &Row,
    handed_to_another: bool,
) -> ControlFlow<Decision, Duration> {
    match &row.state {
        State::Running { .. } => Continue(Duration::ZERO),
        State::Idle { client } => {
            if *client == claim.client {
                return if handed_to_another || row.gives_way(client) {
                    Continue(Duration::ZERO)
                } else {
                    Break(decision(Clause::Renewal, Verdict::Grant(GrantKind::Renew)))
                };
            }
            let wants_back = takes_back(claim, row) && !handed_to_another;
            if look.position.is_first() && !wants_back {
                return Continue(Duration::ZERO);
            }
            match passed(look, row, row.document.keep) {
                Passed::Yes { observed } => Continue(observed),
                Passed::Unknown { wait } => {
                    Break(decision(Clause::UnknownAge, Verdict::Observe(wait)))
                }
                Passed::No { wait, .. } => {
                    let to = client.clone();
                    let bound = Refusal::Bound { to, wait };
                    Break(match wants_back {
                        true if is_mutant(Mutant::FailbackInSameSlot) => {
                            decision(Clause::Failback, Verdict::Grant(GrantKind::Failback))
                        }
                        true => decision(Clause::Failback, Verdict::RefusedWithHandoff(bound)),
                        false => refused(Clause::Kept, bound),
                    })
                }
            }
        }
        State::Free => reserved(claim, look, row),
    }
}

/// Clause 14.
fn reserved(claim: &Claim, look: &Look<'_>, row: &Row) -> ControlFlow<Decision, Duration> {
    match &row.expected_client {
        Some(expected) if row.document.granted_epoch.is_none() && *expected != claim.client => {
            let to = expected.clone();
            match passed(look, row, row.document.takeover_after) {
                Passed::Yes { observed } => Continue(observed),
                Passed::Unknown { wait } => {
                    Break(decision(Clause::UnknownAge, Verdict::Observe(wait)))
                }
                Passed::No { wait, .. } => {
                    Break(refused(Clause::Reserved, Refusal::Reserved { to, wait }))
                }
            }
        }
        _ => Continue(Duration::ZERO),
    }
}

/// Clauses 9, 15 and 16: the token is open; at once, or after a head start?
fn open(
    claim: &Claim,
    look: &Look<'_>,
    row: &Row,
    handed_to_another: bool,
    observed: Duration,
) -> Decision {
    let preferred = row.preferred_client();
    let at_once = preferred.is_none_or(|preferred| *preferred == claim.client)
        || takes_back(claim, row)
        || look.position.is_first();
    if at_once && !handed_to_another && !row.gives_way(&claim.client) {
        return decision(Clause::Open, Verdict::Grant(kind_of(claim, row)));
    }
    let clause = if handed_to_another {
        Clause::HandedToAnother
    } else {
        Clause::HeadStart
    };
    let needed = observed.saturating_add(row.document.head_start);
    if look.unchanged_for < needed {
        let wait = needed.saturating_sub(look.unchanged_for);
        return decision(clause, Verdict::Wait(wait));
    }
    decision(clause, Verdict::Grant(kind_of(claim, row)))
}

fn takes_back(claim: &Claim, row: &Row) -> bool {
    claim.failback && row.expected_client.as_ref() == Some(&claim.client)
}

/// The kind of a grant to the claimant, other than a hand-off.
fn kind_of(claim: &Claim, row: &Row) -> GrantKind {
    match row.client_bound() {
        None => GrantKind::Bind,
        Some(bound) if *bound == claim.client => GrantKind::Renew,
        Some(_) if takes_back(claim, row) => GrantKind::Failback,
        Some(_) => GrantKind::Takeover,
    }
}

#[cfg(test)]
#[path = "rule_tests.rs"]
pub(crate) mod tests;
