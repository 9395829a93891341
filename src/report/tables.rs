//! The tables of `status` and `history`.

use std::time::Duration;

use super::json::{UNREADABLE, not_before, state_word};
use super::printable::printable;
use super::rfc3339;
use crate::duration::rounded;
use crate::store::Unreadable;
use crate::token::{Memory, OnceMark, Outcome, Row, RunRecord, State, StoreTime};

pub(super) const NONE: &str = "-";

/// A table of tokens, one a line; unreadable rows come last.
#[must_use]
pub fn tokens(
    rows: &[Row],
    unreadable: &[&Unreadable],
    memory: &Memory,
    now: &StoreTime,
) -> String {
    let heads = [
        "GROUP",
        "STATE",
        "CLIENT",
        "EXPECTED",
        "HEARTBEAT",
        "TAKEOVER IN",
        "FENCE",
        "LAST",
        "NOT BEFORE",
    ];
    let blank = |row: &&Unreadable| {
        let rest = std::iter::repeat_n(NONE.to_owned(), heads.len() - 2);
        [row.group.clone(), UNREADABLE.to_owned()]
            .into_iter()
            .chain(rest)
            .collect()
    };
    let lines = rows.iter().map(|row| token(row, memory, now));
    aligned(&heads, lines.chain(unreadable.iter().map(blank)))
}

/// A token's line.
pub(super) fn token(row: &Row, memory: &Memory, now: &StoreTime) -> Vec<String> {
    let (heartbeat, takeover) = match &row.state {
        State::Running { .. } => match row.age(now) {
            Some(age) => (
                format!("{} ago", rounded(age)),
                open_in(row.document.takeover_after, age),
            ),
            None => (rfc3339(row.stamped.stamp.wall), "unknown clock".to_owned()),
        },
        State::Idle { .. } => match row.age(now) {
            Some(age) => (NONE.to_owned(), open_in(row.document.keep, age)),
            None => (NONE.to_owned(), "unknown clock".to_owned()),
        },
        State::Free => (NONE.to_owned(), "open".to_owned()),
    };
    let paused = if row.pause_at(now).is_some() {
        ", paused"
    } else {
        ""
    };
    let silent = if row.is_silent(now) { ", silent" } else { "" };
    let observed = match memory.observation(row.longest_lease(), now) {
        Some(_) => ", observed",
        None => "",
    };
    vec![
        row.group.to_string(),
        format!("{}{silent}{paused}{observed}", state_word(&row.state)),
        or_none(row.client_bound()),
        or_none(row.expected_client.as_ref()),
        heartbeat,
        takeover,
        row.fence.to_string(),
        or_none(row.document.last_outcome),
        or_none(
            not_before(row)
                .filter(|at| *at > now.stamp.wall)
                .map(rfc3339),
        ),
    ]
}

fn open_in(length: Duration, age: Duration) -> String {
    match length.saturating_sub(age) {
        Duration::ZERO => "open".to_owned(),
        left => rounded(left),
    }
}

/// The heads of a table of runs.
pub(super) const RUN_HEADS: [&str; 9] = [
    "STARTED", "GROUP", "CLIENT", "GRANT", "FROM", "FENCE", "TOOK", "OUTCOME", "PROGRAM",
];

/// A run's line.
pub(super) fn run(run: &RunRecord, now: &StoreTime) -> Vec<String> {
    let outcome = run.outcome;
    let detail = match (run.exit_code, run.signal) {
        (Some(code), _) if code != 0 => format!(" ({code})"),
        (_, Some(signal)) => format!(" ({signal})"),
        _ => String::new(),
    };
    let end = run
        .ended_at
        .or_else(|| (outcome == Outcome::Running).then_some(now.stamp.wall));
    let took = end.and_then(|end| end.since(run.started_at)).map(rounded);
    vec![
        rfc3339(run.started_at),
        run.group.to_string(),
        run.client.to_string(),
        run.grant.to_string(),
        or_none(run.previous_client.as_ref()),
        run.fence.to_string(),
        or_none(took),
        format!("{outcome}{detail}"),
        run.label.as_ref().map_or_else(
            || run.program.clone(),
            |label| format!("{} ({label})", run.program),
        ),
    ]
}

/// A table of keys that are done, one a line.
#[must_use]
pub fn marks(marks: &[OnceMark]) -> String {
    let line = |mark: &OnceMark| {
        vec![
            rfc3339(mark.done_at),
            mark.group.to_string(),
            mark.key.clone(),
            mark.client.to_string(),
            mark.fence.to_string(),
        ]
    };
    let heads = ["DONE", "GROUP", "KEY", "CLIENT", "FENCE"];
    aligned(&heads, marks.iter().map(line))
}

pub(super) fn or_none(value: Option<impl ToString>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| value.to_string())
}

/// Columns as wide as their widest cell, two blanks between them. Every cell is made printable
/// here.
pub(super) fn aligned(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut lines: Vec<Vec<String>> = vec![heads.iter().map(ToString::to_string).collect()];
    lines.extend(rows.map(|row| row.iter().map(|cell| printable(cell)).collect()));
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> = line
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_characters() {
        let rows = [
            vec!["ä".to_owned(), "1".to_owned()],
            vec!["bcd".to_owned(), "22".to_owned()],
        ];
        assert_eq!(
            aligned(&["A", "N"], rows.into_iter()),
            "A    N\nä    1\nbcd  22\n"
        );
    }
}
