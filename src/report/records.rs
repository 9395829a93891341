//! The records of history: their JSON, their words, and the table of keys that are done.

use serde::{Serialize, Serializer};

use super::rfc3339;
use super::screen::{Screen, Times};
use super::table::{Cell, Column, Line, table};
use crate::token::{
    ActRecord, ClientId, Fence, GrantKind, GroupName, Incarnation, OnceMark, Outcome,
    RefusalRecord, RunRecord, SessionId, WallTime,
};

/// One run, as `history --json` shows it.
#[derive(Debug, Serialize)]
pub struct RunObject<'a>(#[serde(with = "RunFields")] pub &'a RunRecord);

#[derive(Serialize)]
#[serde(remote = "RunRecord")]
pub(super) struct RunFields {
    group: GroupName,
    /// The fencing token of its grant.
    fence: Fence,
    session: SessionId,
    client: ClientId,
    /// The client that the token belonged to before, if another.
    previous_client: Option<ClientId>,
    /// The host of the run.
    host: Option<String>,
    /// The supervisor's pid on that host.
    pid: Option<i32>,
    /// The user's name for the run.
    label: Option<String>,
    /// The program's name.
    program: String,
    /// The key of `--once`.
    once_key: Option<String>,
    /// How the client got the token.
    grant: GrantKind,
    #[serde(serialize_with = "time")]
    started_at: WallTime,
    /// The time of the end, or of the last heartbeat.
    #[serde(serialize_with = "time_if_any")]
    ended_at: Option<WallTime>,
    /// How it ended.
    #[serde(serialize_with = "word")]
    outcome: Outcome,
    /// The job's exit code, if it exited.
    exit_code: Option<i32>,
    /// The signal that killed the job, if one did.
    signal: Option<i32>,
    /// True if it lost its token because an operator revoked it.
    revoked: bool,
    /// Why the job could not be started.
    reason: Option<String>,
    /// True if it failed with `--move-on-failure`, so that any other client came next.
    moved_on: bool,
}

/// Refusals of one client for one reason, as `history --json` shows them. Only they have a field
/// `refused`.
#[derive(Debug, Serialize)]
pub struct RefusalObject<'a>(#[serde(with = "RefusalFields")] pub &'a RefusalRecord);

#[derive(Serialize)]
#[serde(remote = "RefusalRecord")]
pub(super) struct RefusalFields {
    group: GroupName,
    /// The reason, in a word.
    #[serde(rename = "refused")]
    reason: String,
    /// The refused client.
    client: ClientId,
    /// The host of the last of them.
    host: Option<String>,
    /// The client that is in the way.
    holder: Option<ClientId>,
    paused_by: Option<String>,
    paused_reason: Option<String>,
    #[serde(serialize_with = "time_if_any")]
    paused_until: Option<WallTime>,
    /// The number of waiters ahead.
    ahead: Option<u64>,
    /// Why the job could not be started.
    #[serde(rename = "reason")]
    error: Option<String>,
    /// The number of them; at most one a minute counts.
    count: u64,
    /// The first of them, by the store's wall clock.
    #[serde(serialize_with = "time")]
    first_at: WallTime,
    /// The last of them.
    #[serde(serialize_with = "time")]
    last_at: WallTime,
    /// The token's fence at the last of them.
    fence: Fence,
}

/// The word of an outcome: stores have an older one for a killed job.
pub(super) fn word<S: Serializer>(outcome: &Outcome, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(outcome.word())
}

/// One act, as `history --json` shows it. Only acts have a field `act`.
#[derive(Debug, Serialize)]
pub struct ActObject<'a>(#[serde(with = "ActFields")] pub &'a ActRecord);

#[derive(Serialize)]
#[serde(remote = "ActRecord")]
pub(super) struct ActFields {
    group: GroupName,
    /// The act's word.
    act: String,
    /// The client that the act concerns.
    client: Option<ClientId>,
    /// Until when a pause lasts.
    #[serde(serialize_with = "time_if_any")]
    until: Option<WallTime>,
    /// The key of `--once` that was forgotten.
    once_key: Option<String>,
    /// The store's incarnation that the act concerns.
    incarnation: Option<Incarnation>,
    #[serde(getter = "reason_of")]
    reason: Option<String>,
    /// The operator.
    #[serde(getter = "operator_of")]
    by: String,
    /// The operator's host.
    #[serde(getter = "host_of")]
    host: Option<String>,
    /// The time, by the store's wall clock.
    #[serde(serialize_with = "time")]
    at: WallTime,
    /// The fence that the token had.
    fence: Fence,
}

const fn reason_of(act: &ActRecord) -> &Option<String> {
    &act.actor.reason
}

const fn operator_of(act: &ActRecord) -> &String {
    &act.actor.by
}

const fn host_of(act: &ActRecord) -> &Option<String> {
    &act.actor.host
}

/// An act that was just performed, as its own `--json` shows it.
#[derive(Debug, Serialize)]
pub struct Performed<'a> {
    #[serde(flatten)]
    pub act: ActObject<'a>,
    /// Until when the job that lost its token may still run, at most.
    pub old_job_until: Option<String>,
}

/// One key that is done, as `once list --json` shows it.
#[derive(Debug, Serialize)]
pub struct MarkObject<'a>(#[serde(with = "MarkFields")] pub &'a OnceMark);

#[derive(Serialize)]
#[serde(remote = "OnceMark")]
struct MarkFields {
    group: GroupName,
    #[serde(rename = "once_key")]
    key: String,
    /// When the run that did it ended.
    #[serde(serialize_with = "time")]
    done_at: WallTime,
    /// The fencing token of its grant.
    fence: Fence,
    session: SessionId,
    client: ClientId,
}

/// A time of an object.
pub(super) fn time<S: Serializer>(at: &WallTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*at))
}

/// A time of an object that may have none.
pub(super) fn time_if_any<S: Serializer>(
    at: &Option<WallTime>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    at.map(rfc3339).serialize(serializer)
}

const MARKS: [Column; 5] = [
    Column::whole("DONE"),
    Column::names("GROUP", [20, 16, 8]),
    Column::names("KEY", [30, 20, 8]),
    Column::names("CLIENT", [16, 12, 6]),
    Column::whole("FENCE"),
];

/// A table of keys that are done, one a line.
pub fn marks(marks: &[OnceMark], screen: &Screen) -> String {
    let line = |mark: &OnceMark| {
        let cells = [
            screen.times.full(mark.done_at),
            mark.group.to_string(),
            mark.key.clone(),
            mark.client.to_string(),
            mark.fence.to_string(),
        ];
        Line::Cells(cells.map(Cell::from).into())
    };
    table(&MARKS, marks.iter().map(line).collect(), screen)
}

/// The operator and the host of an act.
pub fn whose(act: &ActRecord) -> String {
    let host = act.actor.host.as_deref();
    host.map_or_else(
        || act.actor.by.clone(),
        |host| format!("{} on {host}", act.actor.by),
    )
}

/// The host of a client, where it has another name.
pub(super) fn other_host(host: Option<&str>, client: &ClientId) -> String {
    let host = host.filter(|host| *host != client.as_str());
    host.map_or_else(String::new, |host| format!(" (host {host})"))
}

/// The reason of a refusal. Reads after "refused: ".
pub fn reason(refusal: &RefusalRecord, times: &Times, now: WallTime) -> String {
    let holder = || {
        let holder = refusal.holder.as_ref();
        holder.map_or_else(|| "another client".to_owned(), ToString::to_string)
    };
    match refusal.reason.as_str() {
        "held" => format!("{} held the token", holder()),
        "alive_here" => format!("processes of {}'s run were alive on this host", holder()),
        "paused" => paused(refusal, times, now),
        "client_paused" => format!("the client was {}", paused(refusal, times, now)),
        "too_soon" => "the run before was too recent (--at-least)".to_owned(),
        "behind" => match refusal.ahead {
            Some(1) | None => "another was ahead in the queue".to_owned(),
            Some(ahead) => format!("{ahead} were ahead in the queue"),
        },
        "bound" => format!(
            "the token belonged to {}, which ran shortly before",
            holder()
        ),
        "reserved" => format!("the group was new and reserved for {}", holder()),
        "head_start" => format!("the token was open, and {} had a head start", holder()),
        "observed" => "the age of the token was unknown, and it was observed".to_owned(),
        "not_started" => {
            (refusal.error.clone()).unwrap_or_else(|| "could not start the job".into())
        }
        "store_observed" => "the store may have forgotten a grant and was observed".to_owned(),
        other => other.to_owned(),
    }
}

fn paused(refusal: &RefusalRecord, times: &Times, now: WallTime) -> String {
    let by = refusal.paused_by.as_deref().unwrap_or("an operator");
    let until = refusal.paused_until;
    let until = until.map_or_else(String::new, |at| format!(" until {}", times.short(at, now)));
    let why = refusal.paused_reason.as_ref();
    let why = why.map_or_else(String::new, |why| format!(" ({why})"));
    format!("paused by {by}{until}{why}")
}

/// A record in a sentence without its subject's time: the client, the reason, the repeats.
pub fn sentence(refusal: &RefusalRecord, times: &Times, now: WallTime) -> String {
    let host = other_host(refusal.host.as_deref(), &refusal.client);
    let repeats = match refusal.count {
        0 | 1 => String::new(),
        count => format!(
            ", {count} times until {}",
            times.short(refusal.last_at, refusal.first_at)
        ),
    };
    let outcome = outcome_of(refusal, &repeats, times, now);
    format!("{}{host} {outcome}", refusal.client)
}

/// What the client of a record met: a refusal, or a job that it could not start. Reads after its name.
pub fn outcome_of(refusal: &RefusalRecord, repeats: &str, times: &Times, now: WallTime) -> String {
    let reason = reason(refusal, times, now);
    match refusal.is_unstarted() {
        true => format!("{reason}{repeats}"),
        false => format!("was refused{repeats}: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::refusal::fixture::refused;

    const NOW: WallTime = WallTime(1_790_000_000_000);

    #[test]
    fn each_reason_has_its_sentence() {
        for (word, expected) in [
            ("held", "holder held the token"),
            (
                "alive_here",
                "processes of holder's run were alive on this host",
            ),
            (
                "paused",
                "paused by root until 2026-09-21T14:13:20.000Z (100 % \"quoted\")",
            ),
            ("too_soon", "the run before was too recent (--at-least)"),
            ("behind", "2 were ahead in the queue"),
            (
                "bound",
                "the token belonged to holder, which ran shortly before",
            ),
            ("reserved", "the group was new and reserved for holder"),
            (
                "head_start",
                "the token was open, and holder had a head start",
            ),
            (
                "observed",
                "the age of the token was unknown, and it was observed",
            ),
            (
                "store_observed",
                "the store may have forgotten a grant and was observed",
            ),
            ("not_started", "could not start x: no such file"),
            ("a_newer_reason", "a_newer_reason"),
        ] {
            assert_eq!(reason(&refused("g", "a", word), &Times::Utc, NOW), expected);
        }
    }

    #[test]
    fn repeats_are_counted_and_the_host_is_named_where_it_is_another() {
        let once = refused("g", "a", "held");
        let text = |refusal: &RefusalRecord| sentence(refusal, &Times::Utc, NOW);
        assert_eq!(
            text(&once),
            "a (host host) was refused: holder held the token"
        );
        let often = RefusalRecord {
            count: 12,
            last_at: NOW,
            host: Some("a".into()),
            ..once
        };
        let expected =
            "a was refused, 12 times until 2026-09-21T14:13:20.000Z: holder held the token";
        assert_eq!(text(&often), expected);
    }

    #[test]
    fn every_field_of_a_record_is_in_its_object() {
        let refusal = RefusalRecord {
            first_at: WallTime(NOW.0 - 1_000),
            last_at: NOW,
            count: 5,
            ..refused("g", "a", "paused")
        };
        let shown = serde_json::to_value(RefusalObject(&refusal)).unwrap();
        let expected = serde_json::json!({
            "group": "g", "refused": "paused", "client": "a", "host": "host", "holder": "holder",
            "paused_by": "root", "paused_reason": "100 % \"quoted\"",
            "paused_until": "2026-09-21T14:13:20.000Z", "ahead": 2, "reason": null, "count": 5,
            "first_at": "2026-09-21T14:13:19.000Z", "last_at": "2026-09-21T14:13:20.000Z",
            "fence": 7,
        });
        assert_eq!(shown, expected);
    }
}
