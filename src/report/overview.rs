//! The table of `status`: a line for each group, trouble first.

use std::time::Duration;

use super::acts::by_until;
use super::group::{Condition, Group, Snapshot, qualities};
use super::json::{UNREADABLE, not_before, state_word};
use super::screen::{Screen, Times, Tint};
use super::table::{Cell, Column, Line, NONE, cut, or_none, table};
use crate::duration::{brief, rounded};
use crate::store::Unreadable;
use crate::token::{Memory, Row, State, StoreTime};

const COLUMNS: [Column; 6] = [
    Column::names("GROUP", [12, 12, 8]),
    Column::names("STATE", [15, 15, 14]),
    Column::names("NODE", [8, 8, 6]),
    Column::whole("SINCE").left_out(1),
    Column::names("LAST RUN", [20, 17, 17]),
    Column::text("NOTE", [usize::MAX, 11, 6]),
];

const WIDE: [Column; 15] = [
    Column::whole("GROUP"),
    Column::whole("STATE"),
    Column::whole("NODE"),
    Column::whole("EXPECTED"),
    Column::whole("SINCE"),
    Column::whole("LAST RUN"),
    Column::whole("LAST SUCCESS"),
    Column::whole("FENCE"),
    Column::whole("HOST"),
    Column::whole("PID"),
    Column::whole("HEARTBEAT"),
    Column::whole("TAKEOVER IN"),
    Column::whole("NOT BEFORE"),
    Column::whole("LABEL"),
    Column::whole("NOTE"),
];

/// A table of groups, and which store it is of. Groups for which the screen has no room are
/// counted. `wide`: with every column, however wide.
pub fn overview(
    groups: &[Group<'_>],
    unreadable: &[&Unreadable],
    at: Snapshot<'_>,
    wide: bool,
    screen: &Screen,
) -> String {
    let mut groups: Vec<&Group<'_>> = groups.iter().collect();
    groups.sort_by_key(|it| (it.conditions.first().copied(), it.row.group.as_str()));
    let all = groups.len() + unreadable.len();
    // The head and the last line take one each.
    let room = screen.height.map_or(all, |height| height.saturating_sub(2));
    let columns: &[Column] = if wide { &WIDE } else { &COLUMNS };
    let bad = unreadable.iter().map(|it| unread(it, columns.len()));
    let good = groups.into_iter().map(|group| match wide {
        true => wide_line(group, at, &screen.times),
        false => line(group, at, &screen.times),
    });
    let lines: Vec<Line> = bad.chain(good).take(room).collect();
    let more = all - lines.len();
    let width = screen.width.filter(|_| !wide);
    let mut text = match all {
        0 => String::new(),
        _ => table(
            columns,
            lines,
            &Screen {
                width,
                ..screen.clone()
            },
        ),
    };
    text.push_str(&cut(&last_line(all, more, at, &screen.times), screen.width));
    text.push('\n');
    text
}

/// Which store it is, and whose times are shown.
fn last_line(all: usize, more: usize, at: Snapshot<'_>, times: &Times) -> String {
    let store = format!("store {}", super::printable::printable(at.store));
    let zone = times.zone_name(at.now.stamp.wall);
    let zone = zone.map(|zone| format!("times in {zone}"));
    let parts = match (all, more) {
        (0, _) => vec!["no groups".to_owned(), store],
        (_, 0) => vec![store],
        (_, 1) => vec!["1 more group".to_owned(), store],
        (_, more) => vec![format!("{more} more groups"), store],
    };
    let parts: Vec<_> = parts.into_iter().chain(zone).collect();
    format!("({})", parts.join(", "))
}

fn unread(row: &Unreadable, columns: usize) -> Line {
    let mut cells = vec![
        row.group.clone().into(),
        Cell::tinted(UNREADABLE, Tint::Bad),
    ];
    cells.resize(columns - 1, NONE.into());
    cells.push(row.error.to_string().into());
    Line::Cells(cells)
}

fn line(group: &Group<'_>, at: Snapshot<'_>, times: &Times) -> Line {
    let row = group.row;
    Line::Cells(vec![
        row.group.to_string().into(),
        state(group, at),
        or_none(row.client_bound()).into(),
        since(row, at.now).into(),
        last_run(group, at.now),
        note(group, at, times).into(),
    ])
}

fn wide_line(group: &Group<'_>, at: Snapshot<'_>, times: &Times) -> Line {
    let (row, now) = (group.row, at.now);
    let next = not_before(row).filter(|at| *at > now.stamp.wall);
    let (heartbeat, takeover) = heartbeat(row, now, times);
    Line::Cells(vec![
        row.group.to_string().into(),
        state(group, at),
        or_none(row.client_bound()).into(),
        or_none(row.expected_client.as_ref()).into(),
        since(row, now).into(),
        last_run(group, now),
        or_none(group.last_success.map(|at| times.full(at))).into(),
        row.fence.to_string().into(),
        or_none(row.document.host.as_ref()).into(),
        or_none(row.document.pid).into(),
        heartbeat.into(),
        takeover.into(),
        or_none(next.map(|at| times.full(at))).into(),
        or_none(row.document.label.as_ref()).into(),
        note(group, at, times).into(),
    ])
}

/// The state in a few words, as the row alone shows it: `running, paused`.
pub(super) fn state_words(row: &Row, memory: &Memory, now: &StoreTime) -> String {
    let mut words = vec![state_word(&row.state)];
    words.extend(qualities(row, memory, now));
    words.join(", ")
}

fn state(group: &Group<'_>, at: Snapshot<'_>) -> Cell {
    let text = match (group.row.pause_at(at.now), &group.row.state) {
        (Some(pause), State::Free | State::Idle { .. }) => {
            let observed = match group.conditions.contains(&Condition::Observed) {
                true => ", observed",
                false => "",
            };
            format!("paused by {}{observed}", pause.by)
        }
        _ => state_words(group.row, at.memory, at.now),
    };
    Cell::tinted(text, Condition::tint(&group.conditions))
}

/// How long the present run has held the token.
fn since(row: &Row, now: &StoreTime) -> String {
    let acquired = row.run().and_then(|_| row.acquired_at());
    let epoch = row.document.granted_epoch.as_ref();
    or_none(acquired.map(|at| brief(now.calendar_age_of(at, epoch))))
}

fn last_run(group: &Group<'_>, now: &StoreTime) -> Cell {
    let last = group.last.as_ref();
    last.map_or_else(
        || NONE.into(),
        |last| Cell::tinted(last.text(now.stamp.wall), last.tint()),
    )
}

/// The last heartbeat, and when another may take the token over, of a running token.
pub(super) fn heartbeat(row: &Row, now: &StoreTime, times: &Times) -> (String, String) {
    let Some(heartbeat) = row.heartbeat_at() else {
        return (NONE.to_owned(), NONE.to_owned());
    };
    match row.age(now) {
        Some(age) => (
            format!("{} ago", rounded(age)),
            open_in(row.document.takeover_after, age),
        ),
        None => (times.full(heartbeat.wall), "unknown clock".to_owned()),
    }
}

/// How much is left of a length of which `age` has passed.
fn open_in(length: Duration, age: Duration) -> String {
    match length.saturating_sub(age) {
        Duration::ZERO => "open".to_owned(),
        left => rounded(left),
    }
}

/// What a reader wants to know next of a group, the most important first.
fn note(group: &Group<'_>, at: Snapshot<'_>, times: &Times) -> String {
    let (row, now, waiting) = (group.row, at.now, group.waiters.len());
    let wall = now.stamp.wall;
    let revoked = row.document.revoke_requested;
    let observed = at.memory.observation(row.longest_lease(), now);
    let observed = observed.map(|it| {
        let until = times.short(now.plus(it.wait).stamp.wall, wall);
        format!("nothing granted until {until}")
    });
    let handoff = row.document.handoff.as_ref().map(|it| {
        let why = match it.for_failback {
            true => "failback",
            false => "handoff",
        };
        format!("next: {} ({why})", it.to)
    });
    let next = not_before(row).filter(|at| *at > wall);
    let notes = [
        group.unstarted.clone(),
        revoked.then(|| "revoke requested".to_owned()),
        observed,
        silence(row, now),
        pause(row, now, times),
        client_pause(row, at, times),
        handoff,
        row.document
            .gives_way
            .as_ref()
            .map(|it| format!("{it} gives way")),
        (waiting > 0).then(|| format!("{waiting} waiting")),
        displaced(row),
        next.map(|at| format!("not before {}", times.short(at, wall))),
    ];
    notes.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// A holder that has been silent for half of what it may be has missed heartbeats.
fn silence(row: &Row, now: &StoreTime) -> Option<String> {
    row.run()?;
    let limit = row.document.takeover_after;
    let Some(age) = row.age(now) else {
        return Some("another clock".to_owned());
    };
    let left = limit.saturating_sub(age);
    (age >= limit / 2).then(|| match left.is_zero() {
        true => format!("silent {}, takeover possible", brief(age)),
        false => format!("silent {}, takeover in {}", brief(age), brief(left)),
    })
}

/// Without who paused it where the state says that.
fn pause(row: &Row, now: &StoreTime, times: &Times) -> Option<String> {
    let pause = row.pause_at(now)?;
    let by = row.run().map(|_| pause.by.clone());
    let reason = Some(pause.reason.clone()).filter(|reason| !reason.is_empty());
    let what = match (by, reason) {
        (Some(by), Some(reason)) => Some(format!("{by}: {reason}")),
        (by, reason) => by.or(reason),
    };
    let until = pause.until;
    let until = until.map(|at| format!("until {}", times.short(at, now.stamp.wall)));
    let parts: Vec<_> = what.into_iter().chain(until).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The pause of the client that the token belongs to.
fn client_pause(row: &Row, at: Snapshot<'_>, times: &Times) -> Option<String> {
    let client = row.client_bound()?;
    let pause = at.memory.pause_of(client, at.now)?;
    let by = by_until(pause, |until| times.short(until, at.now.stamp.wall));
    Some(format!("{client} is paused {by}"))
}

/// The expected client, where the token belongs to another.
fn displaced(row: &Row) -> Option<String> {
    let (expected, bound) = (row.expected_client.as_ref()?, row.client_bound()?);
    (expected != bound).then(|| format!("expected {expected}"))
}

#[cfg(test)]
#[path = "overview_tests.rs"]
mod tests;
