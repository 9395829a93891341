//! The page as a whole: its head, what needs attention, the table of groups, and its foot. What several
//! groups need attention for is one line.

use std::collections::BTreeMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::calendar::Window;
use super::group::{Group, Level};
use super::marks::{Counts, Kind};
use super::section::{details, state};
use super::svg::strip;
use super::timeline::Timeline;
use super::view::{Facts, View, plural};
use super::{plots, svg};
use crate::report::printable::printable;

/// The heading of the page.
const TITLE: &str = "tokenrun";

const STYLE: &str = include_str!("style.css");

/// Nothing is requested from anywhere, and nothing is executed.
pub const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The whole document.
pub(super) fn document(facts: &Facts<'_>, groups: &[Group], view: &View) -> Markup {
    let grave = troubled(groups) + facts.unreadable.len();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                @if let Some(every) = facts.refresh {
                    meta http-equiv="refresh" content=(every.as_secs().max(1));
                }
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="robots" content="noindex";
                meta name="referrer" content="no-referrer";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "tokenrun " (env!("CARGO_PKG_VERSION")) };
                title { @if grave > 0 { "(" (grave) ") " } (TITLE) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                // Before everything else, so that a choice can change what comes after it.
                @for window in Window::ALL {
                    input type="radio" name="window" id=(window.word()) checked[window == Window::Day]
                        aria-label={ "Show the last " (window.word()) };
                }
                (svg::shared(view)) (plots::shared(view))
                header { (heading(facts, view)) (numbers(groups, facts)) }
                main {
                    (attention(groups, facts))
                    (overview(groups, view))
                    @if !groups.is_empty() {
                        section { h2 { "Group by group" } @for (number, group) in groups.iter().enumerate() {
                            (details(number, group, view))
                        } }
                    }
                }
                footer { (foot(groups, facts, view)) }
            }
        }
    }
}

fn troubled(groups: &[Group]) -> usize {
    let troubled = groups
        .iter()
        .filter(|group| group.level() == Some(Level::Trouble));
    troubled.count()
}

fn heading(facts: &Facts<'_>, view: &View) -> Markup {
    let now = view.wall();
    html! {
        h1 { (TITLE) }
        p class="about" {
            span { "Store " code { (printable(facts.store)) } }
            " "
            span { "as of " time datetime=(view.calendar.exact(now)) { (view.calendar.full(now)) }
                " " (view.calendar.zone_name(now)) }
        }
    }
}

/// The page in numbers.
fn numbers(groups: &[Group], facts: &Facts<'_>) -> Markup {
    let mut states: BTreeMap<&str, usize> = BTreeMap::new();
    for group in groups {
        for word in std::iter::once(&group.state).chain(&group.qualities) {
            *states.entry(word).or_default() += 1;
        }
    }
    if !facts.unreadable.is_empty() {
        states.insert("unreadable", facts.unreadable.len());
    }
    let order = [
        "running",
        "idle",
        "free",
        "silent",
        "paused",
        "observed",
        "unreadable",
    ];
    html! {
        ul class="numbers" aria-label="Groups by state" {
            li { b { (groups.len() + facts.unreadable.len()) } " groups" }
            @for state in order {
                @if let Some(count) = states.get(state) {
                    li class=(state) { b { (count) } " " (state) }
                }
            }
        }
        @for (at, window) in Window::ALL.into_iter().enumerate() {
            @let of_window: Vec<&Timeline> = groups.iter().filter_map(|group| group.timelines.get(at)).collect();
            (past_in_numbers(window, &of_window))
        }
    }
}

fn past_in_numbers(window: Window, timelines: &[&Timeline]) -> Markup {
    let counts = Counts::of(timelines.iter().flat_map(|timeline| &timeline.strip));
    let moves: usize = timelines.iter().map(|it| it.moves.len()).sum();
    let refusals: u64 = timelines.iter().map(|it| it.refusals()).sum();
    let failed = counts.get(Kind::Failed) + counts.get(Kind::Lost);
    html! {
        p class={ "past " (window.word()) } {
            "Last " (window.word()) ": " (plural(counts.sum(), "run"))
            ", " span class=[(failed > 0).then_some("bad")] { (failed) " failed or lost" }
            ", " (plural(moves as u64, "failover"))
            ", " (plural(refusals, "refusal"))
        }
    }
}

fn overview(groups: &[Group], view: &View) -> Markup {
    html! {
        section aria-labelledby="groups" {
            div class="bar" { h2 id="groups" { "Groups" } (choice()) }
            (legend())
            @if groups.is_empty() {
                p class="well" { "There are none." }
            } @else {
                table class="groups" role="table" {
                    thead role="rowgroup" { tr role="row" {
                        @for head in ["Group", "State", "Node", "Since", "Last run"] {
                            th role="columnheader" scope="col" { (head) }
                        }
                        th role="columnheader" scope="col" class="when" { @for window in Window::ALL {
                            span class=(window.word()) { "Last " (window.word()) } (svg::head(window))
                        } }
                        th role="columnheader" scope="col" { "Notes" }
                    } }
                    tbody role="rowgroup" { @for (number, group) in groups.iter().enumerate() { (line(number, group, view)) } }
                }
            }
        }
    }
}

/// A group's row.
fn line(number: usize, group: &Group, view: &View) -> Markup {
    html! {
        tr role="row" class=[group.level().map(Level::class)] {
            th role="rowheader" scope="row" { a href={ "#g" (number) } { bdi { (group.name) } } }
            td role="cell" class="is" { (state(group)) }
            td role="cell" class="node" { @if let Some(client) = &group.client { bdi { (client) } } }
            td role="cell" class="since" { @if let Some(since) = group.since { (view.near(since)) } }
            td role="cell" class="last" { @if let Some(last) = &group.last {
                span class={ "end " (last.kind.class()) } { (last.text) }
            } }
            td role="cell" class="when" { @for timeline in &group.timelines {
                (svg::own_axis(timeline.window))
                (strip(timeline, view))
            } }
            td role="cell" class="notes" {
                @if group.waiters > 0 { span { (group.waiters) " waiting" } }
                @for note in &group.notes { span { (note) } }
            }
        }
    }
}

/// The choice of a window: labels of the inputs at the begin of the page.
fn choice() -> Markup {
    html! {
        div class="choice" aria-hidden="true" { @for window in Window::ALL {
            label for=(window.word()) { (window.word()) }
        } }
    }
}

fn legend() -> Markup {
    let sample = |kind: Kind| {
        html! {
            svg width="22" height="22" {
                path class=(kind.class()) d=(if kind == Kind::Running { "M0 14h15" } else { "M0 14h22" }) {}
                @if kind.is_grave() { use class=(kind.class()) href={ "#" (kind.class()) } x="11" y="0" {} }
                @if kind == Kind::Running { use class="r" href="#r" x="22" y="8" {} }
            }
        }
    };
    html! {
        ul class="legend" aria-label="Legend" {
            @for kind in Kind::ALL { li { (sample(kind)) (kind.meaning()) } }
            li { svg width="14" height="22" { use class="m" href="#m" x="7" y="14" {} } "failover" }
            li { svg width="10" height="22" { path class="u" d="M1 14h2m3 0h2" {} } "refused" }
            li { svg width="12" height="22" { use class="a" href="#a" x="3" y="8" {} } "act of an operator" }
        }
    }
}

/// What is not on the page, and how it was made.
fn foot(groups: &[Group], facts: &Facts<'_>, view: &View) -> Markup {
    let cut = groups.iter().filter(|group| group.cut.is_some()).count();
    html! {
        @if cut > 0 {
            p { "Of " (plural(cut as u64, "group"))
                " history has more runs than are read for a page: the oldest of the month are left out, as is said there." }
        }
        @if facts.is_shortened {
            p { "There are more refusals or acts of operators than are read for a page: the oldest are left out." }
        }
        p { "A timeline shows the newest " (view.detail.signs) " failovers and acts, and a lane for each of the "
            (view.detail.lanes) " clients that ran last; runs that are too close to each other are one bar. "
            "Times are in " (view.calendar.zone_name(view.wall())) ", by the clock of the store." }
        p { "tokenrun " (env!("CARGO_PKG_VERSION")) }
    }
}

/// How many lines tell what needs attention at most, and how many groups one line names.
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
                    @for matter in matters.iter().take(room) { (item(matter)) }
                }
                @if more > 0 { p class="well" { "And " (more) " more; the groups below say what." } }
            }
        }
    }
}

fn item(matter: &Matter<'_>) -> Markup {
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
