//! Acts of operators: the questions before them, and the messages about them.

use std::time::Duration;

use super::message::{Level, Message};
use super::printable::quoted;
use super::rfc3339;
use crate::duration::rounded;
use crate::token::operator::{ClientAct, Judgement, MOST_PAUSED_CLIENTS};
use crate::token::{Act, ActRecord, ClientId, GroupName, Pause, Row, State, StoreTime, WallTime};

/// Until when a pause lasts.
pub(super) fn lasting(pause: &Pause, shown: impl Fn(WallTime) -> String) -> String {
    let until = pause.until.map(|until| format!("until {}", shown(until)));
    until.unwrap_or_else(|| "until it is resumed".to_owned())
}

/// The reason of a pause between these marks, if there is one.
pub(super) fn reason(pause: &Pause, before: &str, after: &str) -> String {
    match pause.reason.as_str() {
        "" => String::new(),
        reason => format!("{before}{reason}{after}"),
    }
}

/// A pause after "is paused": `by root until it is resumed (works)`.
pub(super) fn by_until(pause: &Pause, shown: impl Fn(WallTime) -> String) -> String {
    let (until, reason) = (lasting(pause, shown), reason(pause, " (", ")"));
    format!("by {} {until}{reason}", pause.by)
}

/// The message for a performed act, with its time. `row` is the row before the act; an old job may
/// go on for `old_job_for`.
pub fn done(
    act: &Act,
    row: &Row,
    store: &str,
    record: &ActRecord,
    now: &StoreTime,
    old_job_for: Duration,
) -> Message {
    let group = format!("{} in {store}", quoted(row.group.as_str()));
    let holder = row.client_bound();
    let holder = holder.map_or_else(|| "its holder".to_owned(), ToString::to_string);
    let running = matches!(row.state, State::Running { .. });
    let text = match act {
        Act::Pause(pause) => {
            let until = pause.until.map_or_else(
                || "until tokenrun resume".to_owned(),
                |until| format!("until {}", rfc3339(until)),
            );
            let job = match running {
                true => format!("; the job of {holder} goes on"),
                false => String::new(),
            };
            format!("{group} is paused {until}{job}")
        }
        Act::Resume(_) => format!("{group} is resumed"),
        Act::Handoff(to) if running => {
            format!(
                "{group} goes to {to} when the job of {holder} has ended, at the next run of {to}, or at once if one waits there: the hand-off starts nothing"
            )
        }
        Act::Handoff(to) => {
            let others = match row.client_bound() {
                // It stays bound to its client.
                Some(bound) if bound != to => format!(
                    "{bound} can have it after its head start, other clients when --keep is over too, and those in the queue sooner"
                ),
                Some(_) => {
                    "other clients can have it when --keep is over, and those in the queue sooner"
                        .to_owned()
                }
                None => "other clients can have it after their head start".to_owned(),
            };
            format!(
                "{group} goes to {to} at its next run, or at once if one waits there: the hand-off starts nothing; {others}"
            )
        }
        Act::Away if running => format!(
            "{holder} is asked to end its job of {group}; then any other client can have it, and {holder} after its head start"
        ),
        Act::Away => format!(
            "{group} belongs to no client now: any other than {holder} can have it at its next run, and {holder} after its head start"
        ),
        Act::Expect(Some(client)) => format!("{client} is expected to run {group}"),
        Act::Expect(None) => format!("no client is expected to run {group}"),
        Act::Revoke => format!(
            "{holder} is asked to end its job and to free {group}: it gets the request with its next heartbeat, and the token is free when no process of the job is left"
        ),
        Act::Forget(key) => {
            format!("{key} of {group} is forgotten: a run with this key runs again")
        }
        Act::Raise(_) => format!(
            "the fence of {group} is {} now, and the next grant's is higher",
            record.fence
        ),
        Act::Release { .. } if running => format!(
            "{group} was taken from {holder} and is free{}, but its job is not known to have ended: it may still run until {} (for {}), beside the next one",
            and_not_too_soon(row, now),
            rfc3339(now.plus(old_job_for).stamp.wall),
            rounded(old_job_for),
        ),
        Act::Release { .. } => {
            let belonged = row
                .client_bound()
                .map_or_else(String::new, |_| format!("; it belonged to {holder}"));
            format!("{group} is free{}{belonged}", and_not_too_soon(row, now))
        }
    };
    let level = match act {
        Act::Release { .. } if running => Level::Warning,
        _ => Level::Info,
    };
    Message::new(level, act.word(), text)
}

/// What else a release ends.
fn and_not_too_soon(row: &Row, now: &StoreTime) -> String {
    let left = row.too_soon_for(now).map(rounded);
    left.map_or_else(String::new, |left| {
        format!(", and its --at-least is over, of which {left} were left")
    })
}

/// The message for an act that changes nothing.
pub fn nothing(act: &Act, row: &Row, store: &str) -> Message {
    let group = format!("{} in {store}", quoted(row.group.as_str()));
    let text = match act {
        Act::Pause(_) => format!("{group} is paused like that already"),
        Act::Resume(_) => format!("{group} is not paused"),
        Act::Handoff(to) => format!("{group} goes to {to} already"),
        Act::Away => match row.client_bound() {
            Some(client) => format!("{client} is asked already to end its job of {group}"),
            None => format!("{group} belongs to no client"),
        },
        Act::Expect(Some(client)) => format!("{client} is expected to run {group} already"),
        Act::Expect(None) => format!("no client is expected to run {group} already"),
        Act::Revoke => match &row.state {
            State::Running { client, .. } => {
                format!("{client} is asked already to end its job of {group}")
            }
            _ => format!("{group} is not running: there is no session to revoke"),
        },
        Act::Forget(key) => format!("{key} of {group} is not done"),
        Act::Raise(_) => format!("the fence of {group} is that high already"),
        Act::Release { .. } => format!("{group} is free already"),
    };
    unchanged(&text)
}

/// The message for a pause that an act leaves as it is.
pub fn stays_paused(act: &Act, pause: &Pause, row: &Row, store: &str) -> Message {
    let group = quoted(row.group.as_str());
    let until = pause.until.map(rfc3339);
    let until = until.map_or_else(String::new, |until| format!(" until {until}"));
    let (operator, reason) = (&pause.by, reason(pause, " (", ")"));
    let by = format!("{group} in {store} stays paused by {operator}{until}{reason}");
    let text = match act {
        Act::Pause(_) => format!("{by}: that pause is no shorter"),
        _ => format!("{by}: tokenrun resume -g {group}, or --force, ends another operator's pause"),
    };
    unchanged(&text)
}

/// The message for a pause of a client that was made or ended.
pub fn client_acted(act: &ClientAct, client: &ClientId, store: &str) -> Message {
    let client = quoted(client.as_str());
    let text = match act {
        ClientAct::Pause(pause) => {
            let until = lasting(pause, rfc3339);
            format!(
                "{client} gets no token in {store} {until}; a job that it runs goes on: tokenrun move --from {client} --any moves it"
            )
        }
        ClientAct::Resume(_) => format!("{client} can get tokens in {store} again"),
    };
    Message::info(act.word(), text)
}

/// The message that a client is paused.
pub fn client_pause(client: &ClientId, pause: &Pause, store: &str) -> Message {
    let client = quoted(client.as_str());
    let by = by_until(pause, rfc3339);
    Message::info(
        "client_paused",
        format!(
            "{client} gets no token in {store}: it is paused {by}; to end that: tokenrun resume --client {client}"
        ),
    )
}

/// The message that a client is paused like that already, or is not paused.
pub fn client_unchanged(act: &ClientAct, client: &ClientId, store: &str) -> Message {
    let client = quoted(client.as_str());
    match act {
        ClientAct::Pause(_) => {
            unchanged(&format!("{client} in {store} is paused like that already"))
        }
        ClientAct::Resume(_) => unchanged(&format!("{client} in {store} is not paused")),
    }
}

/// The message for a client's pause that an act leaves as it is.
pub fn client_stays_paused(
    act: &ClientAct,
    client: &ClientId,
    pause: &Pause,
    store: &str,
) -> Message {
    let name = quoted(client.as_str());
    let by = format!(
        "{name} in {store} stays paused {}",
        by_until(pause, rfc3339)
    );
    let text = match act {
        ClientAct::Pause(_) => format!("{by}: that pause is no shorter"),
        ClientAct::Resume(_) => {
            format!("{by}: tokenrun resume --client {name} --force ends another operator's pause")
        }
    };
    unchanged(&text)
}

/// The error that no more clients can be paused.
pub fn too_many_paused(store: &str) -> String {
    format!(
        "{MOST_PAUSED_CLIENTS} clients are paused in {store}, and no more can be: end a pause by tokenrun resume --client ID (tokenrun status lists them)"
    )
}

/// The message that a client has no token that could be moved.
pub fn has_none(client: &ClientId, store: &str) -> Message {
    unchanged(&format!(
        "{} has no token in {store}",
        quoted(client.as_str())
    ))
}

/// The message that the client to which a token is moved runs the job already.
pub fn has_it(to: &ClientId, group: &GroupName, store: &str) -> Message {
    let group = quoted(group.as_str());
    unchanged(&format!("{to} runs {group} in {store} already"))
}

fn unchanged(text: &str) -> Message {
    Message::info("nothing_to_do", format!("{text}; nothing was changed"))
}

/// The message for an act that a running token prevents.
pub fn held(act: &Act, row: &Row, store: &str) -> Message {
    let holder = row.client_bound();
    let holder = holder.map_or_else(|| "a session".to_owned(), ToString::to_string);
    let not_done = match act {
        Act::Raise(_) => "its fence was not raised",
        _ => "was not freed",
    };
    let group = quoted(row.group.as_str());
    let text = format!(
        "{group} in {store} is running on {holder} and {not_done}; tokenrun revoke ends the job first, tokenrun release --force frees the token although the job may go on"
    );
    Message::info("held", text)
}

/// How many groups a question names.
const NAMED: usize = 20;

/// The question before an act on all these groups.
pub fn many(verb: &str, groups: &[GroupName], store: &str) -> String {
    let names = groups.iter().take(NAMED);
    let names: Vec<_> = names.map(|group| quoted(group.as_str())).collect();
    let more = match groups.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (count, names) = (groups.len(), names.join(", "));
    format!("{verb} {count} groups in {store}: {names}{more}?")
}

/// The question before a judgement of the whole store.
pub fn all(judgement: &Judgement, store: &str) -> String {
    match judgement {
        Judgement::Settle(_) => format!(
            "settle {store}: every group may be granted at once, beside a job whose grant the store has lost; is it certain that it has lost nothing?"
        ),
        Judgement::Distrust => format!(
            "distrust {store}: no group is granted until every lease is over that the store may have lost; go on?"
        ),
    }
}

/// The question before a client that the store has never seen gets the token.
pub fn for_stranger(verb: &str, to: &ClientId, store: &str) -> String {
    let to = quoted(to.as_str());
    format!("{to} was never seen in {store}; {verb} to it anyway?")
}

/// The warning that a client that the store has never seen is to get the token.
pub fn stranger(to: &ClientId, store: &str) -> Message {
    let to = quoted(to.as_str());
    let text = format!(
        "{to} was never seen in {store}: check the name (tokenrun status lists the clients); if it is wrong, other clients get the token after their head start"
    );
    Message::warning("unknown_client", text)
}

/// The message after a question that was not answered with yes.
pub fn not_agreed() -> Message {
    let text = "nothing was changed: the answer was not yes".to_owned();
    Message::info("not_agreed", text)
}

/// The message that the store has failed, and groups are left.
pub fn aborted(left: usize, store: &str) -> Message {
    let groups = match left {
        1 => "1 group was".to_owned(),
        left => format!("{left} groups were"),
    };
    let text = format!("{groups} not acted on, because the store {store} failed");
    Message::warning("aborted", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_names_some_groups_and_counts_all() {
        let groups = |count: usize| -> Vec<_> {
            let names = (1..=count).map(|n| GroupName::new(&format!("g{n}")).unwrap());
            names.collect()
        };
        assert_eq!(
            many("pause", &groups(2), "the store"),
            "pause 2 groups in the store: \"g1\", \"g2\"?"
        );
        let long = many("revoke", &groups(23), "the store");
        assert!(long.starts_with("revoke 23 groups in the store: \"g1\", "));
        assert!(long.ends_with(", \"g20\" and 3 more?"), "{long}");
    }
}
