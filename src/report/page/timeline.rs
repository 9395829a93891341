//! A group's timeline in one window: a lane for each client, failovers between them, refusals, and
//! acts of operators. Pure.

use crate::report::printable::printable;
use crate::token::{ActRecord, RefusalRecord, RunRecord, WallTime};

use super::calendar::{Scale, Window};
use super::marks::{Mark, marks};
use super::view::Detail;

/// What happened to a group, each list in the order of time.
#[derive(Debug, Clone, Copy)]
pub struct Past<'a> {
    pub runs: &'a [&'a RunRecord],
    /// The runs before this time were not read.
    pub cut: Option<WallTime>,
    pub acts: &'a [&'a ActRecord],
    pub refusals: &'a [&'a RefusalRecord],
}

/// The clients that have a lane of their own; the others share the last one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lanes {
    pub clients: Vec<String>,
    /// How many clients share the last lane.
    pub others: usize,
}

impl Lanes {
    /// The lanes for runs in the order of time: of those that ran last, by name.
    pub fn of(runs: &[&RunRecord], most: usize) -> Self {
        let mut clients: Vec<&str> = Vec::new();
        let mut all = std::collections::BTreeSet::new();
        for run in runs.iter().rev() {
            let client = run.client.as_str();
            if all.insert(client) && clients.len() < most {
                clients.push(client);
            }
        }
        clients.sort_unstable();
        Self {
            others: all.len() - clients.len(),
            clients: clients.into_iter().map(str::to_owned).collect(),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.clients.len() + usize::from(self.others > 0)
    }

    /// The lane of a client. A client that never ran has none.
    pub fn of_client(&self, client: &str) -> Option<usize> {
        let own = self.clients.iter().position(|it| it == client);
        own.or((self.others > 0).then_some(self.clients.len()))
    }
}

/// The token went from one client to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    pub position: u32,
    pub at: WallTime,
    pub from: String,
    pub to: String,
    /// The lanes of both.
    pub from_lane: Option<usize>,
    pub to_lane: Option<usize>,
    /// How it was granted, in a word.
    pub grant: &'static str,
}

/// Refusals that are close to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub from: u32,
    pub to: u32,
    pub count: u64,
    pub began: WallTime,
    pub ended: WallTime,
    /// The client and the reason, if they are the same for all.
    pub what: Option<(String, String)>,
}

/// An act of an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    pub position: u32,
    pub at: WallTime,
    /// What was done, by whom, and why.
    pub what: String,
}

/// Everything that is drawn in one window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    pub window: Window,
    /// Where the part begins whose runs are known.
    pub begin: u32,
    /// All clients' runs in one lane.
    pub strip: Vec<Mark>,
    pub lanes: Vec<Vec<Mark>>,
    pub moves: Vec<Move>,
    pub refused: Vec<Refused>,
    pub acts: Vec<Act>,
}

/// The least width of a refusal.
const TICK: u32 = 2;

impl Timeline {
    pub fn of(
        past: &Past<'_>,
        lanes: &Lanes,
        window: Window,
        now: WallTime,
        detail: &Detail,
    ) -> Self {
        let scale = Scale::of(window, now);
        let all = || past.runs.iter().copied();
        let of_lane = |lane: usize| {
            let is_in = move |run: &&RunRecord| lanes.of_client(run.client.as_str()) == Some(lane);
            marks(all().filter(is_in), &scale, detail)
        };
        Self {
            window,
            begin: past.cut.map_or(0, |cut| scale.at(cut)),
            strip: marks(all(), &scale, detail),
            lanes: (0..lanes.count()).map(of_lane).collect(),
            moves: newest(moves(past.runs, lanes, &scale), detail.signs),
            refused: refused(past.refusals, &scale),
            acts: newest(acts(past.acts, &scale), detail.signs),
        }
    }

    /// How often a run was refused.
    pub fn refusals(&self) -> u64 {
        let counts = self.refused.iter().map(|it| it.count);
        counts.fold(0, u64::saturating_add)
    }
}

/// The last `most` of a list in the order of time.
fn newest<T>(mut all: Vec<T>, most: usize) -> Vec<T> {
    all.drain(..all.len().saturating_sub(most));
    all
}

fn moves(runs: &[&RunRecord], lanes: &Lanes, scale: &Scale) -> Vec<Move> {
    let inside = runs.iter().filter(|run| scale.has(run.started_at));
    let moved = inside.filter_map(|run| {
        let from = run.previous_client.as_ref()?.as_str();
        let to = run.client.as_str();
        Some(Move {
            position: scale.at(run.started_at),
            at: run.started_at,
            from: printable(from),
            to: printable(to),
            from_lane: lanes.of_client(from),
            to_lane: lanes.of_client(to),
            grant: run.grant.as_str(),
        })
    });
    moved.collect()
}

fn refused(records: &[&RefusalRecord], scale: &Scale) -> Vec<Refused> {
    let mut ticks: Vec<Refused> = Vec::new();
    let inside = |it: &&&RefusalRecord| it.last_at >= scale.from && it.first_at <= scale.until;
    for record in records.iter().filter(inside) {
        let from = scale.at(record.first_at).min(super::calendar::WIDTH - TICK);
        let what = (printable(record.client.as_str()), printable(&record.reason));
        let tick = Refused {
            from,
            to: scale.at(record.last_at).max(from + TICK),
            count: record.count,
            began: record.first_at,
            ended: record.last_at,
            what: Some(what),
        };
        match ticks.last_mut() {
            Some(last) if tick.from <= last.to.saturating_add(TICK) => {
                last.to = last.to.max(tick.to);
                last.ended = last.ended.max(tick.ended);
                last.count = last.count.saturating_add(tick.count);
                last.what = last
                    .what
                    .take()
                    .filter(|what| Some(what) == tick.what.as_ref());
            }
            _ => ticks.push(tick),
        }
    }
    ticks
}

fn acts(records: &[&ActRecord], scale: &Scale) -> Vec<Act> {
    let inside = records.iter().filter(|act| scale.has(act.at));
    inside
        .map(|act| Act {
            position: scale.at(act.at),
            at: act.at,
            what: act_text(act),
        })
        .collect()
}

/// An act, its operator, and the reason.
fn act_text(act: &ActRecord) -> String {
    let client = act.client.as_ref();
    let client = client.map_or_else(String::new, |client| format!(" ({client})"));
    let reason = act.actor.reason.as_ref();
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    printable(&format!("{}{client} by {}{reason}", act.act, act.actor.by))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{NOW, act, ago, moved, refusal, run};
    use super::*;
    use crate::token::Outcome;

    const DETAIL: Detail = Detail::of(1);

    fn timeline(runs: &[RunRecord], acts: &[ActRecord], refusals: &[RefusalRecord]) -> Timeline {
        let (runs, acts): (Vec<_>, Vec<_>) = (runs.iter().collect(), acts.iter().collect());
        let refusals: Vec<_> = refusals.iter().collect();
        let past = Past {
            runs: &runs,
            cut: None,
            acts: &acts,
            refusals: &refusals,
        };
        let lanes = Lanes::of(&runs, DETAIL.lanes);
        Timeline::of(&past, &lanes, Window::Day, NOW, &DETAIL)
    }

    #[test]
    fn the_last_clients_have_lanes_and_the_others_share_one() {
        let all = ["e", "d", "c", "b", "a", "b"];
        let runs: Vec<_> = (1..)
            .zip(all)
            .map(|(at, client)| {
                run(
                    client,
                    ago(100 - at),
                    Some(ago(100 - at)),
                    Outcome::Succeeded,
                )
            })
            .collect();
        let runs: Vec<&RunRecord> = runs.iter().collect();
        let lanes = Lanes::of(&runs, 3);
        assert_eq!((lanes.clients.join(""), lanes.others), ("abc".into(), 2));
        let lane = |client| lanes.of_client(client);
        assert_eq!(
            (lane("b"), lane("e"), lane("never")),
            (Some(1), Some(3), Some(3))
        );
        assert_eq!(Lanes::of(&runs, 5).of_client("never"), None);
        assert_eq!((lanes.count(), Lanes::default().count()), (4, 0));
    }

    #[test]
    fn runs_are_in_their_clients_lane_and_in_the_strip() {
        let runs = [
            run("a", ago(720), Some(ago(700)), Outcome::Unknown),
            moved("a", run("b", ago(600), Some(ago(500)), Outcome::Succeeded)),
        ];
        let drawn = timeline(&runs, &[], &[]);
        let lanes: Vec<usize> = drawn.lanes.iter().map(Vec::len).collect();
        assert_eq!((drawn.strip.len(), lanes), (2, vec![1, 1]));
        let moved = &drawn.moves[0];
        assert_eq!((moved.from_lane, moved.to_lane), (Some(0), Some(1)));
        assert_eq!((moved.position, moved.grant), (583, "takeover"));
    }

    #[test]
    fn refusals_are_counted_and_joined() {
        let refusals = [
            refusal("b", ago(720), ago(660), 7),
            refusal("c", ago(659), ago(659), 1),
            refusal("c", ago(60), ago(60), 2),
        ];
        let drawn = timeline(&[], &[], &refusals);
        assert_eq!(drawn.refusals(), 10);
        let shown: Vec<_> = drawn
            .refused
            .iter()
            .map(|it| (it.from, it.to, it.count))
            .collect();
        assert_eq!(shown, [(500, 544, 8), (958, 960, 2)]);
        assert_eq!(drawn.refused[0].what, None);
        assert_eq!(drawn.refused[1].what, Some(("c".into(), "held".into())));
    }

    #[test]
    fn the_newest_acts_are_drawn() {
        let acts: Vec<_> = (1..=200).rev().map(|at| act("pause", ago(at))).collect();
        let drawn = timeline(&[], &acts, &[]);
        assert_eq!(drawn.acts.len(), DETAIL.signs);
        assert_eq!(drawn.acts.last().unwrap().at, ago(1));
        assert_eq!(drawn.acts[0].what, "pause by root: works");
    }
}
