//! Runs per day and durations, as small pictures.

use std::time::Duration;

use maud::{Markup, html};

use crate::duration::rounded;
use crate::report::json::millis;

use super::days::{DAYS, Day, Took};
use super::group::Group;
use super::marks::Kind;
use super::view::View;

/// The height of a plot, without and with its labels.
const HEIGHT: u64 = 64;
const WHOLE: u64 = HEIGHT + 16;

/// What a plot leaves free above its highest value, for signs.
const FREE: u64 = 10;

/// The labels of days, which both plots of all groups use.
pub(super) fn shared(view: &View) -> Markup {
    let days = view.calendar.days(view.wall(), DAYS);
    let labels = days
        .iter()
        .enumerate()
        .filter(|(number, _)| number % 7 == 3);
    html! {
        svg class="defs" aria-hidden="true" width="0" height="0" { defs {
            g id="x-plot" {
                line class="g" x1="0" x2="100%" y1=(HEIGHT) y2=(HEIGHT) {}
                @for (number, day) in labels {
                    text x=(middle(number)) y=(WHOLE - 4) { (view.calendar.day(*day)) }
                }
            }
        } }
    }
}

/// The middle of a day, in percent of the width.
fn middle(day: usize) -> String {
    let part = (2 * day + 1) * 500 / DAYS;
    format!("{}.{}%", part / 10, part % 10)
}

/// Where a value lies above the ground, if `most` is the highest.
fn level(value: u64, most: u64) -> u64 {
    let room = u128::from(HEIGHT - FREE);
    let scaled = u128::from(value) * room / u128::from(most.max(1));
    u64::try_from(scaled).unwrap_or(HEIGHT - FREE)
}

/// Both plots.
pub(super) fn plots(group: &Group, view: &View) -> Markup {
    html! {
        div class="plots" {
            (runs(&group.days, view))
            @if let Some(took) = &group.took { (durations(&group.days, took, view)) }
        }
    }
}

fn runs(days: &[Day], view: &View) -> Markup {
    let sums = || days.iter().map(|day| day.counts.sum());
    let (most, all) = (sums().max().unwrap_or_default(), sums().sum::<u64>());
    let grave = |day: &Day| {
        let mut kinds = [Kind::Lost, Kind::Failed].into_iter();
        kinds.find(|kind| day.counts.get(*kind) > 0)
    };
    html! {
        figure {
            figcaption { b { "Runs per day" } " " (all) " in " (DAYS) " days, at most " (most) " a day" }
            (picture("Runs per day", days, view, html! {
                @for kind in Kind::ALL {
                    @let path = stacked(days, kind, most);
                    @if !path.is_empty() { path class={ "v " (kind.class()) } d=(path) {} }
                }
            }, html! {
                @for (number, day) in days.iter().enumerate() {
                    @if let Some(kind) = grave(day) {
                        use class=(kind.class()) href={ "#" (kind.class()) } x=(middle(number))
                            y=(HEIGHT.saturating_sub(level(day.counts.sum(), most) + 10)) {}
                    }
                }
            }))
        }
    }
}

/// The bars of a kind, on top of those of the kinds before it.
fn stacked(days: &[Day], kind: Kind, most: u64) -> String {
    let bar = |(number, day): (usize, &Day)| {
        let below = |kinds: usize| {
            let kinds = Kind::ALL.into_iter().take(kinds);
            level(kinds.map(|kind| day.counts.get(kind)).sum(), most)
        };
        let (bottom, top) = (below(kind.index()), below(kind.index() + 1));
        // What is there is seen, however small its part is.
        let height = (top - bottom).max(2);
        (day.counts.get(kind) > 0).then(|| format!("M{number} {}v-{height}", HEIGHT - bottom))
    };
    days.iter().enumerate().filter_map(bar).collect()
}

fn durations(days: &[Day], all: &Took, view: &View) -> Markup {
    let most = millis(all.longest);
    let y = |length: Duration| HEIGHT - level(millis(length), most);
    let seen = || {
        days.iter()
            .enumerate()
            .filter_map(|(number, day)| Some((number, day.took?)))
    };
    let spread = seen().filter(|(_, it)| it.shortest < it.longest);
    let spread = spread.map(|(x, it)| format!("M{x} {}V{}", y(it.shortest), y(it.longest)));
    // The first is a dot, in case there is no other.
    let line = seen().enumerate().map(|(at, (x, it))| {
        let (pen, dot) = if at == 0 { ('M', "h0") } else { ('L', "") };
        format!("{pen}{x} {}{dot}", y(it.median))
    });
    let dots = seen().map(|(x, it)| format!("M{x} {}h0", y(it.median)));
    html! {
        figure {
            figcaption {
                b { "Durations" } " median " (rounded(all.median)) ", 95 % within " (rounded(all.most))
                ", longest " (rounded(all.longest))
            }
            (picture("Durations by day: shortest, median, longest", days, view, html! {
                @if view.detail.days {
                    path class="w" d=(spread.collect::<String>()) {}
                    path class="o" d=(dots.collect::<String>()) {}
                }
                path class="e" d=(line.collect::<String>()) {}
            }, html! {}))
        }
    }
}

/// A plot: what is stretched, what is not, and a text for each day.
fn picture(label: &str, days: &[Day], view: &View, stretched: Markup, signs: Markup) -> Markup {
    html! {
        svg class="t" role="img" aria-label=(label) height=(WHOLE) {
            use href="#x-plot" {}
            svg viewBox={ "-.5 0 " (DAYS) " " (WHOLE) } preserveAspectRatio="none" {
                (stretched)
                @if view.detail.days {
                    g transform="translate(-.5)" { @for (number, day) in days.iter().enumerate() {
                        rect class="h" x=(number) width="1" height=(WHOLE) { title { (text_of(day, view)) } }
                    } }
                }
            }
            (signs)
        }
    }
}

fn text_of(day: &Day, view: &View) -> String {
    let took = day.took.map_or_else(String::new, |took| {
        let [shortest, median, longest] = [took.shortest, took.median, took.longest].map(rounded);
        match took.shortest == took.longest {
            true => format!("; took {median}"),
            false => format!("; took {shortest} to {longest}, median {median}"),
        }
    });
    let (day, runs) = (view.calendar.day(day.begin), day.counts.text());
    format!("{day}: {runs}{took}")
}
