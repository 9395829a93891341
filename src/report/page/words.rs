//! What several parts of the page say, and what they have in common.

use std::time::Duration;

use maud::{Markup, html};

use super::group::{Group, Level};
use super::marks::{Counts, Kind};

/// What a page says beside its groups.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The store's name.
    pub store: &'a str,
    /// The groups that can't be read, and what is wrong with them.
    pub unreadable: &'a [(String, String)],
    /// There are more refusals or acts than were read.
    pub is_shortened: bool,
    /// How often a browser loads it anew.
    pub refresh: Option<Duration>,
}

/// The state in words, with a sign.
pub(super) fn state(group: &Group) -> Markup {
    html! {
        span class={ "state " (group.state) } { (group.state) }
        @for quality in &group.qualities { " " span class={ "state " (quality) } { (quality) } }
    }
}

/// `3 runs: 2 succeeded, 1 running`.
pub(super) fn counted(counts: &Counts) -> String {
    let sum = counts.iter().map(|count| u64::from(*count)).sum();
    let parts = Kind::ALL
        .iter()
        .zip(counts)
        .filter(|(_, count)| **count > 0);
    let parts: Vec<String> = parts
        .map(|(kind, count)| format!("{count} {}", kind.meaning()))
        .collect();
    match parts.as_slice() {
        [] => "no runs".to_owned(),
        parts => format!("{}: {}", plural(sum, "run"), parts.join(", ")),
    }
}

/// `1 run`, `2 runs`.
pub(super) fn plural(number: u64, word: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{number} {word}{end}")
}

/// Its class in the style sheet.
pub(super) const fn class_of(level: Level) -> &'static str {
    match level {
        Level::Trouble => "trouble",
        Level::Notice => "notice",
    }
}
