//! The messages of a run that waits in the queue.

use std::time::Duration;

use super::message::Context;
use super::refusals::why_not;
use crate::duration::rounded;
use crate::token::{Refusal, Row, StoreTime};

/// The line for a log when the wait begins.
pub(super) fn begins(
    cx: &Context<'_>,
    row: Option<&Row>,
    why: &Refusal,
    ahead: usize,
    left: Option<Duration>,
) -> String {
    let others = match ahead {
        _ if matches!(why, Refusal::Behind { .. }) => String::new(),
        0 => String::new(),
        1 => ", behind another".to_owned(),
        more => format!(", behind {more} others"),
    };
    let limit = left.map_or_else(String::new, |left| {
        format!(", for at most {}", rounded(left))
    });
    let why_not = why_not(cx, why, row);
    format!("{why_not}; waiting in the queue{others}{limit}")
}

/// The line for a log when the wait has led to the token.
pub(super) fn ends(cx: &Context<'_>, waited: Duration) -> String {
    format!(
        "waited {} for {} in {}; this run has the token now",
        rounded(waited),
        cx.group(),
        cx.store
    )
}

/// The line on a terminal meanwhile: how long the run has waited, which client has the token and
/// for how long, how many waiters come before, and when the token could be taken over.
#[must_use]
pub fn display(
    cx: &Context<'_>,
    row: Option<&Row>,
    now: &StoreTime,
    why: &Refusal,
    ahead: usize,
) -> String {
    let place = match ahead {
        0 => "next in the queue".to_owned(),
        ahead => format!("{ahead} ahead in the queue"),
    };
    let reason = match why {
        Refusal::Held {
            by, takeover_in, ..
        } => {
            let held_for = row.and_then(|row| {
                let since = row.acquired_at()?;
                Some(now.calendar_age_of(since, row.document.granted_epoch.as_ref()))
            });
            let held_for = held_for.map_or_else(String::new, |held_for| {
                format!(" for {}", rounded(held_for))
            });
            let takeover = rounded(*takeover_in);
            format!("held by {by}{held_for}, takeover possible in {takeover}")
        }
        Refusal::AliveHere(_) => "its silent holder is alive on this host".to_owned(),
        Refusal::Paused(pause) => format!("paused by {}", pause.by),
        Refusal::TooSoon { wait } => format!("too soon for {}", rounded(*wait)),
        Refusal::Behind { .. } => "open to those before".to_owned(),
        Refusal::Bound { to, wait } => format!("kept for {to} for {}", rounded(*wait)),
        Refusal::Forgetful { wait, .. } => {
            format!("the store is observed for {}", rounded(*wait))
        }
        Refusal::HeadStart { wait, .. } => format!("open after a head start of {}", rounded(*wait)),
        Refusal::Observed { wait } => format!("observed for {}", rounded(*wait)),
        Refusal::Reserved { to, wait } => format!("reserved for {to} for {}", rounded(*wait)),
    };
    format!("{}, {place}: {reason}", cx.group())
}
