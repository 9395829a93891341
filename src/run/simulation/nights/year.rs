//! A year of one entry of a crontab: its nodes, its nights, and what goes wrong in them.

use std::time::Duration;

use crate::run::machine::Wait;
use crate::run::simulation::dice::Dice;
use crate::run::simulation::happening::{Planned, Start, What};
use crate::run::simulation::nodes::Node;
use crate::run::simulation::world::World;
use crate::token::WallTime;
use crate::token::{ClientId, Outcome, RunRecord, Timing, Wishes};

pub(super) const NIGHTS: u64 = 365;
pub(super) const DAY: u64 = 24 * 3_600_000;

/// When the entry is due, by a correct clock.
pub(super) const DUE: u64 = 2 * 3_600_000;

/// The maximum of a node's clock offset plus cron's delay. For both nodes together it is less than
/// the default head start.
pub(super) const OFF: u64 = 3_500;
pub(super) const LATE: u64 = 1_500;

/// A crontab entry and the properties of its job.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// In seconds; `None` for the default.
    pub(super) keep: Option<u64>,
    pub(super) head_start: Option<u64>,
    pub(super) at_least: Option<u64>,
    /// `--expected` names the first node.
    pub(super) expected: bool,
    pub(super) failback: bool,
    /// `--wait`, with `--once` and the night's number.
    pub(super) once: bool,
    /// How long the job lasts in ms, and one in how many fails.
    pub(super) job: (u64, u64, u64),
    /// How early the first node's clock is, in ms; `None`: random.
    pub(super) early: Option<i64>,
}

/// `tokenrun --group g -- job`.
pub(super) const PLAIN: Entry = Entry {
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
pub(super) struct Gone {
    pub(super) node: usize,
    pub(super) from: u64,
    pub(super) until: u64,
}

impl Gone {
    fn has(self, node: usize, night: u64) -> bool {
        node == self.node && (self.from..self.until).contains(&night)
    }
}

/// A year of one entry.
pub(super) struct Year {
    pub(super) world: World,
    pub(super) entry: Entry,
    /// How late each node's clock lets cron start the entry, in ms: never less than 0.
    pub(super) off: [u64; 2],
}

impl Year {
    pub(super) fn new(seed: u64, entry: Entry) -> Self {
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
            move_on_failure: false,
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

    pub(super) fn at(&mut self, at: u64, planned: Planned) {
        let ms = at - self.world.now;
        self.world.after(ms, What::Planned(planned));
    }

    pub(super) fn start(&mut self, node: usize, at: u64, key: u64) {
        let once = self.entry.once;
        let start = Start {
            wait: if once {
                Wait::For(Duration::from_secs(3_600))
            } else {
                Wait::No
            },
            // Two hosts never see each other's locks; a host may see its own.
            locks: self.world.dice.one_in(2),
            once_key: once.then(|| format!("night {key}")),
        };
        self.at(at, Planned::Start { node, start });
    }

    /// Plans a night and lets it pass. Returns the runs whose job was started in it.
    pub(super) fn night(
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
        // In its first night back a primary must be able to look.
        if let Some(home) = home.filter(|_| night != gone.until) {
            // A new clock epoch hides the age of a run, so that the bound node has the token once
            // more before a primary takes it back.
            let may_restart = night + 1 != gone.until;
            self.trouble(due, home, may_restart);
        }
        let begins = self.world.store_time().stamp.wall;
        let jobs = self.world.tally.jobs;
        self.world
            .pass_until((night + 1) * DAY)
            .map_err(|violation| format!("night {night}: {violation}"))?;
        let runs = self.world.store.runs.iter();
        // A restart may have set the clock back, by no more than an hour.
        let tonight = |run: &&RunRecord| run.started_at >= WallTime(begins.0 - 3_600_000);
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

    /// Faults of a night that must not move the entry. They are short, because a session gives up
    /// on a store that is away for half a minute.
    pub(super) fn trouble(&mut self, due: u64, home: usize, may_restart: bool) {
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
            // The other does not reach it all night long.
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
            // The store restarts, during the job or by day.
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
