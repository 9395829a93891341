//! A group by itself: its timelines, plots, and last runs.

use maud::{Markup, html};

use super::group::{Group, Recent};
use super::plots::plots;
use super::svg::{lanes, rows};
use super::view::View;

/// A part of the page that can be folded. Its place is known by its number.
pub(super) fn details(number: usize, group: &Group, view: &View) -> Markup {
    html! {
        details open[view.detail.open] {
            summary { h3 { bdi { (group.name) } } " " (state(group)) @if let Some(client) = &group.client {
                " " span class="node" { bdi { (client) } }
            } }
            // A browser opens what a link leads into.
            div id={ "g" (number) } {
                (facts(group, view))
                @if group.recent.is_empty() {
                    p class="well" { "No runs in the last month." }
                } @else {
                    (pictures(group, view))
                    (plots(group, view))
                    (table(group, view))
                }
            }
        }
    }
}

/// The state in words, with a sign.
pub(super) fn state(group: &Group) -> Markup {
    html! {
        span class={ "state " (group.state) } { (group.state) }
        @for quality in &group.qualities { " " span class={ "state " (quality) } {
            (quality) @if let ("silent", Some(age)) = (*quality, &group.silent_for) { " " (age) }
        } }
    }
}

fn facts(group: &Group, view: &View) -> Markup {
    let since = group
        .since
        .map(|since| format!("{} since {}", group.state, view.near(since)));
    let host = group.host.as_ref().map(|host| format!("host {host}"));
    let label = group.label.as_ref().map(|label| format!("label {label}"));
    let fence = (group.fence > 0).then(|| format!("fence {}", group.fence));
    let waiting = (group.waiters > 0).then(|| format!("{} waiting", group.waiters));
    let facts: Vec<String> = [since, host, label, fence, waiting]
        .into_iter()
        .flatten()
        .collect();
    html! {
        p class="facts" { @for fact in facts.iter().chain(&group.notes) { span { (fact) } } }
        @if !group.concerns.is_empty() {
            ul class="attention" { @for concern in &group.concerns {
                li class=(concern.level.class()) { (concern.text) }
            } }
        }
    }
}

/// The timelines, of which the style sheet shows one.
fn pictures(group: &Group, view: &View) -> Markup {
    let rows = rows(group);
    html! {
        div class="timeline" {
            ul aria-hidden="true" {
                @for client in &group.lanes.clients {
                    @let client = crate::report::printable::printable(client);
                    li title=(client) { bdi { (client) } }
                }
                @if group.lanes.others > 0 { li { (group.lanes.others) " others" } }
                @for row in &rows { li class="row" { (row) } }
            }
            @for timeline in &group.timelines { (lanes(timeline, &rows, view)) }
        }
        @if let Some(cut) = group.cut {
            p class="cut" { "The runs before " (view.near(cut)) " are left out." }
        }
    }
}

fn table(group: &Group, view: &View) -> Markup {
    html! {
        details class="more" { summary { "The last runs" } table class="runs" {
            thead { tr {
                @for head in ["Started", "Node", "Took", "Outcome", "Grant", "Program"] {
                    th scope="col" { (head) }
                }
            } }
            tbody { @for run in &group.recent { (line(run, view)) } }
        } }
    }
}

fn line(run: &Recent, view: &View) -> Markup {
    html! {
        tr {
            td class="since" { (view.near(run.started_at)) }
            td { bdi { (run.client) } }
            td class="since" { (run.took) }
            td { span class={ "end " (run.kind.class()) } { (run.outcome) } }
            td { (run.grant) @if let Some(from) = &run.from { " from " bdi { (from) } } }
            td { bdi { (run.what) } }
        }
    }
}
