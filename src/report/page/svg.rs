//! Timelines as inline SVG. Bars lie in a picture that is stretched to the width of the page; signs
//! and texts are placed by percent, so that they keep their shape.

use std::fmt::Write as _;

use maud::{Markup, html};

use crate::duration::rounded;

use super::calendar::{Scale, WIDTH, Window};
use super::group::Group;
use super::marks::{Counts, Kind, Mark};
use super::timeline::{Move, Refused, Timeline};
use super::view::{View, plural};

/// The height of a lane, and of what is in it: signs above, a bar below.
pub(super) const LANE: usize = 22;
const BAR: usize = 14;

/// The height of the labels above a timeline.
const AXIS: usize = 18;

/// Half the width of a sign, in units of a timeline as it is on a common screen.
const SIGN: u32 = 6;

/// The height of the rows of refusals and of acts.
const ROW: usize = 16;

/// Labels closer to an end than this are left out.
const EDGE: u32 = 40;

/// A position in percent of the width.
fn percent(position: u32) -> String {
    let most = position.min(WIDTH);
    format!("{}.{}%", most / 10, most % 10)
}

/// The signs and axes that all pictures use.
pub(super) fn shared(view: &View) -> Markup {
    html! {
        svg class="defs" aria-hidden="true" width="0" height="0" { defs {
            g id="f" { path d="M-4.5 0h9l-4.5 8z" {} }
            g id="l" { path d="M-4 0l8 8m0-8l-8 8" {} }
            g id="r" { path d="M-7 1v10l7-5z" {} }
            g id="m" { path d="M0-5l5 5-5 5-5-5z" {} }
            g id="a" { path d="M-.75 11v-11h7.75l-2.5 3 2.5 3h-6.25v5z" {} }
            @for window in Window::ALL { (axis(window, view)) }
        } }
    }
}

fn axis(window: Window, view: &View) -> Markup {
    let scale = Scale::of(window, view.wall());
    let ticks = view.calendar.ticks(window, &scale);
    html! {
        g id=(axis_name(window)) {
            @for (number, tick) in ticks.iter().enumerate() {
                @let position = scale.at(tick.at);
                @let x = percent(position);
                line class="g" x1=(x) x2=(x) y1=(AXIS - 4) y2="100%" {}
                @if (EDGE..=WIDTH - EDGE).contains(&position) {
                    text class=[(number % 2 == 1).then_some("q")] x=(x) y="10" { (tick.label) }
                }
            }
        }
        g id={ "y-" (window.word()) } {
            @for tick in &ticks {
                @let x = percent(scale.at(tick.at));
                line class="g" x1=(x) x2=(x) y1="0" y2="100%" {}
            }
        }
    }
}

fn axis_name(window: Window) -> String {
    format!("x-{}", window.word())
}

/// The labels of a window, above a column of strips.
pub(super) fn head(window: Window) -> Markup {
    html! {
        svg class={ "t " (window.word()) } aria-hidden="true" height=(AXIS) {
            use href={ "#" (axis_name(window)) } {}
        }
    }
}

/// The same above one strip, which the style sheet shows where a column has no head.
pub(super) fn own_axis(window: Window) -> Markup {
    html! {
        svg class={ "t x " (window.word()) } height=(AXIS) { use href={ "#" (axis_name(window)) } {} }
    }
}

/// A group's runs in one window as one lane, for a row of the overview.
pub(super) fn strip(timeline: &Timeline, view: &View) -> Markup {
    html! {
        svg class={ "t " (timeline.window.word()) } role="img" aria-label=(summary(timeline)) height=(LANE) {
            use href={ "#y-" (timeline.window.word()) } {}
            (stretched(LANE, html! {
                path class="b" d=(ground(timeline, BAR)) {}
                (bars(&timeline.strip, 0, 0, view))
            }))
            @for moved in &timeline.moves { (sign_of(moved, BAR, view)) }
            (signs(&timeline.strip, 0, view))
        }
    }
}

/// What a picture is of, for who can't see it.
pub(super) fn summary(timeline: &Timeline) -> String {
    let mut text = format!(
        "Last {}: {}",
        timeline.window.word(),
        Counts::of(&timeline.strip).text()
    );
    let numbers = [
        (timeline.moves.len() as u64, "failover"),
        (timeline.refusals(), "refusal"),
        (timeline.acts.len() as u64, "act"),
    ];
    for (number, word) in numbers.iter().filter(|(number, _)| *number > 0) {
        let _ = write!(text, "; {}", plural(*number, word));
    }
    text
}

/// The rows of a timeline below its lanes, each with its name, if there is something in them.
pub(super) fn rows(group: &Group) -> Vec<&'static str> {
    let any = |has: fn(&Timeline) -> bool| group.timelines.iter().any(has);
    let rows = [
        (any(|it| !it.refused.is_empty()), "refused"),
        (any(|it| !it.acts.is_empty()), "operators"),
    ];
    let shown = rows.into_iter().filter(|(is, _)| *is);
    shown.map(|(_, name)| name).collect()
}

/// A group's runs in one window, with a lane for each client.
pub(super) fn lanes(timeline: &Timeline, rows: &[&str], view: &View) -> Markup {
    let lane = |number: usize| AXIS + number * LANE;
    let below = lane(timeline.lanes.len());
    let row = |name: &str| {
        let number = rows.iter().position(|it| *it == name)?;
        Some(below + number * ROW)
    };
    let height = below + rows.len() * ROW;
    html! {
        svg class={ "t " (timeline.window.word()) } role="img" aria-label=(summary(timeline)) height=(height) {
            use href={ "#" (axis_name(timeline.window)) } {}
            @for moved in &timeline.moves { (line_of(moved, &lane)) }
            (stretched(height, html! {
                path class="b" d=((0..timeline.lanes.len()).map(|number| {
                    ground(timeline, lane(number) + BAR)
                }).collect::<String>()) {}
                @for (number, marks) in timeline.lanes.iter().enumerate() {
                    (bars(marks, lane(number), view.detail.texts, view))
                }
                @if let Some(top) = row("refused") { (ticks(&timeline.refused, top + ROW / 2, view)) }
            }))
            @for (number, marks) in timeline.lanes.iter().enumerate() {
                (signs(marks, lane(number), view))
            }
            @for moved in &timeline.moves {
                @if let Some(to) = moved.to_lane { (sign_of(moved, lane(to) + BAR, view)) }
            }
            @if let Some(top) = row("operators") {
                @for act in &timeline.acts {
                    use class="a" href="#a" x=(percent(act.position)) y=(top + 3) {
                        title { (view.near(act.at)) ": " (act.what) }
                    }
                }
            }
        }
    }
}

/// The line that bars lie on, as far as the runs are known.
fn ground(timeline: &Timeline, y: usize) -> String {
    format!("M{} {y}H{WIDTH}", timeline.begin)
}

/// What is as wide as the page.
fn stretched(height: usize, inside: Markup) -> Markup {
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (height) } preserveAspectRatio="none" {
            (inside)
        }
    }
}

/// The bars of a lane, the kinds one after the other: each with a text if it is grave, or if there
/// are few.
fn bars(marks: &[Mark], top: usize, texts: usize, view: &View) -> Markup {
    let y = top + BAR;
    let ends = |mark: &Mark| (mark.from, mark.to);
    let few = marks.len() <= texts;
    html! {
        @for like in marks.chunk_by(|one, other| one.kind == other.kind) {
            @if let Some(kind) = like.first().map(|mark| mark.kind) {
                @if few || kind.is_grave() {
                    @for mark in like {
                        path class=(kind.class()) d=(path([ends(mark)], y)) { title { (text_of(mark, view)) } }
                    }
                } @else {
                    path class=(kind.class()) d=(path(like.iter().map(ends), y)) {}
                }
            }
        }
    }
}

/// Bars from left to right, as a path: after the first, each is placed by its distance from the one
/// before.
fn path(bars: impl IntoIterator<Item = (u32, u32)>, y: usize) -> String {
    let mut path = String::new();
    let mut pen = None;
    for (from, to) in bars {
        let width = to.saturating_sub(from);
        let _ = match pen {
            Some(pen) => write!(path, "m{} 0h{width}", i64::from(from) - i64::from(pen)),
            None => write!(path, "M{from} {y}h{width}"),
        };
        pen = Some(to);
    }
    path
}

/// The signs above the grave bars, and at the end of what is running: a colour alone says nothing
/// to some.
fn signs(marks: &[Mark], top: usize, view: &View) -> Markup {
    html! {
        @for mark in marks {
            @if mark.kind.is_grave() {
                use class=(mark.kind.class()) href={ "#" (mark.kind.class()) } x=(percent((mark.from + 1).clamp(SIGN, WIDTH - SIGN))) y=(top) {
                    title { (text_of(mark, view)) }
                }
            } @else if mark.kind == Kind::Running {
                use class="r" href="#r" x=(percent(mark.to)) y=(top + BAR - 6) {}
            }
        }
    }
}

/// The line of a failover, from lane to lane.
fn line_of(moved: &Move, lane: &dyn Fn(usize) -> usize) -> Markup {
    let x = percent(moved.position);
    html! {
        @if let (Some(from), Some(to)) = (moved.from_lane, moved.to_lane) {
            line class="m" x1=(x) x2=(x) y1=(lane(from) + BAR) y2=(lane(to) + BAR) {}
        }
    }
}

/// The sign of a failover.
fn sign_of(moved: &Move, y: usize, view: &View) -> Markup {
    html! {
        use class="m" href="#m" x=(percent(moved.position)) y=(y) {
            title { (view.near(moved.at)) ": " (moved.from) " → " (moved.to) " (" (moved.grant) ")" }
        }
    }
}

fn ticks(refused: &[Refused], y: usize, view: &View) -> Markup {
    let ends = |tick: &Refused| (tick.from, tick.to);
    html! {
        @if refused.len() <= view.detail.texts {
            @for tick in refused {
                path class="u" d=(path([ends(tick)], y)) { title { (refusal_text(tick, view)) } }
            }
        } @else {
            path class="u" d=(path(refused.iter().map(ends), y)) {}
        }
    }
}

fn refusal_text(tick: &Refused, view: &View) -> String {
    let what = tick.what.as_ref();
    let what = what.map_or_else(String::new, |(client, why)| format!(" of {client} ({why})"));
    let times = times(tick.began, tick.ended, view);
    format!("{}{what}, {times}", plural(tick.count, "refusal"))
}

fn times(began: crate::token::WallTime, ended: crate::token::WallTime, view: &View) -> String {
    let (from, to) = (view.near(began), view.near(ended));
    if from == to {
        from
    } else {
        format!("{from} to {to}")
    }
}

/// What a bar stands for.
fn text_of(mark: &Mark, view: &View) -> String {
    let times = times(mark.began, mark.ended, view);
    if mark.count > 1 {
        return format!("{} runs {}, {times}", mark.count, mark.kind.meaning());
    }
    let code = mark
        .code
        .map_or_else(String::new, |code| format!(" ({code})"));
    let took = mark.ended.since(mark.began).unwrap_or_default();
    format!("{}{code}, {times} ({})", mark.outcome, rounded(took))
}
