//! One token, with every value of its row: `status --group`.

use std::time::Duration;

use super::acts::by_until;
use super::group::{Group, Snapshot};
use super::incarnation::observed_until;
use super::json::not_before;
use super::overview::{heartbeat, state_words};
use super::printable::printable;
use super::screen::{Screen, Times};
use super::table::{NONE, cut, or_none};
use crate::duration::rounded;
use crate::token::{Row, State, StoreTime};

/// The token's details, a line each.
pub fn details(group: &Group<'_>, at: Snapshot<'_>, screen: &Screen) -> String {
    let (row, times) = (group.row, &screen.times);
    let lines = [
        who(row, at, times),
        terms(row, at.now, times),
        observation(row, at, times),
        orders(row, at, times),
        queue(group),
        past(group, at.now, times),
        place(at, times),
    ];
    let lines: Vec<_> = lines.into_iter().flatten().collect();
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    // A terminal wraps a value that is too long: nothing of it is lost.
    for (name, value) in lines {
        text.push_str(&format!("{name:<width$}  {}\n", printable(&value)));
    }
    match screen.height {
        Some(height) => fitted(&text, height, screen.width),
        None => text,
    }
}

/// As many lines as there is room for, none of which is wrapped.
fn fitted(text: &str, height: usize, width: Option<usize>) -> String {
    let lines = text.lines().take(height);
    lines.map(|line| cut(line, width) + "\n").collect()
}

type Lines = Vec<(&'static str, String)>;

fn who(row: &Row, at: Snapshot<'_>, times: &Times) -> Lines {
    let (heartbeat, takeover) = heartbeat(row, at.now, times);
    let host = match (&row.document.host, row.document.pid) {
        (Some(host), Some(pid)) => format!("{host}, pid {pid}"),
        (host, _) => or_none(host.as_ref()),
    };
    let open = match (&row.state, row.age(at.now)) {
        (State::Running { .. }, _) => ("takeover in", takeover),
        (State::Idle { .. }, None) => (OPEN, "unknown clock".to_owned()),
        (State::Idle { .. }, Some(age)) => (OPEN, open_to_others(row, at.now, age)),
        (State::Free, _) => (OPEN, open_to_others(row, at.now, Duration::MAX)),
    };
    vec![
        ("group", row.group.to_string()),
        ("state", state_words(row, at.memory, at.now)),
        ("client", or_none(row.client_bound())),
        ("expected client", or_none(row.expected_client.as_ref())),
        ("session", or_none(row.session())),
        ("fence", row.fence.to_string()),
        ("host", host),
        ("label", or_none(row.document.label.as_ref())),
        ("last heartbeat", heartbeat),
        open,
    ]
}

const OPEN: &str = "open to others";

/// When a token that no session holds is open to every client, as its keep and its at-least say.
/// `idle_for`: since its release.
fn open_to_others(row: &Row, now: &StoreTime, idle_for: Duration) -> String {
    let kept = row.document.keep.saturating_sub(idle_for);
    let too_soon = not_before(row).and_then(|at| at.since(now.stamp.wall));
    match kept.max(too_soon.unwrap_or_default()) {
        Duration::ZERO => "now".to_owned(),
        wait => format!("in {}", rounded(wait)),
    }
}

fn terms(row: &Row, now: &StoreTime, times: &Times) -> Lines {
    let full = |wall| times.full(wall);
    let released = row.released_at().map(|at| full(at.wall));
    let next = not_before(row).filter(|at| *at > now.stamp.wall);
    let acquired = row.acquired_at().map(|at| full(at.wall));
    vec![
        ("acquired at", or_none(acquired)),
        ("released at", or_none(released)),
        ("not before", or_none(next.map(full))),
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

fn observation(row: &Row, at: Snapshot<'_>, times: &Times) -> Lines {
    let observed = at.memory.observation(row.longest_lease(), at.now);
    let line = observed.map(|it| ("observed", observed_until(&it, at.now, times)));
    line.into_iter().collect()
}

fn orders(row: &Row, at: Snapshot<'_>, times: &Times) -> Lines {
    let now = at.now;
    let own = row.client_bound();
    let own = own.and_then(|client| at.memory.pause_of(client, now));
    let own = own.map(|pause| by_until(pause, |until| times.full(until)));
    let paused = row.pause_at(now);
    let paused = paused.map(|pause| by_until(pause, |until| times.full(until)));
    let handoff = row.document.handoff.as_ref();
    let handoff = handoff.map(|it| {
        let by = match it.for_failback {
            true => ", by its --failback",
            false => "",
        };
        format!("to {} since {}{by}", it.to, times.full(it.at))
    });
    let revoked = match row.document.revoke_requested {
        true => "requested",
        false => NONE,
    };
    vec![
        ("paused", or_none(paused)),
        ("client paused", or_none(own)),
        ("gives way", or_none(row.document.gives_way.as_ref())),
        ("handoff", or_none(handoff)),
        ("revoke", revoked.to_owned()),
    ]
}

/// The waiters, in order.
fn queue(group: &Group<'_>) -> Lines {
    let waiters = group.waiters.iter();
    let waiters: Vec<_> = waiters
        .map(|it| format!("{} (session {})", it.client, it.session))
        .collect();
    let value = match waiters.is_empty() {
        true => NONE.to_owned(),
        false => waiters.join(", "),
    };
    vec![("waiting", value)]
}

fn numbered(count: i64, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

fn past(group: &Group<'_>, now: &StoreTime, times: &Times) -> Lines {
    let counted = group.row.document.counters;
    let last = group.last.map(|last| last.text(now.stamp.wall));
    let success = group.last_success.map(|at| times.full(at));
    vec![
        ("last run", or_none(last)),
        ("not started", or_none(group.unstarted.as_ref())),
        ("last success", or_none(success)),
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

fn place(at: Snapshot<'_>, times: &Times) -> Lines {
    let zone = times.zone_name(at.now.stamp.wall);
    let zone = zone.map(|zone| ("times in", zone));
    let store = ("store", at.store.to_owned());
    std::iter::once(store).chain(zone).collect()
}
