//! What needs attention, the gravest first. What several groups need it for is one line.

use maud::{Markup, html};

use super::group::{Group, Level};
use super::view::{Facts, plural};
use crate::report::printable::printable;

/// How many lines there are at most, and how many groups one line names.
const LINES: usize = 40;
const NAMES: usize = 6;

/// The groups that need attention for the same.
struct Matter<'a> {
    level: Level,
    text: &'a str,
    /// With their numbers on the page.
    groups: Vec<(usize, &'a Group)>,
}

fn matters(groups: &[Group]) -> Vec<Matter<'_>> {
    let mut matters: Vec<Matter<'_>> = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        for concern in &group.concerns {
            let (level, text) = (concern.level, concern.text.as_str());
            match matters.iter_mut().find(|it| it.text == text) {
                Some(matter) => matter.groups.push((number, group)),
                None => matters.push(Matter {
                    level,
                    text,
                    groups: vec![(number, group)],
                }),
            }
        }
    }
    matters.sort_by_key(|matter| std::cmp::Reverse(matter.level));
    matters
}

pub(super) fn attention(groups: &[Group], facts: &Facts<'_>) -> Markup {
    let matters = matters(groups);
    let unreadable = facts.unreadable.iter().take(LINES);
    let room = LINES - unreadable.len();
    let more = (facts.unreadable.len() + matters.len()).saturating_sub(LINES);
    html! {
        section aria-labelledby="attention" {
            h2 id="attention" { "Needs attention" }
            @if matters.is_empty() && facts.unreadable.is_empty() {
                p class="well" { "Nothing." }
            } @else {
                ul class="attention" {
                    @for (name, error) in unreadable {
                        li class="trouble" { b { bdi { (printable(name)) } } " can’t be read: " (printable(error)) }
                    }
                    @for matter in matters.iter().take(room) { (line(matter)) }
                }
                @if more > 0 { p class="well" { "And " (more) " more; the groups below say what." } }
            }
        }
    }
}

fn line(matter: &Matter<'_>) -> Markup {
    let more = matter.groups.len().saturating_sub(NAMES);
    html! {
        li class=(matter.level.class()) {
            @for (at, (number, group)) in matter.groups.iter().take(NAMES).enumerate() {
                @if at > 0 { ", " }
                a href={ "#g" (number) } { bdi { (group.name) } }
            }
            @if more > 0 { " and " (plural(more as u64, "other group")) }
            ": " (matter.text)
        }
    }
}
