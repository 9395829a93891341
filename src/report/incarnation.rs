//! Messages about a store that may have forgotten a grant.

use std::time::Duration;

use super::message::{Context, Message};
use super::rfc3339;
use super::screen::Times;
use crate::duration::rounded;
use crate::token::operator::Judgement;
use crate::token::{Doubt, Incarnation, Observation, StoreTime};

/// Why a store may have forgotten a grant; reads after "it".
pub(super) const fn doubt_text(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::New => "is new: it is younger than the longest takeover-after of this group",
        Doubt::Unnoted => {
            "has no record that it is older than the longest takeover-after of this group"
        }
        Doubt::Another => {
            "is not the one that was seen before (a promoted server, a restored or copied store, or a Redis server that was restarted)"
        }
        Doubt::Restarted => "was restarted, and its settings do not protect its last commits",
        Doubt::Unknown => "does not say which one it is",
        Doubt::Unreadable => "has a record of its age that can't be read",
        Doubt::Newer => "must be observed, for a reason that only a newer tokenrun knows",
        Doubt::Distrusted => "is distrusted by an operator",
        Doubt::Settled => "was settled by an operator for less than this group's takeover-after",
    }
}

/// How long nothing is granted, and why.
pub(super) fn observed_until(observation: &Observation, now: &StoreTime, times: &Times) -> String {
    let Observation { wait, doubt } = *observation;
    let until = match doubt {
        Doubt::Unknown => String::new(),
        _ => format!(" until {}", times.full(now.plus(wait).stamp.wall)),
    };
    let why = doubt_text(doubt);
    format!("nothing is granted{until}: the store may have forgotten a grant, as it {why}")
}

/// The message of a run that observes a store.
pub(super) fn observing(
    cx: &Context<'_>,
    incarnation: Option<&Incarnation>,
    doubt: Doubt,
    now: &StoreTime,
    wait: Duration,
) -> String {
    let until = rfc3339(now.plus(wait).stamp.wall);
    let settle = incarnation.map_or_else(String::new, |incarnation| {
        format!("; if you know that nothing was lost: tokenrun settle {incarnation}")
    });
    let (group, store, why, wait) = (cx.group(), cx.store, doubt_text(doubt), rounded(wait));
    format!(
        "the store {store} may have forgotten a grant: it {why}; nothing of {group} is granted for {wait}, until {until} (clause 0){settle}"
    )
}

/// The message for an operator's judgement.
pub fn judged(judgement: &Judgement, incarnation: &Incarnation, store: &str) -> Message {
    let text = match judgement {
        Judgement::Settle(_) => {
            format!("{store} ({incarnation}) is settled: its tokens are granted without a wait")
        }
        Judgement::Distrust => format!(
            "{store} ({incarnation}) is distrusted: nothing is granted in a group until its longest takeover-after has passed; running jobs go on"
        ),
    };
    Message::info(judgement.word(), text)
}

/// The message that the store's incarnation is no longer the one that the operator saw.
pub fn is_another(shown: &Incarnation, now: &Incarnation, store: &str) -> Message {
    let text = format!("{store} is {now} and not {shown}; nothing was changed");
    Message::info("another_incarnation", text)
}

/// The message that nothing needs to be settled.
pub fn is_settled(incarnation: &Incarnation, store: &str) -> Message {
    let text = format!("{store} ({incarnation}) is trusted already; nothing was changed");
    Message::info("nothing_to_do", text)
}
