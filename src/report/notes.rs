//! The column NOTE of `status`: what a reader wants to know next, the most important first. Pure.

use super::json::not_before;
use super::times::Times;
use crate::duration::brief;
use crate::token::{Memory, Row, StoreTime};

/// What is noted of a token that this many sessions wait for.
pub(super) fn note(
    row: &Row,
    waiting: usize,
    (memory, now): (&Memory, &StoreTime),
    times: &Times,
) -> String {
    let wall = now.stamp.wall;
    let revoked = row.document.revoke_requested;
    let observed = memory.observation(row.longest_lease(), now);
    let observed = observed.map(|it| {
        let until = times.short(now.plus(it.wait).stamp.wall, wall);
        format!("nothing granted until {until}")
    });
    let handoff = row.document.handoff.as_ref().map(|it| {
        let why = match it.for_failback {
            true => "failback",
            false => "handoff",
        };
        format!("next: {} ({why})", it.to)
    });
    let next = not_before(row).filter(|at| *at > wall);
    let notes = [
        revoked.then(|| "revoke requested".to_owned()),
        observed,
        silence(row, now),
        pause(row, now, times),
        handoff,
        (waiting > 0).then(|| format!("{waiting} waiting")),
        displaced(row),
        next.map(|at| format!("not before {}", times.short(at, wall))),
    ];
    notes.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// A holder that has been silent for half of what it may be has missed heartbeats.
fn silence(row: &Row, now: &StoreTime) -> Option<String> {
    row.run()?;
    let limit = row.document.takeover_after;
    let Some(age) = row.age(now) else {
        return Some("another clock".to_owned());
    };
    let left = limit.saturating_sub(age);
    (age >= limit / 2).then(|| match left.is_zero() {
        true => format!("silent {}, takeover possible", brief(age)),
        false => format!("silent {}, takeover in {}", brief(age), brief(left)),
    })
}

/// Without who paused it where the state says that.
fn pause(row: &Row, now: &StoreTime, times: &Times) -> Option<String> {
    let pause = row.pause_at(now)?;
    let by = row.run().map(|_| pause.by.clone());
    let reason = Some(pause.reason.clone()).filter(|reason| !reason.is_empty());
    let what = match (by, reason) {
        (Some(by), Some(reason)) => Some(format!("{by}: {reason}")),
        (by, reason) => by.or(reason),
    };
    let until = pause.until;
    let until = until.map(|at| format!("until {}", times.short(at, now.stamp.wall)));
    let parts: Vec<_> = what.into_iter().chain(until).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The expected client, where the token belongs to another.
fn displaced(row: &Row) -> Option<String> {
    let (expected, bound) = (row.expected_client.as_ref()?, row.client_bound()?);
    (expected != bound).then(|| format!("expected {expected}"))
}
