//! Acts of operators, in sentences and as JSON.

use std::time::Duration;

use serde::Serialize;

use super::message::{Level, Message};
use super::printable::quoted;
use super::rfc3339;
use crate::duration::rounded;
use crate::token::{Act, ActRecord, ClientId, GroupName, Pause, Row, State, StoreTime};

/// One act, as `history --json` shows it. Only acts have a field `act`.
#[derive(Debug, Serialize)]
pub struct ActObject<'a> {
    pub group: &'a str,
    /// The act's word.
    pub act: &'a str,
    /// The client that the act concerns.
    pub client: Option<&'a str>,
    /// Until when a pause lasts.
    pub until: Option<String>,
    /// The key of `--once` that was forgotten.
    pub once_key: Option<&'a str>,
    /// The store's incarnation that the act concerns.
    pub incarnation: Option<&'a str>,
    pub reason: Option<&'a str>,
    /// The operator.
    pub by: &'a str,
    /// The operator's host.
    pub host: Option<&'a str>,
    /// The time, by the store's wall clock.
    pub at: String,
    /// The fence that the token had.
    pub fence: i64,
}

impl<'a> ActObject<'a> {
    /// The object for an act.
    #[must_use]
    pub fn of(act: &'a ActRecord) -> Self {
        Self {
            group: act.group.as_str(),
            act: &act.act,
            client: act.client.as_ref().map(|client| client.as_str()),
            until: act.until.map(rfc3339),
            once_key: act.once_key.as_deref(),
            incarnation: act.incarnation.as_ref().map(|it| it.0.as_str()),
            reason: act.actor.reason.as_deref(),
            by: &act.actor.by,
            host: act.actor.host.as_deref(),
            at: rfc3339(act.at),
            fence: act.fence.0,
        }
    }
}

/// An act that was just performed, as its own `--json` shows it.
#[derive(Debug, Serialize)]
pub struct Performed<'a> {
    #[serde(flatten)]
    pub act: ActObject<'a>,
    /// Until when the job that lost its token may still run, at most.
    pub old_job_until: Option<String>,
}

/// The operator and the host of an act.
#[must_use]
pub fn whose(act: &ActRecord) -> String {
    let host = act.actor.host.as_deref();
    host.map_or_else(
        || act.actor.by.clone(),
        |host| format!("{} on {host}", act.actor.by),
    )
}

/// The message for a performed act, with its time. `row` is the row before the act; an old job may
/// go on for `old_job_for`.
#[must_use]
pub fn done(
    act: &Act,
    row: &Row,
    store: &str,
    (record, now): (&ActRecord, &StoreTime),
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
            let job = if running {
                format!("; the job of {holder} goes on")
            } else {
                String::new()
            };
            format!("{group} is paused {until}{job}")
        }
        Act::Resume(_) => format!("{group} is resumed"),
        Act::Handoff(to) if running => {
            format!("{group} goes to {to} when the job of {holder} has ended")
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
            format!("{group} goes to {to} at its next run; {others}")
        }
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
    let level = if running && matches!(act, Act::Release { .. }) {
        Level::Warning
    } else {
        Level::Info
    };
    Message::new(level, act.word(), text)
}

/// What else a release ends.
fn and_not_too_soon(row: &Row, now: &StoreTime) -> String {
    row.too_soon_for(now).map_or_else(String::new, |left| {
        format!(
            ", and its --at-least is over, of which {} were left",
            rounded(left)
        )
    })
}

/// The message for an act that changes nothing.
#[must_use]
pub fn nothing(act: &Act, row: &Row, store: &str) -> Message {
    let group = format!("{} in {store}", quoted(row.group.as_str()));
    let text = match act {
        Act::Pause(_) => format!("{group} is paused like that already"),
        Act::Resume(_) => format!("{group} is not paused"),
        Act::Handoff(to) => format!("{group} goes to {to} already"),
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
#[must_use]
pub fn stays_paused(act: &Act, pause: &Pause, row: &Row, store: &str) -> Message {
    let group = quoted(row.group.as_str());
    let until = pause
        .until
        .map_or_else(String::new, |until| format!(" until {}", rfc3339(until)));
    let reason = match pause.reason.as_str() {
        "" => String::new(),
        reason => format!(" ({reason})"),
    };
    let by = format!(
        "{group} in {store} stays paused by {}{until}{reason}",
        pause.by
    );
    let text = match act {
        Act::Pause(_) => format!("{by}: that pause is no shorter"),
        _ => format!("{by}: tokenrun resume -g {group}, or --force, ends another operator's pause"),
    };
    unchanged(&text)
}

/// The message that the client to which a token is moved runs the job already.
#[must_use]
pub fn has_it(to: &ClientId, group: &GroupName, store: &str) -> Message {
    let group = quoted(group.as_str());
    unchanged(&format!("{to} runs {group} in {store} already"))
}

fn unchanged(text: &str) -> Message {
    let text = format!("{text}; nothing was changed");
    Message::new(Level::Info, "nothing_to_do", text)
}

/// The message for an act that a running token prevents.
#[must_use]
pub fn held(act: &Act, row: &Row, store: &str) -> Message {
    let holder = row.client_bound();
    let holder = holder.map_or_else(|| "a session".to_owned(), ToString::to_string);
    let not_done = match act {
        Act::Raise(_) => "its fence was not raised",
        _ => "was not freed",
    };
    Message::new(
        Level::Info,
        "held",
        format!(
            "{} in {store} is running on {holder} and {not_done}; tokenrun revoke ends the job first, tokenrun release --force frees the token although the job may go on",
            quoted(row.group.as_str())
        ),
    )
}
