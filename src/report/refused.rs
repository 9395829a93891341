//! Recorded refusals, in sentences and as JSON.

use serde::Serialize;

use super::rfc3339;
use super::times::Times;
use crate::token::{RefusalRecord, WallTime};

/// Refusals of a client for a reason, as `history --refusals --json` shows them. Only refusals have
/// a field `refused`.
#[derive(Debug, Serialize)]
pub struct RefusalObject<'a> {
    pub group: &'a str,
    /// The reason, in a word.
    pub refused: &'a str,
    /// The refused client.
    pub client: &'a str,
    /// The host of the last of them.
    pub host: Option<&'a str>,
    /// The client that is in the way.
    pub holder: Option<&'a str>,
    pub paused_by: Option<&'a str>,
    pub paused_reason: Option<&'a str>,
    pub paused_until: Option<String>,
    /// The number of waiters ahead.
    pub ahead: Option<u64>,
    /// Why the job could not be started.
    pub reason: Option<&'a str>,
    /// The number of them; at most one a minute counts.
    pub count: u64,
    /// The first of them, by the store's wall clock.
    pub first_at: String,
    /// The last of them.
    pub last_at: String,
    /// The token's fence at the last of them.
    pub fence: i64,
}

impl<'a> RefusalObject<'a> {
    /// The object for a record.
    #[must_use]
    pub fn of(refusal: &'a RefusalRecord) -> Self {
        Self {
            group: refusal.group.as_str(),
            refused: &refusal.reason,
            client: refusal.client.as_str(),
            host: refusal.host.as_deref(),
            holder: refusal.holder.as_ref().map(|holder| holder.as_str()),
            paused_by: refusal.paused_by.as_deref(),
            paused_reason: refusal.paused_reason.as_deref(),
            paused_until: refusal.paused_until.map(rfc3339),
            ahead: refusal.ahead,
            reason: refusal.error.as_deref(),
            count: refusal.count,
            first_at: rfc3339(refusal.first_at),
            last_at: rfc3339(refusal.last_at),
            fence: refusal.fence.0,
        }
    }
}

/// The reason of a refusal. Reads after "refused: ".
#[must_use]
pub fn reason(refusal: &RefusalRecord, times: &Times, now: WallTime) -> String {
    let holder = || {
        let holder = refusal.holder.as_ref();
        holder.map_or_else(|| "another client".to_owned(), ToString::to_string)
    };
    match refusal.reason.as_str() {
        "held" => format!("{} held the token", holder()),
        "alive_here" => format!("processes of {}'s run were alive on this host", holder()),
        "paused" => paused(refusal, times, now),
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
#[must_use]
pub fn sentence(refusal: &RefusalRecord, times: &Times, now: WallTime) -> String {
    let host = refusal.host.as_deref();
    let host = host.filter(|host| *host != refusal.client.as_str());
    let host = host.map_or_else(String::new, |host| format!(" (host {host})"));
    let repeats = match refusal.count {
        0 | 1 => String::new(),
        count => format!(
            ", {count} times until {}",
            times.short(refusal.last_at, refusal.first_at)
        ),
    };
    let met = met(refusal, &repeats, times, now);
    format!("{}{host} {met}", refusal.client)
}

/// What the client of a record met: a refusal, or a job that it could not start. Reads after its name.
#[must_use]
pub fn met(refusal: &RefusalRecord, repeats: &str, times: &Times, now: WallTime) -> String {
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
        let shown = serde_json::to_value(RefusalObject::of(&refusal)).unwrap();
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
