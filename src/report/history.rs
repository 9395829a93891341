//! The output of `history`: runs, refusals and acts of operators, by time.

use serde::Serialize;

use super::records::{ActFields, RefusalFields, RunFields, outcome_of, whose};
use super::screen::{Screen, Times, Tint};
use super::table::{Cell, Column, Line, cut, or_none, table};
use crate::duration::rounded;
use crate::sys::signals;
use crate::token::{ActRecord, GroupName, Outcome, RefusalRecord, RunRecord, StoreTime, WallTime};

/// A run, refusals of one client for one reason, or an act of an operator. As an object of
/// `history --json`, an act has a field `act`, refusals have a field `refused`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Entry {
    Run(#[serde(with = "RunFields")] Box<RunRecord>),
    Refusal(#[serde(with = "RefusalFields")] Box<RefusalRecord>),
    Act(#[serde(with = "ActFields")] Box<ActRecord>),
}

impl Entry {
    /// When it began, or was the last time, by the store's wall clock.
    pub const fn at(&self) -> WallTime {
        match self {
            Self::Run(run) => run.started_at,
            Self::Refusal(refusal) => refusal.last_at,
            Self::Act(act) => act.at,
        }
    }
}

const COLUMNS: [Column; 10] = [
    Column::whole("STARTED"),
    Column::names("GROUP", [14, 12, 8]),
    Column::names("CLIENT", [12, 10, 6]),
    Column::names("HOST", [16, 12, 6]).left_out(1),
    Column::whole("GRANT").left_out(3),
    Column::names("FROM", [12, 10, 6]).left_out(2),
    // `output --run` takes it.
    Column::whole("FENCE"),
    Column::whole("TOOK"),
    Column::names("OUTCOME", [15, 15, 11]),
    Column::text("PROGRAM", [14, 10, 6]),
];

/// A table of entries. A run has a cell in each column, and a line more if its job could not be started;
/// an act and refusals have their time, their group and a sentence.
pub fn history(entries: &[Entry], now: &StoreTime, screen: &Screen) -> String {
    let times = &screen.times;
    let spanning = |at: WallTime, group: &GroupName, text: String| {
        let cells = vec![times.full(at).into(), group.to_string().into()];
        Line::Spanning(cells, text)
    };
    let mut lines = Vec::with_capacity(entries.len());
    for entry in entries {
        match entry {
            Entry::Run(run) => {
                lines.push(Line::Cells(cells(run, now, times)));
                let reason = run.reason.as_ref();
                let why = reason.map(|reason| format!("{} {reason}", run.client));
                lines.extend(why.map(|why| spanning(run.started_at, &run.group, why)));
                let moved = run.moved_on.then(|| {
                    format!(
                        "{} leaves the token to any other client (--move-on-failure)",
                        run.client
                    )
                });
                lines.extend(moved.map(|moved| spanning(run.started_at, &run.group, moved)));
            }
            Entry::Refusal(it) => lines.push(spanning(it.last_at, &it.group, refusals(it, times))),
            Entry::Act(act) => lines.push(spanning(act.at, &act.group, sentence(act, times))),
        }
    }
    let mut text = table(&COLUMNS, lines, screen);
    if let Some(zone) = screen.times.zone_name(now.stamp.wall) {
        text.push_str(&cut(&format!("(times in {zone})"), screen.width));
        text.push('\n');
    }
    text
}

/// A run's cells.
fn cells(run: &RunRecord, now: &StoreTime, times: &Times) -> Vec<Cell> {
    let end = run
        .ended_at
        .or_else(|| (run.outcome == Outcome::Running).then_some(now.stamp.wall));
    let took = end.and_then(|end| end.since(run.started_at)).map(rounded);
    let program = run.label.as_ref().map_or_else(
        || run.program.clone(),
        |label| format!("{} ({label})", run.program),
    );
    vec![
        times.full(run.started_at).into(),
        run.group.to_string().into(),
        run.client.to_string().into(),
        or_none(run.host.as_ref()).into(),
        run.grant.to_string().into(),
        or_none(run.previous_client.as_ref()).into(),
        run.fence.to_string().into(),
        or_none(took).into(),
        outcome(run),
        program.into(),
    ]
}

fn outcome(run: &RunRecord) -> Cell {
    let detail = match (run.exit_code, run.signal) {
        _ if run.revoked => " (revoked)".to_owned(),
        (Some(code), _) if code != 0 => format!(" ({code})"),
        (_, Some(signal)) => format!(" ({})", signals::name(signal)),
        _ => String::new(),
    };
    let tint = match run.outcome {
        Outcome::Running => Tint::Good,
        Outcome::Succeeded => Tint::Plain,
        _ if run.revoked => Tint::Plain,
        _ => Tint::Bad,
    };
    Cell::tinted(format!("{}{detail}", run.outcome), tint)
}

/// Refusals in a sentence, with the first of them.
fn refusals(refusal: &RefusalRecord, times: &Times) -> String {
    let repeats = match refusal.count {
        0 | 1 => String::new(),
        count => {
            let first = times.short(refusal.first_at, refusal.last_at);
            format!(", {count} times since {first}")
        }
    };
    let outcome = outcome_of(refusal, &repeats, times, refusal.last_at);
    format!("{} {outcome}", refusal.client)
}

/// An act in a sentence: the operator, what was done, and why.
fn sentence(act: &ActRecord, times: &Times) -> String {
    let until = act.until.map(|until| times.short(until, act.at));
    let parts = [
        act.client.as_ref().map(|client| format!(" {client}")),
        act.once_key.as_ref().map(|key| format!(" {key}")),
        act.incarnation.as_ref().map(|it| format!(" {it}")),
        act.raised_fence().then(|| format!(" to {}", act.fence)),
        until.map(|until| format!(" until {until}")),
        act.actor
            .reason
            .as_ref()
            .map(|reason| format!(" ({reason})")),
    ];
    let what: String = parts.into_iter().flatten().collect();
    format!("{}: {}{what}", whose(act), act.act)
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
