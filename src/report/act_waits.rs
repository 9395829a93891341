//! The messages of an act that waits for its effect.

use std::time::Duration;

use super::message::{Context, Message};
use super::printable::quoted;
use super::refusal::why_not;
use crate::duration::rounded;
use crate::token::{ClientId, GroupName, Refusal, Row, State, Verdict};

/// A look at the token.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    pub row: &'a Row,
    /// The store's name.
    pub store: &'a str,
    /// What the rule says to the client.
    pub verdict: &'a Verdict,
    /// The client that the wait is about.
    pub client: &'a ClientId,
    /// True if the client is to get the token; else it is to end its job.
    pub gets_it: bool,
}

impl Seen<'_> {
    fn token(&self) -> String {
        format!("{} in {}", quoted(self.row.group.as_str()), self.store)
    }
}

/// What the first message of a wait adds: an interrupt ends the wait alone.
pub const STAYS: &str = " (Ctrl-C ends this wait; what was asked for stays in force)";

/// The message that the effect is still to come, and why.
pub fn waiting(seen: &Seen<'_>) -> Message {
    let token = seen.token();
    let until = match seen.gets_it {
        true => format!("waiting until {} may have it", seen.client),
        false => format!("waiting for {} to end its job", seen.client),
    };
    let (reason, text) = match seen.verdict {
        Verdict::Refused(why) | Verdict::RefusedWithHandoff(why) => {
            let text = match why {
                Refusal::Held {
                    by,
                    silent_for,
                    takeover_in,
                    ..
                } => format!(
                    "waiting for {by} to end its job of {token}; its last heartbeat is {} old, and its lease is over in {} if no new heartbeat comes",
                    rounded(*silent_for),
                    rounded(*takeover_in)
                ),
                why => format!("{}; {until}", refusal(seen, why)),
            };
            (why.word(), text)
        }
        Verdict::ObserveStore { wait, doubt } => {
            let why = Refusal::Forgetful {
                wait: *wait,
                doubt: *doubt,
            };
            (why.word(), format!("{}; {until}", refusal(seen, &why)))
        }
        Verdict::Observe(wait) => {
            let wait = rounded(*wait);
            let text = format!(
                "{token} was stamped by another clock, and counts as open once it has stayed unchanged for {wait} more; {until}"
            );
            ("observed", text)
        }
        Verdict::Wait(wait) => {
            let wait = rounded(*wait);
            let text =
                format!("{token} is open, and another client has a head start of {wait}; {until}");
            ("head_start", text)
        }
        Verdict::Nested | Verdict::Create | Verdict::Grant(_) => {
            ("open", format!("{token} is open; {until}"))
        }
    };
    Message::info("waiting", text).because(reason)
}

fn refusal(seen: &Seen<'_>, why: &Refusal) -> String {
    let cx = Context {
        group: &seen.row.group,
        store: seen.store,
        program: "",
        command: &[],
        client: seen.client,
        host: None,
        timeout: None,
        ran: None,
    };
    why_not(&cx, why, Some(seen.row))
}

/// The message that the client may have the token, or has it.
pub fn may_have_it(seen: &Seen<'_>, runs: bool) -> Message {
    let (client, token) = (seen.client, seen.token());
    let text = match runs {
        true => format!("{client} runs {token} now"),
        false => format!("{client} may have {token} now: its next run takes it"),
    };
    Message::info("may_have_it", text)
}

/// The message that the client's session has the token no more, or, if it is still in the row, that
/// its lease is over.
pub fn ended(seen: &Seen<'_>, is_in_row: bool) -> Message {
    let (client, token) = (seen.client, seen.token());
    let text = match &seen.row.state {
        _ if is_in_row => {
            format!(
                "{client} is dead or silent, and its lease of {token} is over: other clients can have it"
            )
        }
        State::Free => format!("{client} no longer holds {token}: it is free"),
        State::Idle { client: other } => {
            format!("{client} no longer holds {token}: it is idle and belongs to {other}")
        }
        State::Running { client: other, .. } => {
            format!("{client} no longer holds {token}: {other} runs it now")
        }
    };
    Message::info("ended", text)
}

/// The message that the wait is over without the effect.
pub fn given_up(group: &GroupName, store: &str, waited: Duration) -> Message {
    let (waited, group) = (rounded(waited), quoted(group.as_str()));
    let text = format!(
        "waited {waited} for {group} in {store}, in vain; what was asked for stays in force"
    );
    Message::info("gave_up", text)
}
