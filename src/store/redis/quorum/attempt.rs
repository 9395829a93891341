//! The two rounds of a commit. The first one promises, and shows what is there; the second writes, at all that have
//! promised it.

use tokio::time::sleep;

use super::answers::Answers;
use super::plan::Plan;
use super::rejoin::mend;
use super::round::{Members, TRIES};
use super::shown::{Group, Shown, time};
use super::wish::{Did, To, Wish};
use crate::store::StoreError;
use crate::store::kv::flights::Turned;
use crate::store::kv::{Commit, Found, Outcome, drawn_pause};
use crate::store::net::deadline::Deadline;
use crate::token::Until;

/// Gives a majority what a round has left of a register, which may have reached fewer.
pub(super) async fn complete(
    members: &mut Members,
    deadline: Deadline,
    register: &str,
) -> Result<(), StoreError> {
    let nothing = Commit::default();
    let mut plan = Plan::completing(register, &nothing);
    for tried in 0..TRIES {
        // It is one level deep: this compares nothing besides.
        let trying = Box::pin(attempt(members, deadline, None, &mut plan));
        if let Tried::Happened(_) = trying.await? {
            return Ok(());
        }
        sleep(drawn_pause(tried)).await;
    }
    Err(members.gave_up())
}

/// What a try has come to.
pub(super) enum Tried {
    /// It has happened. What is to be read then, if a majority holds it alike.
    Happened(Option<Found>),
    /// It has not happened, and will not.
    Ended(Outcome),
    /// Another client was in between, or a member had to join first.
    Again,
}

/// Both rounds, once.
pub(super) async fn attempt(
    members: &mut Members,
    deadline: Deadline,
    turned: Option<&Turned>,
    plan: &mut Plan<'_>,
) -> Result<Tried, StoreError> {
    let ballot = members.next_ballot();
    let answers = members.ask(deadline, &plan.first_round(ballot)).await;
    let Some(group) = answers.of_majority() else {
        mend(members, &answers, deadline).await?;
        return Ok(Tried::Again);
    };
    let now = time(members, &group, turned);
    let shown = Shown::of(members.all.len(), &group);
    if plan.is_behind(&shown, ballot, members.highest()) {
        return Ok(Tried::Again);
    }
    if let Some(register) = plan.incomplete(&shown) {
        complete(members, deadline, register).await?;
        return Ok(Tried::Again);
    }
    let Some(has_happened) = plan.has_happened(&shown) else {
        return Err(members.unknown());
    };
    let outcome = match has_happened {
        true => Outcome::Done,
        false => plan.outcome(&shown, &now),
    };
    if outcome != Outcome::Done {
        return Ok(Tried::Ended(outcome));
    }
    let puts = plan.puts(&shown, &now, ballot, !has_happened);
    let wish = Wish::Accept {
        ballot,
        registers: plan.registers.clone(),
        puts,
        announces: plan.commit.announces.as_ref().map(|it| it.channel.clone()),
        asked: plan.commit.then.clone(),
    };
    // What an earlier try has written is completed, however late.
    let until = plan.commit.until.as_ref();
    let until = until.filter(|_| turned.is_none() && !has_happened);
    let to = addresses(members, &group, until);
    let needed = members.majority();
    let enough = |answers: &Answers| answers.sure() >= needed;
    let accepted = members.round(deadline, &wish, to, enough).await;
    match accepted.count(Did::Done) {
        done if done >= needed => {
            let found = accepted.of_majority().and_then(|group| {
                let now = time(members, &group, turned);
                let shown = Shown::of(members.all.len(), &group);
                shown.clear(&plan.commit.then, &group, now, turned.is_some())
            });
            Ok(Tried::Happened(found))
        }
        0 if !accepted.are_open() => match accepted.count(Did::Expired) {
            0 => Ok(Tried::Again),
            _ => Ok(Tried::Ended(Outcome::Expired)),
        },
        // Fewer than a majority have it, or may have it: the next round completes it, or another client's does.
        _ => {
            plan.sent.push(ballot);
            match accepted.sure() >= needed || members.asks_late_ones(&accepted) {
                true => Ok(Tried::Again),
                false => Err(members.error(&accepted)),
            }
        }
    }
}

/// The members, in the generation of the first round: one that has joined since has not promised. They accept until then.
fn addresses(members: &Members, group: &Group<'_>, until: Option<&Until>) -> Vec<Option<To>> {
    let generation = group.first().map(|(_, report)| report.generation);
    let to = members.all.iter().enumerate().map(|(index, member)| {
        let report = group.iter().find(|(of, _)| *of == index);
        let expiry_ms = match until {
            None => None,
            // One whose clock is not known might accept too late.
            Some(until) => Some(until.tick_ms().saturating_add(member.ahead_ms?)),
        };
        Some(To {
            process: report.map(|(_, report)| report.process.clone()),
            generation,
            of_unsure: false,
            within_ms: 0,
            expiry_ms,
        })
    });
    to.collect()
}
