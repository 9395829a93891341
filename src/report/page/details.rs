//! A group by itself: its timelines, plots, and last runs.

use maud::{Markup, html};

use super::group::{Group, Recent, View};
use super::html::state;
use super::plots::plots;
use super::svg::{lanes, rows};

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
                li class=(super::html::class_of(concern.level)) { (concern.text) }
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
        table class="runs" role="table" {
            caption { "The last runs" }
            thead role="rowgroup" { tr role="row" {
                @for head in ["Started", "Node", "Took", "Outcome", "Grant", "Program"] {
                    th role="columnheader" scope="col" { (head) }
                }
            } }
            tbody role="rowgroup" { @for run in &group.recent { (line(run, view)) } }
        }
    }
}

fn line(run: &Recent, view: &View) -> Markup {
    html! {
        tr role="row" {
            td role="cell" data-head="Started" class="since" { (view.near(run.started_at)) }
            td role="cell" data-head="Node" { bdi { (run.client) } }
            td role="cell" data-head="Took" class="since" { (run.took) }
            td role="cell" data-head="Outcome" { span class={ "end " (run.kind.class()) } { (run.outcome) } }
            td role="cell" data-head="Grant" { (run.grant) @if let Some(from) = &run.from { " from " bdi { (from) } } }
            td role="cell" data-head="Program" { bdi { (run.what) } }
        }
    }
}
