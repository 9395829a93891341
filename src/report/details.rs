//! One token, with every value of its row: `status --group`.

use super::incarnation::observed_until;
use super::json::not_before;
use super::printable::printable;
use super::rfc3339;
use super::tables::{NONE, or_none, token};
use crate::duration::rounded;
use crate::token::{Memory, Row, StoreTime};

/// The token's details, a line each.
#[must_use]
pub fn details(row: &Row, memory: &Memory, now: &StoreTime) -> String {
    let lines = [
        who(row, memory, now),
        times(row, now),
        observation(row, memory, now),
        orders(row, now),
        past(row),
    ];
    let lines: Vec<_> = lines.into_iter().flatten().collect();
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, value) in lines {
        text.push_str(&format!("{name:<width$}  {}\n", printable(&value)));
    }
    text
}

type Lines = Vec<(&'static str, String)>;

fn who(row: &Row, memory: &Memory, now: &StoreTime) -> Lines {
    let shown = token(row, memory, now);
    let cell = |at: usize| shown.get(at).cloned().unwrap_or_default();
    let host = match (&row.document.host, row.document.pid) {
        (Some(host), Some(pid)) => format!("{host}, pid {pid}"),
        (host, _) => or_none(host.as_ref()),
    };
    vec![
        ("group", row.group.to_string()),
        ("state", cell(1)),
        ("client", or_none(row.client_bound())),
        ("expected client", or_none(row.expected_client.as_ref())),
        ("session", or_none(row.session())),
        ("fence", row.fence.to_string()),
        ("host", host),
        ("label", or_none(row.document.label.as_ref())),
        ("last heartbeat", cell(4)),
        ("open to others in", cell(5)),
    ]
}

fn times(row: &Row, now: &StoreTime) -> Lines {
    let released = row.released_at().map(|at| rfc3339(at.wall));
    let next = not_before(row).filter(|at| *at > now.stamp.wall);
    vec![
        (
            "acquired at",
            or_none(row.acquired_at().map(|at| rfc3339(at.wall))),
        ),
        ("released at", or_none(released)),
        ("not before", or_none(next.map(rfc3339))),
        (
            "terms",
            format!(
                "takeover-after {}, keep {}, head-start {}",
                rounded(row.document.takeover_after),
                rounded(row.document.keep),
                rounded(row.document.head_start)
            ),
        ),
        ("clock", row.stamped.epoch.to_string()),
    ]
}

fn observation(row: &Row, memory: &Memory, now: &StoreTime) -> Lines {
    let observed = memory.observation(row.longest_lease(), now);
    let line = observed.map(|it| ("observed", observed_until(&it, now)));
    line.into_iter().collect()
}

fn orders(row: &Row, now: &StoreTime) -> Lines {
    let paused = row.pause_at(now).map(|pause| {
        let until = pause.until.map_or_else(
            || "until it is resumed".to_owned(),
            |until| format!("until {}", rfc3339(until)),
        );
        let reason = match pause.reason.as_str() {
            "" => String::new(),
            reason => format!(" ({reason})"),
        };
        format!("by {} {until}{reason}", pause.by)
    });
    let handoff = row.document.handoff.as_ref();
    let handoff = handoff.map(|it| {
        let by = if it.for_failback {
            ", by its --failback"
        } else {
            ""
        };
        format!("to {} since {}{by}", it.to, rfc3339(it.at))
    });
    let revoked = if row.document.revoke_requested {
        "asked for"
    } else {
        NONE
    };
    vec![
        ("paused", or_none(paused)),
        ("handoff", or_none(handoff)),
        ("revoke", revoked.to_owned()),
    ]
}

fn numbered(count: i64, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

fn past(row: &Row) -> Lines {
    let counted = row.document.counters;
    vec![
        ("last outcome", or_none(row.document.last_outcome)),
        (
            "so far",
            [
                numbered(counted.runs, "run", "runs"),
                numbered(counted.failures, "failure", "failures"),
                numbered(counted.takeovers, "takeover", "takeovers"),
                numbered(counted.losses, "loss", "losses"),
            ]
            .join(", "),
        ),
    ]
}
