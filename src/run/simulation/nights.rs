//! A year of nights: a cron entry on two nodes whose clocks are seconds apart. Every night
//! it runs once, on its node; in the very night that the node is gone, on the other.

use std::time::Duration;

use super::processes::Node;
use super::world::{Dice, Planned, Start, What, World};
use crate::run::machine::Wait;
use crate::token::{ClientId, GrantKind, Outcome, RunRecord, Timing, Wishes};

/// How many years each entry has.
const SEEDS: u64 = 12;

const NIGHTS: u64 = 365;
const DAY: u64 = 24 * 3_600_000;

/// When the entry is due, by a clock that is right.
const DUE: u64 = 2 * 3_600_000;

/// How far a node's clock is off, and how late cron starts something, at most. Both nodes'
/// together are less than the default head start.
const OFF: u64 = 3_500;
const LATE: u64 = 1_500;

/// What a user wrote into the crontab, and what the job is like.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// In seconds; `None` for the default.
    keep: Option<u64>,
    head_start: Option<u64>,
    at_least: Option<u64>,
    /// `--expected` names the first node.
    expected: bool,
    failback: bool,
    /// `--wait`, with `--once` and the night's number.
    once: bool,
    /// How long the job lasts in ms, and one in how many fails.
    job: (u64, u64, u64),
    /// How early the first node's clock is, in ms; else chance decides.
    early: Option<i64>,
}

/// `tokenrun --group g -- job`.
const PLAIN: Entry = Entry {
    keep: None,
    head_start: None,
    at_least: None,
    expected: false,
    failback: false,
    once: false,
    job: (10, 600_000, 5),
    early: None,
};

/// The node that is gone, and when.
#[derive(Debug, Clone, Copy)]
struct Gone {
    node: usize,
    from: u64,
    until: u64,
}

impl Gone {
    fn has(self, node: usize, night: u64) -> bool {
        node == self.node && (self.from..self.until).contains(&night)
    }
}

/// A year of one entry.
struct Year {
    world: World,
    entry: Entry,
    /// How late each node's clock lets cron start the entry, in ms: never less than 0.
    off: [u64; 2],
}

impl Year {
    fn new(seed: u64, entry: Entry) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9876_5432_1fed_cba9));
        let seconds = |n: Option<u64>| n.map(Duration::from_secs);
        let timing = Timing::new(&Wishes {
            keep: seconds(entry.keep),
            head_start: seconds(entry.head_start),
            at_least: seconds(entry.at_least),
            ..Wishes::default()
        })
        .unwrap();
        let client = |n: usize| ClientId::new(&format!("n{n}")).unwrap();
        let nodes = (0..2).map(|n| Node {
            client: client(n),
            rate_ppm: 999_500 + dice.within(0, 1_000),
            timing,
            expected: entry.expected.then(|| client(0)),
            failback: entry.failback,
            suspended: false,
            cut_off: false,
        });
        let nodes = nodes.collect();
        let off = match entry.early {
            None => [dice.within(0, 2 * OFF), dice.within(0, 2 * OFF)],
            Some(early) if early >= 0 => [0, early.unsigned_abs()],
            Some(late) => [late.unsigned_abs(), 0],
        };
        let mut world = World::of(dice, nodes, false, false);
        world.healed = true;
        world.jobs_last = Some(entry.job);
        Self { world, entry, off }
    }

    fn at(&mut self, at: u64, planned: Planned) {
        let ms = at - self.world.now;
        self.world.after(ms, What::Planned(planned));
    }

    fn start(&mut self, node: usize, at: u64, key: u64) {
        let once = self.entry.once;
        let start = Start {
            wait: if once {
                Wait::For(Duration::from_secs(3_600))
            } else {
                Wait::No
            },
            // Of two hosts neither sees the other's locks; of its own it may.
            locks: self.world.dice.one_in(2),
            once_key: once.then(|| format!("night {key}")),
        };
        self.at(at, Planned::Start { node, start });
    }

    /// Plans a night, and lets it pass. Gives the runs whose job was started in it.
    fn night(
        &mut self,
        night: u64,
        gone: Gone,
        home: Option<usize>,
    ) -> Result<Vec<RunRecord>, String> {
        let due = night * DAY + DUE;
        for node in (0..2).filter(|node| !gone.has(*node, night)) {
            let late = self.off[node] + self.world.dice.within(0, LATE);
            self.start(node, due + late, night);
        }
        // In its first night a primary that is back shall be able to look.
        if let Some(home) = home.filter(|_| night != gone.until) {
            // By a new clock nobody can tell how old a run is, so that the bound node has it once
            // more before a primary takes it back.
            let may_restart = night + 1 != gone.until;
            self.trouble(due, home, may_restart);
        }
        let begins = self.world.store_time().stamp.wall_ms;
        let jobs = self.world.tally.jobs;
        self.world
            .pass_until((night + 1) * DAY)
            .map_err(|violation| format!("night {night}: {violation}"))?;
        let runs = self.world.store.runs.iter();
        // A restart may have set the clock back, by no more than an hour.
        let tonight = |run: &&RunRecord| run.started_at_ms >= begins - 3_600_000;
        let ran = |run: &&RunRecord| run.outcome != Outcome::NotStarted;
        let runs: Vec<RunRecord> = runs.filter(tonight).filter(ran).cloned().collect();
        let jobs = self.world.tally.jobs - jobs;
        if jobs != runs.len() as u64 {
            return Err(format!(
                "night {night}: {jobs} jobs, but history has {runs:?}"
            ));
        }
        Ok(runs)
    }

    /// What goes wrong on a night, and must not move the entry: briefly, for a looker gives up
    /// a store that is away for half a minute.
    fn trouble(&mut self, due: u64, home: usize, may_restart: bool) {
        let dice = &mut self.world.dice;
        let when = dice.within(60_000, 300_000);
        let long = dice.within(1_000, 20_000);
        let away = 1 - home;
        match dice.within(0, 8) {
            // The holder does not reach the store for a while.
            0 => {
                self.at(
                    due + when,
                    Planned::Cut {
                        node: home,
                        cut: true,
                    },
                );
                self.at(
                    due + when + long,
                    Planned::Cut {
                        node: home,
                        cut: false,
                    },
                );
            }
            // The other does not, all night long.
            1 => {
                self.at(
                    due,
                    Planned::Cut {
                        node: away,
                        cut: true,
                    },
                );
                self.at(
                    due + when,
                    Planned::Cut {
                        node: away,
                        cut: false,
                    },
                );
            }
            // The other is switched off for a moment, just now or while it looks.
            2 => self.at(due + long, Planned::PowerOff(away)),
            // The store is started anew, while the job runs or by day.
            3 if may_restart => self.at(due + when, Planned::Restart(0)),
            4 if may_restart => {
                let set_by = i64::try_from(self.world.dice.within(0, 1_200_000)).unwrap();
                self.at(due + 36_000_000, Planned::Restart(set_by - 600_000));
            }
            // cron starts it twice.
            5 if self.entry.at_least.is_some() => {
                let key = due / DAY;
                self.start(home, due + OFF * 2 + LATE + when, key);
            }
            _ => {}
        }
    }
}

/// What is expected of a night: on which node it runs.
type Plan = fn(u64, Gone) -> usize;

/// It stays where it went.
fn stays(night: u64, gone: Gone) -> usize {
    usize::from(night >= gone.from) ^ gone.node
}

/// It goes back in the first night that its node is there again.
fn comes_back(night: u64, gone: Gone) -> usize {
    usize::from((gone.from..gone.until).contains(&night)) ^ gone.node
}

/// It goes back a night later: that night's slot was run when its node looked.
fn comes_back_a_night_later(night: u64, gone: Gone) -> usize {
    usize::from((gone.from..=gone.until).contains(&night)) ^ gone.node
}

/// A year of this entry, in which its node is gone for some nights. Gives the grants of
/// the nights in which it moved.
fn year(seed: u64, entry: Entry, plan: Plan) -> Result<Vec<GrantKind>, String> {
    let mut year = Year::new(seed, entry);
    let dice = &mut year.world.dice;
    let from = dice.within(20, 300);
    let mut gone = Gone {
        node: 0,
        from,
        until: from + dice.within(1, 40),
    };
    let mut moves = Vec::new();
    let mut home = None;
    for night in 0..NIGHTS {
        // Which node it is becomes known in the first night.
        let here = home.map(|_| plan(night, gone));
        let runs = year.night(night, gone, here)?;
        let [run] = &runs[..] else {
            return Err(format!(
                "seed {seed}, night {night}, {gone:?}: the runs are {runs:?}"
            ));
        };
        let on = usize::from(run.client.as_str() == "n1");
        if home.is_none() {
            gone.node = on;
        }
        if on != plan(night, gone) {
            return Err(format!(
                "seed {seed}, night {night}, {gone:?}: it ran on {on}"
            ));
        }
        if home.replace(on).is_some_and(|home: usize| home != on) {
            moves.push(run.grant);
        }
    }
    Ok(moves)
}

#[track_caller]
fn years(entry: Entry, plan: Plan, moves: &[GrantKind]) {
    for seed in 0..SEEDS {
        assert_eq!(year(seed, entry, plan).unwrap(), moves, "seed {seed}");
    }
}

#[test]
fn an_entry_stays_on_its_node_for_a_year_and_moves_in_the_night_that_it_is_gone() {
    years(PLAIN, stays, &[GrantKind::Takeover]);
}

#[test]
fn it_does_with_options_of_a_users_own_too() {
    let entry = Entry {
        keep: Some(60),
        head_start: Some(30),
        at_least: Some(12 * 3_600),
        expected: true,
        ..PLAIN
    };
    years(entry, stays, &[GrantKind::Takeover]);
}

/// The primary's clock is early, so that it looks first.
#[test]
fn with_failback_an_early_primary_has_it_back_in_its_first_night() {
    let entry = Entry {
        expected: true,
        failback: true,
        early: Some(4_000),
        ..PLAIN
    };
    years(
        entry,
        comes_back,
        &[GrantKind::Takeover, GrantKind::Failback],
    );
}

/// Its clock is late, and the job is over when it looks: once is enough for that night.
#[test]
fn with_failback_a_late_primary_has_it_back_a_night_later() {
    let entry = Entry {
        expected: true,
        failback: true,
        early: Some(-4_000),
        job: (10, 1_500, 5),
        ..PLAIN
    };
    let moves = [GrantKind::Takeover, GrantKind::Handoff];
    years(entry, comes_back_a_night_later, &moves);
}

/// Nothing is taken from a job that runs, but the next night is its own.
#[test]
fn with_failback_a_primary_that_always_comes_into_a_running_job_has_it_back_a_night_later() {
    let entry = Entry {
        expected: true,
        failback: true,
        early: Some(-4_000),
        job: (60_000, 600_000, 5),
        ..PLAIN
    };
    let moves = [GrantKind::Takeover, GrantKind::Handoff];
    years(entry, comes_back_a_night_later, &moves);
}

/// The years would tell: without a head start the earlier node has it.
#[test]
fn without_a_head_start_an_entry_moves_for_no_reason() {
    let entry = Entry {
        head_start: Some(0),
        ..PLAIN
    };
    let moved = (0..SEEDS).filter(|seed| year(*seed, entry, stays).is_err());
    assert!(moved.count() > 5);
}

/// The years would tell: without keep a late clock runs the entry again.
#[test]
fn without_keep_a_late_clock_runs_an_entry_twice() {
    let entry = Entry {
        keep: Some(0),
        job: (10, 100, 5),
        ..PLAIN
    };
    let violation = year(1, entry, stays).unwrap_err();
    assert!(
        violation.contains("n0") && violation.contains("n1"),
        "{violation}"
    );
}

/// `--wait=1h --once DATE` on both nodes, one of which may lose its power while the job
/// runs. Gives how many nights had a success.
fn year_of_keys(seed: u64, entry: Entry) -> Result<u64, String> {
    let mut year = Year::new(seed, entry);
    let mut nights = 0;
    for night in 0..NIGHTS {
        let due = night * DAY + DUE;
        for node in 0..2 {
            // A clock that is late by minutes comes long after the job has ended.
            let late = match year.world.dice.within(0, 4) {
                0 => year.world.dice.within(0, 2_400_000),
                _ => year.world.dice.within(0, LATE),
            };
            let late = year.off[node] + late;
            year.start(node, due + late, night);
        }
        if year.world.dice.one_in(5) {
            let node = usize::from(year.world.dice.one_in(2));
            let in_the_job = OFF * 2 + LATE + 10_000;
            year.at(due + in_the_job, Planned::PowerOff(node));
        } else {
            let home = usize::from(year.world.dice.one_in(2));
            year.trouble(due, home, true);
        }
        let before = year.world.tally.successes;
        let passed = year.world.pass_until((night + 1) * DAY);
        passed.map_err(|violation| format!("seed {seed}, night {night}: {violation}"))?;
        let successes = year.world.tally.successes - before;
        let key = format!("night {night}");
        let marks = year.world.store.marks.iter();
        let marks = marks.filter(|mark| mark.key == key).count() as u64;
        if successes > 1 || marks != successes {
            return Err(format!(
                "seed {seed}, {key}: {successes} successes, {marks} marks"
            ));
        }
        nights += successes;
    }
    Ok(nights)
}

const KEYS: Entry = Entry {
    once: true,
    ..PLAIN
};

#[test]
fn with_a_key_for_each_night_it_succeeds_once_a_night_even_if_its_node_dies_in_the_job() {
    let entry = Entry {
        job: (60_000, 600_000, u64::MAX),
        ..KEYS
    };
    for seed in 0..SEEDS {
        assert_eq!(year_of_keys(seed, entry), Ok(NIGHTS));
    }
}

#[test]
fn with_a_key_for_each_night_a_failure_is_tried_again_by_the_other_and_a_success_never() {
    let entry = Entry {
        job: (60_000, 600_000, 3),
        ..KEYS
    };
    for seed in 0..SEEDS {
        let nights = year_of_keys(seed, entry).unwrap();
        // Both fail in one night of nine, or the one that is left does.
        assert!((290..350).contains(&nights), "{nights}");
    }
}
