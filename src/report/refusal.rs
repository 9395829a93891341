//! Why a run is refused, or waits in the queue.

use std::time::Duration;

use super::acts::by_until;
use super::incarnation::doubt_text;
use super::json::not_before;
use super::message::Context;
use super::rfc3339;
use crate::duration::rounded;
use crate::token::{Refusal, Row, StoreTime};

/// The reason of a refusal: the holder, the store, since when, and when that may change.
pub(super) fn refused(cx: &Context<'_>, why: &Refusal, seen: Option<(&Row, &StoreTime)>) -> String {
    let why_not = why_not(cx, why, seen.map(|(row, _)| row));
    format!("{why_not}; {} was not started", cx.program)
}

/// How long until a refusal is over by time alone. A pause has an end of its own.
pub(super) fn wait_of(why: &Refusal) -> Option<Duration> {
    match why {
        Refusal::Held {
            takeover_in: wait, ..
        }
        | Refusal::TooSoon { wait }
        | Refusal::Bound { wait, .. }
        | Refusal::Reserved { wait, .. }
        | Refusal::HeadStart { wait, .. }
        | Refusal::Observed { wait }
        | Refusal::Forgetful { wait, .. } => Some(*wait),
        Refusal::Paused(_)
        | Refusal::ClientPaused(_)
        | Refusal::AliveHere(_)
        | Refusal::Behind { .. } => None,
    }
}

pub(super) fn why_not(cx: &Context<'_>, why: &Refusal, seen: Option<&Row>) -> String {
    let (group, store) = (cx.group(), cx.store);
    let left = wait_of(why).map_or_else(String::new, rounded);
    match why {
        Refusal::Held {
            by,
            same_client,
            silent_for,
            ..
        } => {
            let holder = match *same_client {
                false => by.to_string(),
                true if is_here(cx, seen) => format!("{by}, in an earlier run on this host"),
                true => {
                    format!("{by}, in another session: two live instances share this client id")
                }
            };
            let not_before = seen.and_then(not_before).map(rfc3339);
            let but = not_before.map_or_else(String::new, |at| {
                format!(", but not before {at} (--at-least)")
            });
            let (since, age) = (seen.map_or_else(String::new, since), rounded(*silent_for));
            format!(
                "{group} is held by {holder}{since} in {store}; its last heartbeat is {age} old, and it can be taken over in {left} if no new heartbeat comes{but}"
            )
        }
        Refusal::AliveHere(processes) => {
            let who = match processes.as_slice() {
                [] => "processes that can't be seen from here (another user's, or a container's)"
                    .to_owned(),
                processes => processes.join(", "),
            };
            format!(
                "{group} in {store}: its holder is silent, but its run is still alive here: {who}; end them first"
            )
        }
        Refusal::Paused(pause) => {
            format!("{group} in {store} is paused {}", by_until(pause, rfc3339))
        }
        Refusal::ClientPaused(pause) => format!(
            "{} gets no token in {store}: it is paused {}",
            cx.client,
            by_until(pause, rfc3339)
        ),
        Refusal::TooSoon { .. } => format!(
            "{group} in {store} ran too recently for its --at-least; it can run again in {left}, or after tokenrun release -g {group}"
        ),
        Refusal::Behind { ahead: 1 } => {
            format!("{group} in {store}: another session is ahead in the queue")
        }
        Refusal::Behind { ahead } => {
            format!("{group} in {store}: {ahead} other sessions are ahead in the queue")
        }
        Refusal::Bound { to, .. } => format!(
            "{group} in {store} belongs to {to}, which ran it a short while ago; other clients can have it in {left}"
        ),
        Refusal::Forgetful { doubt, .. } => format!(
            "the store {store} may have forgotten a grant: it {}; nothing of {group} is granted for {left} more",
            doubt_text(*doubt)
        ),
        Refusal::HeadStart { of, .. } => {
            let first = of.as_ref().map_or("another client", |of| of.as_str());
            format!("{group} in {store} is open, and {first} has a head start of {left} more")
        }
        Refusal::Observed { .. } => format!(
            "the age of the token of {group} in {store} is unknown, because another clock stamped it; it is observed for {left} more: run it with a longer --wait, or without one"
        ),
        Refusal::Reserved { to, .. } => format!(
            "{group} in {store} is new and reserved for {to}, which is expected to run it; other clients can have it in {left}"
        ),
    }
}

/// True if the run in the row is on this host.
fn is_here(cx: &Context<'_>, seen: Option<&Row>) -> bool {
    let host = seen.and_then(|row| row.document.host.as_deref());
    host.is_some() && host == cx.host
}

/// The host of a run and its begin. Reads after the client.
fn since(row: &Row) -> String {
    let pid = row.document.pid;
    let pid = pid.map_or_else(String::new, |pid| format!(", pid {pid}"));
    let host = row.document.host.as_ref();
    let host = host.map_or_else(String::new, |host| format!(" (host {host}{pid})"));
    let since = row.acquired_at().map(|at| rfc3339(at.wall));
    let since = since.map_or_else(String::new, |at| format!(" since {at}"));
    format!("{host}{since}")
}

/// The line for a log when the wait begins.
pub(super) fn wait_begins(
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
    let limit = left.map(rounded);
    let limit = limit.map_or_else(String::new, |left| format!(", for at most {left}"));
    let why_not = why_not(cx, why, row);
    format!("{why_not}; waiting in the queue{others}{limit}")
}

/// The line for a log when the wait has led to the token.
pub(super) fn wait_ends(cx: &Context<'_>, waited: Duration) -> String {
    let (waited, group, store) = (rounded(waited), cx.group(), cx.store);
    format!("waited {waited} for {group} in {store}; this run has the token now")
}

/// The line on a terminal meanwhile: how long the run has waited, which client has the token and
/// for how long, how many waiters come before, and when the token could be taken over.
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
    let left = wait_of(why).map_or_else(String::new, rounded);
    let reason = match why {
        Refusal::Held { by, .. } => {
            let held_for = row.and_then(|row| {
                let since = row.acquired_at()?;
                Some(now.calendar_age_of(since, row.document.granted_epoch.as_ref()))
            });
            let held_for = held_for.map(rounded);
            let held_for = held_for.map_or_else(String::new, |it| format!(" for {it}"));
            format!("held by {by}{held_for}, takeover possible in {left}")
        }
        Refusal::AliveHere(_) => "its silent holder is alive on this host".to_owned(),
        Refusal::Paused(pause) => format!("paused by {}", pause.by),
        Refusal::ClientPaused(pause) => format!("this client is paused by {}", pause.by),
        Refusal::TooSoon { .. } => format!("too soon for {left}"),
        Refusal::Behind { .. } => "open to those before".to_owned(),
        Refusal::Bound { to, .. } => format!("kept for {to} for {left}"),
        Refusal::Forgetful { .. } => format!("the store is observed for {left}"),
        Refusal::HeadStart { .. } => format!("open after a head start of {left}"),
        Refusal::Observed { .. } => format!("observed for {left}"),
        Refusal::Reserved { to, .. } => format!("reserved for {to} for {left}"),
    };
    format!("{}, {place}: {reason}", cx.group())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::token::rule::tests::fixture::{but, client, running, session};

    #[test]
    fn another_run_of_this_client_is_told_from_another_host_with_its_id() {
        let row = but(running("a"), |row| row.document.host = Some("vm-1".into()));
        let (group, me) = (row.group.clone(), client("a"));
        let why = Refusal::Held {
            by: client("a"),
            session: session("a0"),
            same_client: true,
            silent_for: Duration::ZERO,
            takeover_in: Duration::from_secs(60),
        };
        let said = |host| {
            let cx = Context {
                group: &group,
                store: "the store",
                program: "run.sh",
                command: &[],
                client: &me,
                host,
                timeout: None,
                ran: None,
            };
            why_not(&cx, &why, Some(&row))
        };
        let text = said(Some("vm-1"));
        assert!(
            text.starts_with("\"g\" is held by a, in an earlier run on this host (host vm-1"),
            "{text}"
        );
        for elsewhere in [Some("vm-2"), None] {
            let text = said(elsewhere);
            assert!(
                text.contains("two live instances share this client id"),
                "{text}"
            );
        }
    }
}
